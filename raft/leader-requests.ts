import { decodeConfiguration, isJoint } from './configuration.ts';
import { RaftError } from './errors.ts';
import type { Configuration, Entry, MemberId } from './types.ts';

interface Request<T> {
  readonly deadlineMs: number;
  readonly resolve: (value: T) => void;
  readonly reject: (error: RaftError) => void;
}

/** What this member knows of the group at the end of a turn. */
export interface Leadership {
  readonly leaderId: MemberId | null;
  readonly leads: boolean;
  readonly transferringTo: MemberId | null;
}

/** The rare requests to a leader: hand over, change the members. At most one of each waits. */
export class LeaderRequests {
  #transfer: (Request<void> & { readonly to: MemberId }) | null = null;
  #change: (Request<Configuration> & { readonly index: number; readonly term: number }) | null = null;

  get nextDeadlineMs(): number {
    return Math.min(this.#transfer?.deadlineMs ?? Infinity, this.#change?.deadlineMs ?? Infinity);
  }

  addTransfer(to: MemberId, deadlineMs: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#transfer?.reject(new RaftError('outcomeUnknown', 'another transfer of leadership was begun'));
      this.#transfer = { to, deadlineMs, resolve, reject };
    });
  }

  addChange(place: { index: number; term: number }, deadlineMs: number): Promise<Configuration> {
    return new Promise((resolve, reject) => {
      this.#change?.reject(new RaftError('outcomeUnknown', 'another change of membership was begun'));
      this.#change = { ...place, deadlineMs, resolve, reject };
    });
  }

  /** Settles a transfer: another member leads, or the core has given it up. */
  observe(leadership: Leadership): void {
    const transfer = this.#transfer;
    if (transfer === null) return;
    if (leadership.leads && leadership.transferringTo === null) {
      this.#transfer = null;
      transfer.reject(
        new RaftError(
          'refused',
          `${transfer.to} did not take over within an election time-out: the leader has not changed`,
        ),
      );
    } else if (!leadership.leads && leadership.leaderId !== null) {
      this.#transfer = null;
      transfer.resolve();
    }
  }

  /** Settles a change: its entry, or the one that leaves the joint configuration it made, is applied. */
  applied(entry: Entry): void {
    const change = this.#change;
    if (change === null || entry.index < change.index) return;
    if (entry.index === change.index && entry.term !== change.term) {
      this.#change = null;
      change.reject(
        new RaftError('notCommitted', `an entry of term ${entry.term} took the change's place in the log`),
      );
      return;
    }
    if (entry.kind !== 'config') return;
    const configuration = decodeConfiguration(entry.data);
    if (isJoint(configuration)) return;
    this.#change = null;
    change.resolve(configuration);
  }

  /** Answers whether a transfer's deadline has passed: the core must give it up. */
  expire(nowMs: number): boolean {
    if (this.#change !== null && this.#change.deadlineMs <= nowMs) {
      this.#change.reject(
        new RaftError(
          'deadlineExceeded',
          'the deadline passed before the change was committed; its outcome is unknown',
        ),
      );
      this.#change = null;
    }
    if (this.#transfer === null || this.#transfer.deadlineMs > nowMs) return false;
    this.#transfer.reject(
      new RaftError('deadlineExceeded', `the deadline passed before ${this.#transfer.to} took over`),
    );
    this.#transfer = null;
    return true;
  }

  failAll(): void {
    this.#transfer?.reject(new RaftError('stopped', 'the node has stopped'));
    this.#change?.reject(new RaftError('outcomeUnknown', 'the node stopped before the change was applied'));
    this.#transfer = null;
    this.#change = null;
  }
}
