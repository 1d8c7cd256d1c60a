import { DEFAULT_POLICY, shardKey } from '../../../placement/model.ts';
import type { Assignment, Broker, Policy, Resource, ZonePolicy } from '../../../placement/model.ts';
import { View } from '../../../placement/view.ts';
import {
  copyTargets,
  dealFollowers,
  levelStep,
  vectorTail,
  vectorTailAfter,
  zoneStep,
  type CopyTargets,
  type FollowerMove,
  type VectorTail,
} from '../../../placement/copies/index.ts';

export interface BrokerSpec {
  readonly id: string;
  readonly zone?: string | null;
  readonly weight?: number;
  readonly cap?: number | null;
  readonly lifecycle?: Broker['lifecycle'];
}

export interface ResourceSpec {
  readonly name: string;
  readonly shards: number;
  readonly factor: number;
  readonly policy?: ZonePolicy;
}

export interface Cluster {
  readonly brokers: readonly Broker[];
  readonly resources: readonly Resource[];
  readonly assignments: readonly Assignment[];
  readonly policy: Policy;
}

export function cluster(
  brokers: readonly BrokerSpec[],
  resources: readonly ResourceSpec[],
  policy: Partial<Policy> = {},
): Cluster {
  return {
    brokers: brokers.map((b) => ({
      id: b.id,
      zone: b.zone ?? null,
      lifecycle: b.lifecycle ?? 'live',
      drain: false,
      maxShards: b.cap ?? null,
      weight: b.weight ?? 1,
      incarnation: 1,
      registeredAtMs: 0,
      downSinceMs: null,
    })),
    resources: resources.map((r) => ({
      kind: 'stream',
      name: r.name,
      shards: r.shards,
      replicationFactor: r.factor,
      durable: true,
      zonePolicy: r.policy ?? null,
      labels: {},
    })),
    assignments: [],
    policy: { ...DEFAULT_POLICY, ...policy },
  };
}

/** `racks('AABBC')`: brokers b1, b2, … in those racks; `-` for none. */
export function racks(letters: string): BrokerSpec[] {
  return letters.split('').map((zone, i) => ({ id: `b${i + 1}`, zone: zone === '-' ? null : zone }));
}

export function viewOf(from: Cluster): View {
  return new View(
    { ...from, nowMs: 0, firstRegisteredAtMs: 0, phase: 0 },
    { shards: new Map(), leasedUntilMs: new Map(), unheard: new Set(), unconfirmed: new Map() },
  );
}

/** A row, all in sync and settled. The leader is the first copy. */
export function row(shard: string, replicas: readonly string[]): Assignment {
  return {
    shard,
    leader: replicas[0] ?? '',
    replicas,
    inSync: replicas,
    generation: 1,
    epoch: 1,
    state: 'active',
    failedMoves: 0,
    move: null,
  };
}

export function withRows(from: Cluster, assignments: readonly Assignment[]): Cluster {
  return { ...from, assignments };
}

/** Level leaders for every shard without a row, then their followers, as the first pass of a cluster does. */
export function place(from: Cluster): { view: View; targets: CopyTargets } {
  const view = viewOf(from);
  placeLeaders(view);
  const targets = copyTargets(view);
  const fresh: number[] = [];
  for (let s = 0; s < view.shardCount; s++) {
    if (view.rows[s] === undefined && view.leader[s] !== -1) fresh.push(s);
  }
  dealFollowers(view, targets, fresh);
  return { view, targets };
}

