import type { Clock } from '../../raft/index.ts';
import { compareStrings, resourceKey, splitShard } from '../../placement/index.ts';
import type { StateView } from '../state/index.ts';
import { inSlices, perRevisionInSlices } from './rpc-per-revision.ts';

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
export const countReplication = perRevisionInSlices(takeReplication);

async function takeReplication(state: StateView, clock: Clock): Promise<ReplicationRow[]> {
  const wanted = new Map<string, number>();
  const rows = new Map<string, { -readonly [K in keyof ReplicationRow]: ReplicationRow[K] }>();
  for (const resource of state.resources.values()) {
    const key = resourceKey(resource);
    const { shards, replicationFactor } = resource;
    wanted.set(key, replicationFactor);
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
  const lifecycles = new Map(Array.from(state.brokers, ([id, { lifecycle }]) => [id, lifecycle]));
  // Rows are immutable: a list of them is the state as it is now.
  await inSlices(state.assignments.list(), clock, ({ shard, leader, replicas, inSync }) => {
    const key = splitShard(shard).resource;
    const row = rows.get(key);
    if (row === undefined) return;
    row.copiesHeld += replicas.length;
    row.copiesInSync += inSync.length;
    const lifecycle = lifecycles.get(leader);
    if (lifecycle === 'live' || lifecycle === 'draining') row.leaderless -= 1;
    if (inSync.length >= (wanted.get(key) ?? 0)) row.short -= 1;
  });
  return [...rows.values()].sort((a, b) => compareStrings(a.resource, b.resource));
}

/** The sums of all rows. */
export function sumReplication(rows: readonly ReplicationRow[]): { leaderless: number; short: number } {
  return rows.reduce(
    (sum, { leaderless, short }) => ({ leaderless: sum.leaderless + leaderless, short: sum.short + short }),
    { leaderless: 0, short: 0 },
  );
}
