import { compareStrings, splitShard, type Levels } from '../../placement/index.ts';
import type { StateView } from '../state/index.ts';

type Counts = Record<string, number>;

/**
 * Leaders and copies as they stand. A broker has a column when it is live or still holds something;
 * spreads are taken over live brokers only, since no other is meant to hold its share.
 */
export function countLevels(state: StateView): Levels {
  const columns = columnsOf(state);
  const live = columns.filter((id) => state.brokers.get(id)?.lifecycle === 'live');
  const zero = (): Counts => Object.fromEntries(columns.map((id) => [id, 0]));
  const leaders: Record<string, Counts> = {};
  const copies: Record<string, Counts> = {};
  for (const key of [...state.resources.keys()].sort(compareStrings)) {
    leaders[key] = zero();
    copies[key] = zero();
  }
  const leadersTotal = zero();
  const copiesTotal = zero();
  let minZonesPerShard = Infinity;
  for (const { shard, leader, replicas } of state.assignments.values()) {
    const { resource } = splitShard(shard);
    increment(leaders[resource], leader);
    increment(leadersTotal, leader);
    const zones = new Set<string>();
    for (const id of replicas) {
      increment(copies[resource], id);
      increment(copiesTotal, id);
      zones.add(zoneOf(state, id));
    }
    minZonesPerShard = Math.min(minZonesPerShard, zones.size);
  }
  return {
    leaders,
    leadersTotal,
    copiesTotal,
    maxLeaderSpreadPerResource: maxSpread(leaders, live),
    leaderSpreadTotal: spread(leadersTotal, live),
    copySpreadTotal: spread(copiesTotal, live),
    maxCopySpreadPerResource: maxSpread(copies, live),
    minZonesPerShard: minZonesPerShard === Infinity ? 0 : minZonesPerShard,
  };
}

function columnsOf(state: StateView): string[] {
  const ids = new Set<string>();
  for (const { id, lifecycle } of state.brokers.values()) if (lifecycle === 'live') ids.add(id);
  for (const { leader, replicas } of state.assignments.values()) {
    ids.add(leader);
    for (const id of replicas) ids.add(id);
  }
  return [...ids].sort(compareStrings);
}

/** A broker without a zone is a zone of its own; the prefixes keep the two kinds of name apart. */
function zoneOf(state: StateView, id: string): string {
  const zone = state.brokers.get(id)?.zone ?? null;
  return zone === null ? `broker:${id}` : `zone:${zone}`;
}

function increment(counts: Counts | undefined, id: string): void {
  if (counts !== undefined) counts[id] = (counts[id] ?? 0) + 1;
}

function spread(counts: Counts, ids: readonly string[]): number {
  const values = ids.map((id) => counts[id] ?? 0);
  return values.length === 0 ? 0 : Math.max(...values) - Math.min(...values);
}

function maxSpread(byResource: Readonly<Record<string, Counts>>, ids: readonly string[]): number {
  return Object.values(byResource).reduce((most, counts) => Math.max(most, spread(counts, ids)), 0);
}
