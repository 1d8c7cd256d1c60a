import { hashHigh } from '../placement/hash.ts';
import type { Broker, Resource } from '../placement/index.ts';

/** Where another placer puts every shard: brokers by number, the leader first. */
export type Layers = readonly (readonly number[])[];

/**
 * Striped round robin in the manner of Kafka's: brokers in one list in which racks take turns; a resource begins
 * somewhere in it, each shard one further, followers on the next ones, further apart with every round.
 */
export function striped(brokers: readonly Broker[], resources: readonly Resource[]): Layers {
  const order = interleaved(brokers);
  const n = order.length;
  const layers: number[][] = [];
  for (const { name, shards, replicationFactor } of resources) {
    const start = (hashHigh(name) >>> 0) % n;
    for (let p = 0; p < shards; p++) {
      const shift = Math.floor(p / n) * 3;
      const set: number[] = [];
      for (let j = 0; j < replicationFactor; j++) {
        const at = j === 0 ? start + p : start + p + shift + j;
        set.push(order[at % n] ?? 0);
      }
      layers.push(set);
    }
  }
  return layers;
}

function interleaved(brokers: readonly Broker[]): number[] {
  const racks = new Map<string, number[]>();
  brokers.forEach(({ id, zone }, b) => {
    const key = zone ?? id;
    racks.set(key, [...(racks.get(key) ?? []), b]);
  });
  const order: number[] = [];
  for (let round = 0; order.length < brokers.length; round++) {
    for (const rack of racks.values()) {
      const b = rack[round];
      if (b !== undefined) order.push(b);
    }
  }
  return order;
}

/** Each shard on the broker that leads the fewest, its followers on those that hold the fewest, zones first. */
export function leastLoaded(brokers: readonly Broker[], resources: readonly Resource[]): Layers {
  const leaders = new Int32Array(brokers.length);
  const copies = new Int32Array(brokers.length);
  const layers: number[][] = [];
  for (const { shards, replicationFactor } of resources) {
    for (let p = 0; p < shards; p++) {
      const set = [least(leaders, () => 0)];
      while (set.length < replicationFactor) {
        const zones = set.map((b) => brokers[b]?.zone);
        set.push(
          least(copies, (b) => (set.includes(b) ? Infinity : zones.includes(brokers[b]?.zone) ? 1e9 : 0)),
        );
      }
      leaders[set[0] ?? 0] = (leaders[set[0] ?? 0] ?? 0) + 1;
      for (const b of set) copies[b] = (copies[b] ?? 0) + 1;
      layers.push(set);
    }
  }
  return layers;
}

function least(counts: Int32Array, penalty: (b: number) => number): number {
  let best = 0;
  let bestCount = Infinity;
  for (let b = 0; b < counts.length; b++) {
    const count = counts[b] ?? 0;
    if (count >= bestCount) continue;
    const value = count + penalty(b);
    if (value >= bestCount) continue;
    best = b;
    bestCount = value;
  }
  return best;
}

/**
 * Leadership moves of the plain greedy: in every resource the broker that leads the most hands one to the one that
 * leads the fewest while they are two apart, then the same on the totals.
 */
export function greedyMoves(leaders: readonly Int32Array[], brokers: number): number {
  const total = new Int32Array(brokers);
  let moves = 0;
  for (const row of leaders) {
    for (let b = 0; b < brokers; b++) total[b] = (total[b] ?? 0) + (row[b] ?? 0);
  }
  const move = (row: Int32Array, from: number, to: number): void => {
    for (const counts of [row, total]) {
      counts[from] = (counts[from] ?? 0) - 1;
      counts[to] = (counts[to] ?? 0) + 1;
    }
    moves++;
  };
  for (const row of leaders) {
    for (let ends = extremes(row); ends.apart >= 2; ends = extremes(row)) move(row, ends.most, ends.fewest);
  }
  for (let ends = extremes(total); ends.apart >= 2; ends = extremes(total)) {
    const { most, fewest } = ends;
    const row = leaders.find((each) => (each[most] ?? 0) > (each[fewest] ?? 0));
    if (row === undefined) break;
    move(row, most, fewest);
  }
  return moves;
}

function extremes(counts: Int32Array): { most: number; fewest: number; apart: number } {
  let most = 0;
  let fewest = 0;
  for (let b = 1; b < counts.length; b++) {
    if ((counts[b] ?? 0) > (counts[most] ?? 0)) most = b;
    if ((counts[b] ?? 0) < (counts[fewest] ?? 0)) fewest = b;
  }
  return { most, fewest, apart: (counts[most] ?? 0) - (counts[fewest] ?? 0) };
}
