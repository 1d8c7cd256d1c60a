import type { MoveRole } from './model.ts';

/** What one pass does not start though it would, since it would be made good later; by shard key. */
export interface Holds {
  /** Shards none of whose moves of the role start, and why, for people. */
  readonly waits: Readonly<Record<MoveRole, ReadonlyMap<string, string>>>;
  /** Brokers that are passed over where a drained leadership may go anywhere. */
  readonly barred: ReadonlyMap<string, ReadonlySet<string>>;
}

const NOTHING: ReadonlyMap<string, never> = new Map<string, never>();

export const NO_HOLDS: Holds = { waits: { leader: NOTHING, follower: NOTHING }, barred: NOTHING };
