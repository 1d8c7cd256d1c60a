import type { MemberId } from './types.ts';

/**
 * What a caller of the node can be told. Only `deadlineExceeded` and `outcomeUnknown` leave open whether the
 * proposal took effect; after every other code it did not.
 *
 * - `notLeader`: this member does not lead; `leaderId` says who does, where known.
 * - `notCommitted`: another leader's entry took the proposal's place in the log.
 * - `overloaded`: a limit on waiting work is reached; try again later.
 * - `tooLarge`: the data can never be taken.
 * - `deadlineExceeded`: the deadline passed first.
 * - `outcomeUnknown`: a snapshot passed the proposal's index, or the node stopped while it waited.
 * - `refused`: the configuration change or transfer asked for is not allowed now; the message says why.
 * - `stopped`: the node has stopped, and the request was never started.
 */
export type RaftErrorCode =
  | 'notLeader'
  | 'notCommitted'
  | 'overloaded'
  | 'tooLarge'
  | 'deadlineExceeded'
  | 'outcomeUnknown'
  | 'refused'
  | 'stopped';

export class RaftError extends Error {
  readonly code: RaftErrorCode;
  /** Who leads as far as this member knows. */
  readonly leaderId: MemberId | null;

  constructor(code: RaftErrorCode, message: string, leaderId: MemberId | null = null) {
    super(message);
    this.name = 'RaftError';
    this.code = code;
    this.leaderId = leaderId;
  }
}

/** A broken invariant: a fault of ours or of the store. The node stops; nothing it knows may be trusted. */
export class RaftInvariantError extends Error {
  constructor(message: string) {
    super(`raft invariant broken: ${message}`);
    this.name = 'RaftInvariantError';
  }
}
