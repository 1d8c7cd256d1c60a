import type { Configuration, MemberId, Role } from './types.ts';

export type ProgressState = 'probe' | 'replicate' | 'snapshot';

/** What a leader knows of one peer. */
export interface ProgressStatus {
  readonly state: ProgressState;
  readonly match: number;
  readonly next: number;
  readonly inflightMessages: number;
  readonly inflightBytes: number;
  /** It answered within the last election timeout. */
  readonly active: boolean;
  /** It knows that it lost entries it had acknowledged, and counts for nothing until it holds them again. */
  readonly lost: boolean;
}

/** One member's view of itself, for `status`, health and metrics. */
export interface RaftStatus {
  readonly id: MemberId;
  readonly role: Role;
  readonly term: number;
  readonly votedFor: MemberId | null;
  readonly leaderId: MemberId | null;
  readonly commitIndex: number;
  readonly appliedIndex: number;
  readonly lastIndex: number;
  /** Last entry on this member's disk. */
  readonly durableIndex: number;
  readonly snapshotIndex: number;
  /** The newest commit heard from any leader (its own when it leads); 0 before the first contact. */
  readonly leaderCommit: number;
  /** Since start: a leader said how far it had committed, and that much is applied here (hazard 5). Stays true. */
  readonly caughtUp: boolean;
  /** It leads, and the no-op of its term is applied. */
  readonly noopApplied: boolean;
  readonly configuration: Configuration;
  /** Empty unless it leads; keys sorted. */
  readonly progress: Readonly<Record<MemberId, ProgressStatus>>;
  /** Entry data above the commit, as counted against `maxUncommittedBytes`. */
  readonly uncommittedBytes: number;
  readonly pendingProposals: number;
  readonly pendingReads: number;
  /** A transfer of leadership under way. */
  readonly transferringTo: MemberId | null;
}

/** Told on every change of one of its fields. */
export interface RaftState {
  readonly role: Role;
  readonly term: number;
  readonly leaderId: MemberId | null;
  /** True once a leader has applied the no-op of its term: only then may it act as leader. */
  readonly noopApplied: boolean;
}

export function sameState(a: RaftState, b: RaftState): boolean {
  return (
    a.role === b.role && a.term === b.term && a.leaderId === b.leaderId && a.noopApplied === b.noopApplied
  );
}
