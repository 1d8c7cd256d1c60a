import { RaftError } from './errors.ts';
import type { RaftLimits } from './limits.ts';
import type { Entry } from './types.ts';

/** A proposal's place in the log and what its apply answered. */
export interface Applied {
  readonly index: number;
  readonly term: number;
  readonly result: unknown;
}

interface Proposal {
  readonly data: Uint8Array;
  readonly deadlineMs: number;
  readonly resolve: (applied: Applied) => void;
  readonly reject: (error: RaftError) => void;
  term: number;
}

/** Proposals of this member from the call to the apply of exactly their (index, term). */
export class PendingProposals {
  readonly #limits: RaftLimits;
  /** Not in the log yet. */
  #inbox: Proposal[] = [];
  readonly #placed = new Map<number, Proposal>();
  inboxBytes = 0;
  /** The earliest of all, or earlier. */
  nextDeadlineMs = Infinity;

  constructor(limits: RaftLimits) {
    this.#limits = limits;
  }

  get size(): number {
    return this.#inbox.length + this.#placed.size;
  }

  /** Why no more can be taken, or `null`; `uncommittedBytes` are those in the log already (hazard 35). */
  refusal(data: Uint8Array, uncommittedBytes: number): RaftError | null {
    const { maxEntryBytes, maxPendingProposals, maxUncommittedBytes } = this.#limits;
    if (data.length > maxEntryBytes) {
      return new RaftError(
        'tooLarge',
        `a proposal of ${data.length} bytes is over the limit of ${maxEntryBytes}`,
      );
    }
    if (this.size >= maxPendingProposals) {
      return new RaftError('overloaded', `${maxPendingProposals} proposals wait already; try again later`);
    }
    const waitingBytes = uncommittedBytes + this.inboxBytes;
    if (waitingBytes + data.length > maxUncommittedBytes) {
      return new RaftError('overloaded', `${waitingBytes} bytes wait to be committed; try again later`);
    }
    return null;
  }

  add(data: Uint8Array, deadlineMs: number): Promise<Applied> {
    return new Promise((resolve, reject) => {
      this.#inbox.push({ data, deadlineMs, resolve, reject, term: 0 });
      this.inboxBytes += data.length;
      this.nextDeadlineMs = Math.min(this.nextDeadlineMs, deadlineMs);
    });
  }

  /** Hands all that wait to `append`, which answers the index of the first. */
  place(term: number, append: (data: Uint8Array[]) => number): void {
    if (this.#inbox.length === 0) return;
    const batch = this.#inbox;
    this.#inbox = [];
    this.inboxBytes = 0;
    let index = append(batch.map((proposal) => proposal.data));
    for (const proposal of batch) {
      proposal.term = term;
      this.#truncated(index);
      this.#placed.set(index, proposal);
      index += 1;
    }
  }

  applied(entry: Entry, result: unknown): void {
    const proposal = this.#placed.get(entry.index);
    if (proposal === undefined) return;
    this.#placed.delete(entry.index);
    if (proposal.term !== entry.term) {
      const why = `an entry of term ${entry.term} took its place in the log`;
      proposal.reject(
        new RaftError('notCommitted', `the proposal at ${entry.index} of term ${proposal.term}: ${why}`),
      );
      return;
    }
    proposal.resolve({ index: entry.index, term: entry.term, result });
  }

  /** A snapshot went past: what it holds of these is unknown. */
  skippedTo(index: number): void {
    for (const [at, proposal] of this.#placed) {
      if (at > index) continue;
      this.#placed.delete(at);
      proposal.reject(
        new RaftError('outcomeUnknown', `a snapshot of entry ${index} went past the proposal at ${at}`),
      );
    }
  }

  /** Called every turn of a member that does not lead: an error is made, with its stack, only where one is needed. */
  refuseInbox(why: () => RaftError): void {
    if (this.#inbox.length === 0) return;
    const refused = this.#inbox;
    this.#inbox = [];
    this.inboxBytes = 0;
    const error = why();
    for (const proposal of refused) proposal.reject(error);
  }

  expire(nowMs: number): void {
    if (nowMs < this.nextDeadlineMs) return;
    this.nextDeadlineMs = Infinity;
    const isDue = (proposal: Proposal): boolean => {
      if (proposal.deadlineMs > nowMs) {
        this.nextDeadlineMs = Math.min(this.nextDeadlineMs, proposal.deadlineMs);
        return false;
      }
      proposal.reject(
        new RaftError(
          'deadlineExceeded',
          'the deadline passed before the proposal was applied; its outcome is unknown',
        ),
      );
      return true;
    };
    this.#inbox = this.#inbox.filter((proposal) => !isDue(proposal));
    this.inboxBytes = this.#inbox.reduce((sum, proposal) => sum + proposal.data.length, 0);
    for (const [index, proposal] of this.#placed) if (isDue(proposal)) this.#placed.delete(index);
  }

  failAll(): void {
    this.refuseInbox(() => new RaftError('stopped', 'the node has stopped'));
    for (const proposal of this.#placed.values()) {
      proposal.reject(new RaftError('outcomeUnknown', 'the node stopped before the proposal was applied'));
    }
    this.#placed.clear();
  }

  /**
   * This member's log lost the proposal, and it leads again. That proves nothing: another member may still hold
   * the entry and bring it to commit. Only another entry applied in its place would.
   */
  #truncated(index: number): void {
    const proposal = this.#placed.get(index);
    if (proposal === undefined) return;
    this.#placed.delete(index);
    const what = `the proposal at ${index} of term ${proposal.term} left this member's log`;
    proposal.reject(new RaftError('outcomeUnknown', `${what}; another member may still commit it`));
  }
}
