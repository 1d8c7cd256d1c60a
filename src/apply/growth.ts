import { MAX_STATE_BYTES, SHARD_BYTES } from '../command/index.ts';
import { canonicalValue, hashRow, type ClusterState } from '../state/index.ts';
import { refuse, type Outcome } from './outcome.ts';

/** What a row takes in a snapshot, as the state counts it. */
export function bytesOf(row: unknown): number {
  return hashRow('', canonicalValue(row)).bytes;
}

/**
 * Refuses what would make the state too large for the snapshot that brings a member back. Shards that are accepted and not
 * placed yet count as placed. What changes or removes rows is never refused for it.
 */
export function growthProblem(state: ClusterState, what: string, bytes: number): Outcome | null {
  const planned = state.bytes + state.unplacedShards * SHARD_BYTES;
  if (bytes <= 0 || planned + bytes <= MAX_STATE_BYTES) return null;
  return refuse(
    'limit_exceeded',
    `${what} takes ${bytes} bytes of the state, which has ${planned} of at most ${MAX_STATE_BYTES}: ` +
      'delete resources, shorten labels or abort imports first',
  );
}