/** Leaders at floor or ceiling of every resource's share, the ceilings to the fewest in total; scrambled order. */
export function placeLeaders(view: View): void {
  const { liveList, liveWeight, weight } = view.brokers;
  for (let r = 0; r < view.resourceCount; r++) {
    const fresh: number[] = [];
    for (let s = view.firstShard[r] ?? 0; s < (view.firstShard[r + 1] ?? 0); s++)
      if (view.leader[s] === -1) fresh.push(s);
    const quota = new Map(
      [...liveList].map((b) => [b, Math.floor((fresh.length * (weight[b] ?? 1)) / liveWeight)]),
    );
    const rest = [...liveList].filter((b) => (fresh.length * (weight[b] ?? 1)) % liveWeight > 0);
    const load = (b: number): number => (view.tally.leaders[b] ?? 0) / (weight[b] ?? 1);
    rest.sort((a, b) => load(a) - load(b) || ((a * 7 + r * 5) % 11) - ((b * 7 + r * 5) % 11) || a - b);
    let left = fresh.length - [...quota.values()].reduce((a, n) => a + n, 0);
    for (const b of rest) if (left-- > 0) quota.set(b, (quota.get(b) ?? 0) + 1);
    const order = [...liveList];
    fresh.forEach((s, i) => {
      for (let k = 0; k < order.length; k++) {
        const b = order[(i * 7 + k) % order.length] ?? 0;
        if ((quota.get(b) ?? 0) === 0 || view.room(b) <= 0) continue;
        quota.set(b, (quota.get(b) ?? 0) - 1);
        view.place(s, b);
        return;
      }
    });
  }
}

/** The view's layout as rows, for the next pass. */
export function rowsOf(view: View): Assignment[] {
  const rows: Assignment[] = [];
  for (let r = 0; r < view.resourceCount; r++) {
    const first = view.firstShard[r] ?? 0;
    for (let s = first; s < (view.firstShard[r + 1] ?? 0); s++) {
      const copies = view.finished(s);
      if (copies.length === 0) continue;
      const leader = view.nextLeader(s);
      const ids = [leader, ...copies.filter((b) => b !== leader)].map((b) => view.brokers.id(b));
      rows.push(row(shardKey(view.resourceRow(r), s - first), ids));
    }
  }
  return rows;
}

export interface Taken {
  readonly move: FollowerMove;
  readonly shard: string;
  readonly before: VectorTail;
  readonly after: VectorTail;
}

/** Steps 6 and 7, one move a pass and each carried out at once, until nothing is wanted. */
export function settle(from: Cluster, maxMoves = 2_000): { end: Cluster; taken: Taken[]; view: View } {
  let now = from;
  const taken: Taken[] = [];
  for (;;) {
    const view = viewOf(now);
    const targets = copyTargets(view);
    const any = (): boolean => true;
    const move = zoneStep(view, targets, any) ?? levelStep(view, targets, any);
    if (move === null) return { end: now, taken, view };
    if (taken.length === maxMoves) throw new Error(`no end after ${maxMoves} moves`);
    const after = [...view.finished(move.shard).filter((b) => b !== move.from), move.to];
    const shard = view.shardKey(move.shard);
    const before = vectorTail(targets);
    taken.push({ move, shard, before, after: vectorTailAfter(targets, move.shard, after) });
    const ids = after.map((b) => view.brokers.id(b));
    now = withRows(
      now,
      now.assignments.map((a) => (a.shard === shard ? { ...a, replicas: ids, inSync: ids } : a)),
    );
  }
}

/** Negative if the first falls below the second, lexicographically. */
export function compareTails(a: VectorTail, b: VectorTail): number {
  return a.zones - b.zones || a.copies - b.copies || a.chain - b.chain || a.totals - b.totals;
}

/** Copies by broker id. */
export function copiesById(view: View): Record<string, number> {
  return Object.fromEntries(view.brokers.ids.map((id, b) => [id, view.tally.copies[b] ?? 0]));
}

/** How many shards span how many zones. */
export function shardsByZones(view: View): Record<number, number> {
  const counts: Record<number, number> = {};
  for (let s = 0; s < view.shardCount; s++) {
    const zones = new Set(view.finished(s).map((b) => view.brokers.zone[b])).size;
    counts[zones] = (counts[zones] ?? 0) + 1;
  }
  return counts;
}

/** Shards that each two brokers share, in the order of their indices. */
export function pairCounts(view: View): number[] {
  const counts: number[] = [];
  for (let a = 0; a < view.brokers.count; a++) {
    for (let b = a + 1; b < view.brokers.count; b++) {
      let shared = 0;
      for (let s = 0; s < view.shardCount; s++) {
        const set = view.finished(s);
        if (set.includes(a) && set.includes(b)) shared++;
      }
      counts.push(shared);
    }
  }
  return counts;
}
