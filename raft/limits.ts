import { RaftInvariantError } from './errors.ts';

/** Every bound and period of one member. The relations between them are asserted at start. */
export interface RaftLimits {
  /** A leader's period of heartbeats. */
  readonly heartbeatMs: number;
  /** Silence after which a follower stands; drawn anew from [this, 2 × this). */
  readonly electionTimeoutMs: number;
  /** A lost leader's socket starts a pre-vote after a draw from [1, this]. */
  readonly failoverJitterMs: number;
  /** A whole snapshot unanswered for this long is sent again. */
  readonly snapshotRetryMs: number;
  /** One proposal's data. */
  readonly maxEntryBytes: number;
  /** Entry data of one append message; one entry always fits. */
  readonly maxAppendBytes: number;
  readonly maxAppendEntries: number;
  /** Unanswered append messages to one follower. */
  readonly maxInflightMessages: number;
  /** Entry data of those. */
  readonly maxInflightBytes: number;
  /** Entry data of one storage write; one entry always fits. */
  readonly maxWriteBytes: number;
  readonly maxWriteEntries: number;
  /** Entry data a leader holds above its commit; past it proposals are refused. */
  readonly maxUncommittedBytes: number;
  /** Proposals that wait for their apply at this member. */
  readonly maxPendingProposals: number;
  /** Read barriers that wait at this member. */
  readonly maxPendingReads: number;
  /** Entries applied in one turn of the event loop. */
  readonly maxApplyEntries: number;
  /** Entry data applied in one turn of the event loop; one entry always fits. */
  readonly maxApplyBytes: number;
  /** A snapshot is taken after this many entries since the last one… */
  readonly snapshotEveryEntries: number;
  /** …or this much entry data. */
  readonly snapshotEveryBytes: number;
  /** Entries kept in memory behind a snapshot, so that a follower a little behind needs none. */
  readonly trailingEntries: number;
  /** Entry data of those. */
  readonly trailingBytes: number;
}

export const DEFAULT_LIMITS: RaftLimits = {
  heartbeatMs: 100,
  electionTimeoutMs: 1_000,
  failoverJitterMs: 30,
  snapshotRetryMs: 10_000,
  maxEntryBytes: 1024 * 1024,
  maxAppendBytes: 1024 * 1024,
  maxAppendEntries: 4_096,
  maxInflightMessages: 64,
  maxInflightBytes: 16 * 1024 * 1024,
  maxWriteBytes: 4 * 1024 * 1024,
  maxWriteEntries: 8_192,
  maxUncommittedBytes: 64 * 1024 * 1024,
  maxPendingProposals: 16_384,
  maxPendingReads: 65_536,
  maxApplyEntries: 512,
  maxApplyBytes: 128 * 1024,
  snapshotEveryEntries: 50_000,
  snapshotEveryBytes: 64 * 1024 * 1024,
  trailingEntries: 5_000,
  trailingBytes: 16 * 1024 * 1024,
};

/** Fills in the defaults and asserts how the limits hang together. */
export function checkedLimits(given: Partial<RaftLimits> = {}): RaftLimits {
  const { electionTimeoutMs, failoverJitterMs, snapshotRetryMs } = { ...DEFAULT_LIMITS, ...given };
  const limits: RaftLimits = {
    ...DEFAULT_LIMITS,
    // These two follow the election timeout where only that is chosen.
    failoverJitterMs: Math.max(1, Math.min(failoverJitterMs, electionTimeoutMs - 1)),
    snapshotRetryMs: Math.max(snapshotRetryMs, electionTimeoutMs),
    ...given,
  };
  for (const [name, value] of Object.entries(limits)) {
    const least = name === 'trailingEntries' ? 0 : 1;
    if (!Number.isSafeInteger(value) || value < least)
      throw new RaftInvariantError(`limit ${name} is ${value}`);
  }
  const relations: [holds: boolean, text: string][] = [
    [limits.electionTimeoutMs >= 3 * limits.heartbeatMs, 'electionTimeoutMs >= 3 * heartbeatMs'],
    [limits.failoverJitterMs < limits.electionTimeoutMs, 'failoverJitterMs < electionTimeoutMs'],
    [limits.snapshotRetryMs >= limits.electionTimeoutMs, 'snapshotRetryMs >= electionTimeoutMs'],
    [limits.maxInflightBytes >= limits.maxAppendBytes, 'maxInflightBytes >= maxAppendBytes'],
    [limits.maxInflightBytes >= limits.maxEntryBytes, 'maxInflightBytes >= maxEntryBytes'],
    [limits.maxUncommittedBytes >= limits.maxEntryBytes, 'maxUncommittedBytes >= maxEntryBytes'],
    [limits.trailingEntries <= limits.snapshotEveryEntries, 'trailingEntries <= snapshotEveryEntries'],
  ];
  for (const [holds, text] of relations) {
    if (!holds) throw new RaftInvariantError(`limits must satisfy ${text}`);
  }
  return limits;
}
