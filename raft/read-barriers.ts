import type { ReadAnswer } from './core-state.ts';
import { RaftError } from './errors.ts';
import type { RaftLimits } from './limits.ts';
import type { MemberId } from './types.ts';

interface Barrier {
  readonly deadlineMs: number;
  readonly waitsForApply: boolean;
  readonly resolve: (index: number) => void;
  readonly reject: (error: RaftError) => void;
}

/** Read barriers of this member: those that wait together share one attempt; a failed attempt is repeated under a new key. */
export class ReadBarriers {
  #fresh: Barrier[] = [];
  #failed: Barrier[] = [];
  readonly #asked = new Map<number, Barrier[]>();
  #confirmed: { readonly index: number; readonly barriers: Barrier[] }[] = [];
  #lastKey = 0;
  #size = 0;
  nextDeadlineMs = Infinity;

  get size(): number {
    return this.#size;
  }

  /** Why no more can be taken, or `null`. */
  refusal({ maxPendingReads }: RaftLimits, leaderId: MemberId | null): RaftError | null {
    if (this.#size < maxPendingReads) return null;
    return new RaftError('overloaded', `${this.#size} reads wait already`, leaderId);
  }

  add(deadlineMs: number, waitsForApply = true): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#fresh.push({ deadlineMs, waitsForApply, resolve, reject });
      this.#size += 1;
      this.nextDeadlineMs = Math.min(this.nextDeadlineMs, deadlineMs);
    });
  }

  /** The key to ask for those that wait, or `null`. */
  ask(): number | null {
    if (this.#fresh.length === 0) return null;
    this.#lastKey += 1;
    this.#asked.set(this.#lastKey, this.#fresh);
    this.#fresh = [];
    return this.#lastKey;
  }

  answered({ key, index }: ReadAnswer): void {
    const barriers = this.#asked.get(key) ?? [];
    this.#asked.delete(key);
    if (index === null) {
      this.#failed.push(...barriers);
      return;
    }
    this.#confirmed.push({ index, barriers: barriers.filter((barrier) => barrier.waitsForApply) });
    const ready = barriers.filter((barrier) => !barrier.waitsForApply);
    this.#size -= ready.length;
    for (const barrier of ready) barrier.resolve(index);
  }

  /** Failed attempts may be made again. Called by the timer, so that a refusing leader is not asked in a tight loop. */
  retry(): boolean {
    if (this.#failed.length === 0) return false;
    this.#fresh.push(...this.#failed);
    this.#failed = [];
    return true;
  }

  applied(appliedIndex: number): void {
    if (this.#confirmed.length === 0) return;
    const ready = this.#confirmed.filter((each) => each.index <= appliedIndex);
    this.#confirmed = this.#confirmed.filter((each) => each.index > appliedIndex);
    for (const { index, barriers } of ready) {
      this.#size -= barriers.length;
      for (const barrier of barriers) barrier.resolve(index);
    }
  }

  expire(nowMs: number): void {
    if (nowMs < this.nextDeadlineMs) return;
    this.nextDeadlineMs = Infinity;
    const keep = (barrier: Barrier): boolean => {
      if (barrier.deadlineMs > nowMs) {
        this.nextDeadlineMs = Math.min(this.nextDeadlineMs, barrier.deadlineMs);
        return true;
      }
      this.#size -= 1;
      barrier.reject(
        new RaftError('deadlineExceeded', 'the deadline passed before a quorum confirmed the read'),
      );
      return false;
    };
    this.#fresh = this.#fresh.filter(keep);
    this.#failed = this.#failed.filter(keep);
    for (const [key, barriers] of this.#asked) this.#asked.set(key, barriers.filter(keep));
    this.#confirmed = this.#confirmed.map((each) => ({
      index: each.index,
      barriers: each.barriers.filter(keep),
    }));
  }

  failAll(): void {
    const groups = [
      this.#fresh,
      this.#failed,
      ...this.#asked.values(),
      ...this.#confirmed.map((each) => each.barriers),
    ];
    this.#fresh = [];
    this.#failed = [];
    this.#asked.clear();
    this.#confirmed = [];
    this.#size = 0;
    for (const barrier of groups.flat()) barrier.reject(new RaftError('stopped', 'the node has stopped'));
  }
}
