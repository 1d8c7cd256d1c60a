import type { RaftLimits } from './limits.ts';
import type { ProgressState, ProgressStatus } from './status.ts';

/** Append messages sent and not yet answered, oldest first. */
class Inflight {
  #lastIndexes: number[] = [];
  #bytes: number[] = [];
  #head = 0;
  totalBytes = 0;

  get count(): number {
    return this.#lastIndexes.length - this.#head;
  }

  add(lastIndex: number, bytes: number): void {
    this.#lastIndexes.push(lastIndex);
    this.#bytes.push(bytes);
    this.totalBytes += bytes;
  }

  freeUpTo(index: number): void {
    while (this.#head < this.#lastIndexes.length && (this.#lastIndexes[this.#head] ?? 0) <= index) {
      this.totalBytes -= this.#bytes[this.#head] ?? 0;
      this.#head += 1;
    }
    if (this.#head === this.#lastIndexes.length || this.#head > 1024) {
      this.#lastIndexes = this.#lastIndexes.slice(this.#head);
      this.#bytes = this.#bytes.slice(this.#head);
      this.#head = 0;
    }
  }

  reset(): void {
    this.#lastIndexes = [];
    this.#bytes = [];
    this.#head = 0;
    this.totalBytes = 0;
  }
}

/**
 * What a leader knows of one peer. 0 ≤ match < next. `probe`: one append at a time until the logs are known
 * to meet; `replicate`: a window of them; `snapshot`: none until the snapshot is answered.
 */
export class Progress {
  state: ProgressState = 'probe';
  match = 0;
  next: number;
  /** The one append that shows whether the logs meet is out. */
  probeSent = false;
  /** Since the last append to it. */
  sinceAppendMs = 0;
  /** Lost peer: the probe was repeated without entries, and its answer lets the entries go again. */
  #repeated = false;
  pendingSnapshotIndex = 0;
  snapshotElapsedMs = 0;
  /** Time since it last answered this leader. */
  silentMs = Infinity;
  lost = false;
  /** The newest heartbeat round it answered. */
  ackedRound = 0;
  /** The commit last sent to it. */
  sentCommit = 0;
  readonly inflight = new Inflight();

  constructor(next: number) {
    this.next = next;
  }

  becomeProbe(): void {
    // After a snapshot the follower is known to reach its index only once it says so: start where it may be.
    if (this.state === 'snapshot') this.next = Math.max(this.match, this.pendingSnapshotIndex) + 1;
    // A probe that begins again keeps its place: where nothing is known yet, `match` says nothing.
    else if (this.state === 'replicate') this.next = this.match + 1;
    this.#enter('probe');
  }

  becomeReplicate(): void {
    this.next = this.match + 1;
    this.#enter('replicate');
  }

  becomeSnapshot(index: number): void {
    this.#enter('snapshot');
    this.pendingSnapshotIndex = index;
  }

  /** It holds the log up to `index`. False where that was known. */
  acknowledge(index: number): boolean {
    this.inflight.freeUpTo(index);
    this.next = Math.max(this.next, index + 1);
    if (index <= this.match) return false;
    this.match = index;
    return true;
  }

  /**
   * It refused an append whose previous entry was `rejected`, and may agree up to `agreeing` (hazard 17).
   * False where the refusal may be an old one and says nothing by itself.
   */
  backOff(rejected: number, agreeing: number): boolean {
    if (this.state === 'snapshot') return false;
    if (this.state === 'replicate') {
      if (rejected <= this.match && !this.probeSent) return false;
      this.becomeProbe();
      return true;
    }
    if (this.next - 1 !== rejected || !this.probeSent) return false;
    // It refuses its own acknowledgement: the entries are gone from its disk. An old refusal costs one more probe.
    if (rejected === this.match) this.match = 0;
    this.next = Math.max(this.match + 1, Math.min(rejected, agreeing + 1));
    this.probeSent = false;
    return true;
  }

  /** It has lost entries it had acknowledged: nothing before `agreeing` is certain either (hazard 18). */
  startOver(agreeing: number): void {
    this.match = 0;
    this.lost = true;
    this.#enter('probe');
    this.next = agreeing + 1;
  }

  /** A lost peer's log equals the leader's up to `index`: it is sent what follows, though it counts for nothing. */
  follows(index: number): void {
    if (this.state === 'snapshot' && index < this.pendingSnapshotIndex) return;
    const answersProbe = index >= this.next || (this.#repeated && index + 1 === this.next);
    if (this.state !== 'snapshot' && !answersProbe) return;
    this.#enter('probe');
    this.next = index + 1;
  }

  /** The probe is sent again, without its entries. */
  repeatsProbe(): void {
    this.#repeated = true;
  }

  isPaused(maxMessages: number, maxBytes: number): boolean {
    if (this.state === 'probe') return this.probeSent;
    if (this.state === 'snapshot') return true;
    return this.inflight.count >= maxMessages || this.inflight.totalBytes >= maxBytes;
  }

  /** It answered within the last election timeout. */
  isActive({ electionTimeoutMs }: RaftLimits): boolean {
    return this.silentMs < electionTimeoutMs;
  }

  status(limits: RaftLimits): ProgressStatus {
    return {
      state: this.state,
      match: this.match,
      next: this.next,
      inflightMessages: this.inflight.count,
      inflightBytes: this.inflight.totalBytes,
      active: this.isActive(limits),
      lost: this.lost,
    };
  }

  #enter(state: ProgressState): void {
    this.state = state;
    this.probeSent = false;
    this.#repeated = false;
    this.pendingSnapshotIndex = 0;
    this.snapshotElapsedMs = 0;
    this.inflight.reset();
  }
}
