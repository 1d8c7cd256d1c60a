import type { KeyValueStore, StoreOperation } from '../disk.ts';
import { entryKey, readEntryIndex } from './keys.ts';

/** Deleted with each write, at least; more where the write itself brings more, so that the deletions keep pace. */
const LEAST_DELETIONS = 1_000;

/**
 * Stored entries that a snapshot has taken the place of. They are no part of the log any more and nothing reads
 * them, so they go a few with each write: tens of thousands of deletions at once hold the event loop for as long
 * as an election takes.
 */
export class CoveredEntries {
  /** The lowest index that may still be stored. */
  #first = 1;

  /** Finds what an earlier process left behind; `base` is the snapshot's index. */
  async load(store: KeyValueStore, base: number): Promise<void> {
    const [row] = await store.range({ gte: entryKey(0), lt: entryKey(base + 1), limit: 1 });
    this.#first = row === undefined ? base + 1 : readEntryIndex(row[0]);
  }

  /** Some that go with a write of `entries` entries. */
  takeDeletions(base: number, entries: number): StoreOperation[] {
    const deletions: StoreOperation[] = [];
    const end = Math.min(base + 1, this.#first + Math.max(LEAST_DELETIONS, 2 * entries));
    for (; this.#first < end; this.#first += 1) {
      deletions.push({ type: 'delete', key: entryKey(this.#first) });
    }
    return deletions;
  }
}
