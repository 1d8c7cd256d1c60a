import { compareStrings, resourceKey, splitShard } from '../../placement/index.ts';
import type { StateView } from '../state/index.ts';
import { perRevision } from './rpc-per-revision.ts';

/** How a resource's shards and copies stand. */
export interface ReplicationRow {
  /** `stream:orders`. */
  readonly resource: string;
  readonly copiesWanted: number;
  readonly copiesHeld: number;
  readonly copiesInSync: number;
  /** Shards not placed, or whose leader's broker is down or has left. */
  readonly leaderless: number;
  /** Shards with fewer in-sync copies than the resource wants. */
  readonly short: number;
}

/** A row a resource, by key. */
export const countReplication = perRevision(takeReplication);

function takeReplication(state: StateView): ReplicationRow[] {
  const rows = new Map<string, { -readonly [K in keyof ReplicationRow]: ReplicationRow[K] }>();
  for (const resource of state.resources.values()) {
    const key = resourceKey(resource);
    const { shards, replicationFactor } = resource;
    rows.set(key, {
      resource: key,
      copiesWanted: shards * replicationFactor,
      copiesHeld: 0,
      copiesInSync: 0,
      // Every shard is both until an assignment shows otherwise.
      leaderless: shards,
      short: shards,
    });
  }
  for (const { shard, leader, replicas, inSync } of state.assignments.values()) {
    const key = splitShard(shard).resource;
    const row = rows.get(key);
    if (row === undefined) continue;
    row.copiesHeld += replicas.length;
    row.copiesInSync += inSync.length;
    const lifecycle = state.brokers.get(leader)?.lifecycle;
    if (lifecycle === 'live' || lifecycle === 'draining') row.leaderless -= 1;
    const wanted = state.resources.get(key)?.replicationFactor ?? 0;
    if (inSync.length >= wanted) row.short -= 1;
  }
  return [...rows.values()].sort((a, b) => compareStrings(a.resource, b.resource));
}

/** The sums of all rows. */
export function sumReplication(rows: readonly ReplicationRow[]): { leaderless: number; short: number } {
  return rows.reduce(
    (sum, { leaderless, short }) => ({ leaderless: sum.leaderless + leaderless, short: sum.short + short }),
    { leaderless: 0, short: 0 },
  );
}
