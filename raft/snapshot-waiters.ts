import { RaftError } from './errors.ts';

interface Waiter {
  readonly index: number;
  readonly resolve: (index: number) => void;
  readonly reject: (error: RaftError) => void;
}

/** Who waits for a snapshot to be on disk, and how far the newest one reaches. */
export class SnapshotWaiters {
  #waiters: Waiter[] = [];
  durableIndex: number;

  constructor(durableIndex: number) {
    this.durableIndex = durableIndex;
  }

  /** Resolves once a snapshot of `index` or later is on disk. */
  reach(index: number): Promise<number> {
    if (index <= this.durableIndex) return Promise.resolve(this.durableIndex);
    return new Promise((resolve, reject) => {
      this.#waiters.push({ index, resolve, reject });
    });
  }

  written(index: number): void {
    this.durableIndex = index;
    const ready = this.#waiters.filter((waiter) => waiter.index <= index);
    this.#waiters = this.#waiters.filter((waiter) => waiter.index > index);
    for (const waiter of ready) waiter.resolve(index);
  }

  failAll(): void {
    for (const waiter of this.#waiters) waiter.reject(new RaftError('stopped', 'the node has stopped'));
    this.#waiters = [];
  }
}
