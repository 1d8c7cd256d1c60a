import type { ChangeSet, ChangeSink } from '../state/index.ts';
import type { ChangeFeed } from './types.ts';

/** Changes kept for watchers that come back: bounded in change sets and in their rows. */
export interface RingLimits {
  readonly maxSets: number;
  readonly maxRows: number;
}

export const DEFAULT_RING: RingLimits = { maxSets: 16_384, maxRows: 100_000 };

interface Subscriber {
  readonly onChanges: (set: ChangeSet) => void;
  readonly onLost: () => void;
}

/** The ring of recent changes: fed by apply, read by every watch on this node. */
export class ChangeRing implements ChangeFeed, ChangeSink {
  readonly #limits: RingLimits;
  /** Oldest first; `#start` is where the ring begins, so that dropping one is O(1). */
  #sets: ChangeSet[] = [];
  #start = 0;
  #rows = 0;
  #floor = 0;
  #revision = 0;
  readonly #subscribers = new Set<Subscriber>();

  constructor(limits: RingLimits = DEFAULT_RING) {
    this.#limits = limits;
  }

  get floor(): number {
    return this.#floor;
  }

  get revision(): number {
    return this.#revision;
  }

  push(set: ChangeSet): void {
    if (set.revision <= this.#revision) {
      throw new Error(`changes of revision ${set.revision} came after ${this.#revision}`);
    }
    this.#revision = set.revision;
    this.#sets.push(set);
    this.#rows += set.changes.length;
    this.#trim();
    for (const subscriber of [...this.#subscribers]) {
      // One that an earlier subscriber's turn unsubscribed is told nothing more.
      if (this.#subscribers.has(subscriber)) subscriber.onChanges(set);
    }
  }

  reset(revision: number): void {
    this.#sets = [];
    this.#start = 0;
    this.#rows = 0;
    this.#floor = revision;
    this.#revision = revision;
    const lost = [...this.#subscribers];
    this.#subscribers.clear();
    for (const subscriber of lost) subscriber.onLost();
  }

  subscribe(afterRevision: number, onChanges: (set: ChangeSet) => void, onLost: () => void): () => void {
    if (afterRevision < this.#floor) {
      onLost();
      return () => undefined;
    }
    const subscriber: Subscriber = {
      // A watcher may be ahead of this node: it has seen these on another.
      onChanges: (set) => {
        if (set.revision > afterRevision) onChanges(set);
      },
      onLost,
    };
    const backlog = this.#sets.slice(this.#firstAfter(afterRevision));
    this.#subscribers.add(subscriber);
    for (const set of backlog) {
      if (!this.#subscribers.has(subscriber)) break;
      onChanges(set);
    }
    return () => {
      this.#subscribers.delete(subscriber);
    };
  }

  #trim(): void {
    const { maxSets, maxRows } = this.#limits;
    while (this.#sets.length - this.#start > maxSets || this.#rows > maxRows) {
      const oldest = this.#sets[this.#start];
      if (oldest === undefined) break;
      this.#rows -= oldest.changes.length;
      this.#floor = oldest.revision;
      this.#start++;
    }
    // The dropped head is cut off once it is half of the list: amortized O(1) a push.
    if (this.#start * 2 > this.#sets.length) {
      this.#sets = this.#sets.slice(this.#start);
      this.#start = 0;
    }
  }

  /** Index of the first set after a revision; sets are in revision order. */
  #firstAfter(revision: number): number {
    let low = this.#start;
    let high = this.#sets.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      const set = this.#sets[middle];
      if (set !== undefined && set.revision <= revision) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
