import type { Clock } from '../../raft/index.ts';
import { compareStrings, resourceKey, splitShard } from '../../placement/index.ts';
import type { StateView } from '../state/index.ts';
import { inSlices, perRevisionInSlices } from './rpc-per-revision.ts';
import { PASSING, unservedReason } from './unserved.ts';

/** How a resource's shards and copies stand. */
export interface ReplicationRow {
  /** `stream:orders`. */
  readonly resource: string;
  readonly copiesWanted: number;
  readonly copiesHeld: number;
  readonly copiesInSync: number;
  /** Shards that nobody serves: not placed, or for one of `UnservedReason`. */
  readonly leaderless: number;
  /** Of these, the ones whose leader opens them or is fenced for a hand-over. */
  readonly handingOver: number;
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
      handingOver: 0,
      short: shards,
    });
  }
  const lifecycles = new Map(Array.from(state.brokers, ([id, { lifecycle }]) => [id, lifecycle]));
  // Rows are immutable: a list of them is the state as it is now.
  await inSlices(state.assignments.list(), clock, (assignment) => {
    const { shard, replicas, inSync } = assignment;
    const key = splitShard(shard).resource;
    const row = rows.get(key);
    if (row === undefined) return;
    row.copiesHeld += replicas.length;
    row.copiesInSync += inSync.length;
    const reason = unservedReason(assignment, (broker) => lifecycles.get(broker));
    if (reason === null) row.leaderless -= 1;
    else if (PASSING.has(reason)) row.handingOver += 1;
    if (inSync.length >= (wanted.get(key) ?? 0)) row.short -= 1;
  });
  return [...rows.values()].sort((a, b) => compareStrings(a.resource, b.resource));
}

/** The sums of all rows. */
export function sumReplication(
  rows: readonly ReplicationRow[],
): Pick<ReplicationRow, 'leaderless' | 'handingOver' | 'short'> {
  const sum = { leaderless: 0, handingOver: 0, short: 0 };
  for (const row of rows) {
    sum.leaderless += row.leaderless;
    sum.handingOver += row.handingOver;
    sum.short += row.short;
  }
  return sum;
}
