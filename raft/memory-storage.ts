import { RaftInvariantError } from './errors.ts';
import type { RaftStorage, StorageWrite, StoredState } from './storage.ts';
import type { Entry, HardState, Snapshot } from './types.ts';

/** The memory twin of the durable storage: the same contract, and what was written survives `close` but not the process. */
export class MemoryStorage implements RaftStorage {
  #hardState: HardState = { term: 0, votedFor: null, commit: 0 };
  #snapshot: Snapshot | null = null;
  #entries: Entry[] = [];
  #open = false;

  load(): Promise<StoredState> {
    this.#open = true;
    return Promise.resolve({
      hardState: this.#hardState,
      snapshot: this.#snapshot,
      entries: [...this.#entries],
    });
  }

  write(batch: StorageWrite): Promise<void> {
    this.#mustBeOpen();
    if (batch.snapshot !== null) this.#takeSnapshot(batch.snapshot);
    if (batch.entries.length > 0) this.#append(batch.entries);
    if (batch.hardState !== null) this.#hardState = batch.hardState;
    return Promise.resolve();
  }

  close(): Promise<void> {
    this.#open = false;
    return Promise.resolve();
  }

  #takeSnapshot(snapshot: Snapshot): void {
    const { index, term } = snapshot.meta;
    if (index < (this.#snapshot?.meta.index ?? 0))
      throw new RaftInvariantError(`snapshot ${index} is older than the stored one`);
    const covered = this.#entries.find((entry) => entry.index === index);
    const follows = index === (this.#snapshot?.meta.index ?? 0) || covered?.term === term;
    this.#entries = follows ? this.#entries.filter((entry) => entry.index > index) : [];
    this.#snapshot = snapshot;
  }

  #append(entries: readonly Entry[]): void {
    const base = this.#snapshot?.meta.index ?? 0;
    const first = entries[0]?.index ?? 0;
    if (first <= base || first > base + this.#entries.length + 1) {
      throw new RaftInvariantError(
        `append at ${first} onto a log of ${base + 1} to ${base + this.#entries.length}`,
      );
    }
    this.#entries.length = first - base - 1;
    for (const entry of entries) this.#entries.push(entry);
  }

  #mustBeOpen(): void {
    if (!this.#open) throw new RaftInvariantError('storage used before load or after close');
  }
}
