import type { Assignment } from '../placement/index.ts';
import { brokersOf, resourcesOf, skewed, type Layout } from './planner-layouts.ts';
import { greedyMoves, leastLoaded, striped, type Layers } from './planner-others.ts';
import { keyOf } from './planner-scenes.ts';
import type { PlacerRow } from './planner-table.ts';
import { timed } from './planner-timing.ts';

/** What evenkeel says of its own moves. */
interface OwnMoves {
  readonly join: number | null;
  readonly skew: number | null;
}

/** The three placers on one layout: where they place, and the leaderships they move when a broker joins, and to level a skew. */
export function comparePlacers(
  layout: Layout,
  rows: readonly Assignment[],
  own: OwnMoves,
): Omit<PlacerRow, 'kind'>[] {
  const brokers = brokersOf(layout.brokers);
  const joined = brokersOf(layout.brokers + 1);
  const resources = resourcesOf(layout);
  const ours = layersOf(layout, rows);
  const uneven = layersOf(layout, skewed(rows));
  const stripes = timed(() => striped(brokers, resources));
  const again = striped(joined, resources);
  const greedy = timed(() => leastLoaded(brokers, resources));
  const toLevel = (layers: Layers, count: number): number =>
    greedyMoves(leaderCounts(layers, layout, count), count);
  return [
    {
      placer: 'evenkeel',
      cpuMs: null,
      ...spreads(ours, layout),
      movesToJoin: own.join,
      movesToLevel: own.skew,
    },
    {
      placer: 'striped round robin, as Kafka places, all placed anew',
      cpuMs: stripes.cpuMs,
      ...spreads(stripes.value, layout),
      movesToJoin: moved(stripes.value, again),
      movesToLevel: moved(uneven, stripes.value),
    },
    {
      placer: 'plain most-to-least greedy',
      cpuMs: greedy.cpuMs,
      ...spreads(greedy.value, layout),
      movesToJoin: toLevel(greedy.value, joined.length),
      movesToLevel: toLevel(uneven, brokers.length),
    },
  ];
}

/** In the order of the other placers' answers. */
function layersOf(layout: Layout, rows: readonly Assignment[]): Layers {
  const index = (id: string): number => Number(id.slice(1)) - 1;
  const sets = new Map(
    rows.map(({ shard, leader, replicas }) => {
      const rest = replicas.filter((id) => id !== leader);
      return [shard, [leader, ...rest].map(index)];
    }),
  );
  return resourcesOf(layout).flatMap((resource) =>
    Array.from({ length: resource.shards }, (_, n) => sets.get(`${keyOf(resource)}/${n}`) ?? []),
  );
}

function moved(from: Layers, to: Layers): number {
  return from.filter((set, i) => set[0] !== to[i]?.[0]).length;
}

function leaderCounts(layers: Layers, layout: Layout, brokers: number): Int32Array[] {
  let at = 0;
  return resourcesOf(layout).map(({ shards }) => {
    const row = new Int32Array(brokers);
    for (let n = 0; n < shards; n++) {
      const leader = layers[at++]?.[0] ?? 0;
      row[leader] = (row[leader] ?? 0) + 1;
    }
    return row;
  });
}

function spreads(layers: Layers, layout: Layout): Pick<PlacerRow, 'copies' | 'leaders' | 'apart'> {
  const copies = new Int32Array(layout.brokers);
  const leaders = new Int32Array(layout.brokers);
  for (const set of layers) {
    for (const b of set) copies[b] = (copies[b] ?? 0) + 1;
    leaders[set[0] ?? 0] = (leaders[set[0] ?? 0] ?? 0) + 1;
  }
  let apart = 0;
  for (const row of leaderCounts(layers, layout, layout.brokers))
    apart = Math.max(apart, most(row) - fewest(row));
  return { copies: [fewest(copies), most(copies)], leaders: [fewest(leaders), most(leaders)], apart };
}

function most(counts: Int32Array): number {
  return counts.reduce((a, b) => Math.max(a, b), 0);
}

function fewest(counts: Int32Array): number {
  return counts.reduce((a, b) => Math.min(a, b), Infinity);
}
