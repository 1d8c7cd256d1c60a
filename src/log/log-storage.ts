import type { Entry, HardState, RaftStorage, Snapshot, StorageWrite, StoredState } from '../../raft/index.ts';
import type { KeyValueStore, StoreOperation } from '../disk.ts';
import { CoveredEntries } from './covered-entries.ts';
import { damaged } from './damage.ts';
import { ENTRIES_END, HARD_STATE_KEY, SNAPSHOT_KEY, entryKey } from './keys.ts';
import { LogTail } from './log-tail.ts';
import { missingFrom, type Mark, type MarkValue } from './mark.ts';
import {
  decodeEntry,
  decodeHardState,
  decodeSnapshotRecord,
  encodeEntry,
  encodeHardState,
  encodeSnapshotRecord,
  type SnapshotRecord,
} from './records.ts';
import { chunkDeletions, loadChunks, removeOrphans, storeChunks } from './snapshot-chunks.ts';

const NEW_HARD_STATE: HardState = { term: 0, votedFor: null, commit: 0 };
/** Entries read at a time while loading. */
const LOAD_PAGE = 1_000;

export interface LogStorageOptions {
  readonly store: KeyValueStore;
  readonly mark: Mark;
  /** For messages. */
  readonly directory: string;
  /** Runs once the store is closed: gives back the directory's lock. */
  readonly onClosed: () => Promise<void>;
}

/**
 * The durable side of one member over a key-value store: one synced batch a write. `load` comes before the
 * first `write`; it rejects with `corrupt` where anything stored is damaged or missing. Hazards 25, 31, 32.
 */
export class LogStorage implements RaftStorage {
  readonly #options: LogStorageOptions;
  #tail: LogTail | null = null;
  readonly #covered = new CoveredEntries();
  #hardState: HardState = NEW_HARD_STATE;
  #snapshot: SnapshotRecord | null = null;
  #failure: Error | null = null;
  #writing = false;
  #closed = false;

  constructor(options: LogStorageOptions) {
    this.#options = options;
  }

  async load(): Promise<StoredState> {
    const { store, mark } = this.#options;
    const tail = new LogTail();
    this.#hardState = await this.#loadHardState();
    const snapshot = await this.#loadSnapshot();
    if (this.#snapshot !== null) tail.dropTo(this.#snapshot.meta.index);
    const entries = await this.#loadEntries(tail);
    const missing = missingFrom(mark.value, {
      hardState: this.#hardState,
      baseIndex: tail.base,
      lastIndex: tail.lastIndex,
      entryAt: (index) => tail.at(index),
    });
    if (missing !== null) throw this.#damaged(missing);
    await removeOrphans(store, this.#snapshot?.id ?? 0);
    await this.#covered.load(store, tail.base);
    this.#tail = tail;
    return { hardState: this.#hardState, snapshot, entries };
  }

  async write(batch: StorageWrite): Promise<void> {
    const tail = this.#tail;
    if (tail === null || this.#closed) throw new Error('storage is written before load or after close');
    if (this.#writing) throw new Error('storage writes overlap');
    const failure = this.#failure ?? this.#options.mark.failure;
    if (failure !== null) throw failure;
    this.#writing = true;
    try {
      await this.#write(batch, tail);
    } catch (error) {
      this.#failure = error instanceof Error ? error : new Error(String(error));
      throw error;
    } finally {
      this.#writing = false;
    }
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    const { mark, store, onClosed } = this.#options;
    const closed = await Promise.allSettled([mark.close(), store.close()]);
    await onClosed();
    const failed = closed.find((result) => result.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
  }

  async #write(batch: StorageWrite, tail: LogTail): Promise<void> {
    const { store, mark } = this.#options;
    this.#check(batch, tail);
    const operations: StoreOperation[] = [];
    await this.#lowerMark(batch, tail);
    if (batch.snapshot !== null) await this.#takeSnapshot(batch.snapshot, tail, operations);
    this.#append(batch.entries, tail, operations);
    if (batch.hardState !== null) {
      operations.push({ type: 'put', key: HARD_STATE_KEY, value: encodeHardState(batch.hardState) });
    }
    if (operations.length === 0) return;
    operations.push(...this.#covered.takeDeletions(tail.base, batch.entries.length));
    await store.write(operations);
    const before = this.#hardState;
    this.#hardState = batch.hardState ?? before;
    const changed = before.term !== this.#hardState.term || before.votedFor !== this.#hardState.votedFor;
    if (changed) await mark.set(this.#markOf(tail));
    else mark.raise(this.#markOf(tail));
  }

  #check(batch: StorageWrite, tail: LogTail): void {
    const { snapshot, entries } = batch;
    if (snapshot !== null && snapshot.meta.index < tail.base) {
      throw new Error(`snapshot ${snapshot.meta.index} is older than the stored one at ${tail.base}`);
    }
    const base = Math.max(tail.base, snapshot?.meta.index ?? 0);
    const last = snapshot === null || keepsRest(tail, snapshot) ? Math.max(tail.lastIndex, base) : base;
    const first = entries[0]?.index ?? last + 1;
    if (first <= base || first > last + 1) {
      throw new Error(`append at ${first} onto a log of ${base + 1} to ${last}`);
    }
    if (batch.compactTo > base)
      throw new Error(`compaction to ${batch.compactTo} past the snapshot at ${base}`);
  }

  /** Before entries go, the mark stops naming them; synced, for a mark that claims too much would be an alarm. */
  async #lowerMark(batch: StorageWrite, tail: LogTail): Promise<void> {
    const { snapshot, entries } = batch;
    let keep = tail.lastIndex;
    const first = entries[0]?.index;
    if (first !== undefined) keep = Math.min(keep, first - 1);
    if (snapshot !== null && !keepsRest(tail, snapshot)) keep = tail.base;
    keep = Math.max(keep, tail.base);
    const { mark } = this.#options;
    if (keep >= mark.value.lastIndex) return;
    const { term, crc } = keep === tail.base ? { term: 0, crc: 0 } : tail.at(keep);
    await mark.set({ ...mark.value, lastIndex: keep, lastTerm: term, lastCrc: crc });
  }

  /**
   * The chunks are synced first; the record that puts them in force goes with `operations`. Entries past it that
   * are not the leader's go with it too; those it covers go in time.
   */
  async #takeSnapshot(snapshot: Snapshot, tail: LogTail, operations: StoreOperation[]): Promise<void> {
    const before = this.#snapshot;
    const record = await storeChunks(this.#options.store, (before?.id ?? 0) + 1, snapshot);
    const { index } = snapshot.meta;
    if (!keepsRest(tail, snapshot)) {
      for (let entry = index + 1; entry <= tail.lastIndex; entry += 1) {
        operations.push({ type: 'delete', key: entryKey(entry) });
      }
      tail.truncate(tail.base);
    }
    if (before !== null) operations.push(...chunkDeletions(before));
    operations.push({ type: 'put', key: SNAPSHOT_KEY, value: encodeSnapshotRecord(record) });
    tail.dropTo(index);
    this.#snapshot = record;
  }

  #append(entries: readonly Entry[], tail: LogTail, operations: StoreOperation[]): void {
    const first = entries[0]?.index;
    if (first === undefined) return;
    const oldLast = tail.lastIndex;
    tail.truncate(first - 1);
    for (const entry of entries) {
      if (entry.index !== tail.lastIndex + 1) throw new Error(`entry ${entry.index} after ${tail.lastIndex}`);
      const { value, crc } = encodeEntry(entry, tail.lastCrc);
      operations.push({ type: 'put', key: entryKey(entry.index), value });
      tail.push(entry.term, crc);
    }
    for (let index = tail.lastIndex + 1; index <= oldLast; index += 1) {
      operations.push({ type: 'delete', key: entryKey(index) });
    }
  }

  #markOf(tail: LogTail): MarkValue {
    const { term, votedFor } = this.#hardState;
    const lastIndex = tail.lastIndex;
    const last = lastIndex > tail.base ? tail.at(lastIndex) : { term: 0, crc: 0 };
    const { boot } = this.#options.mark.value;
    return { boot, term, votedFor, lastIndex, lastTerm: last.term, lastCrc: last.crc };
  }

  async #loadHardState(): Promise<HardState> {
    const value = await this.#options.store.get(HARD_STATE_KEY);
    if (value === null) return NEW_HARD_STATE;
    const state = decodeHardState(value);
    if (state === null) throw this.#damaged('term and vote fail their checksum');
    return state;
  }

  async #loadSnapshot(): Promise<Snapshot | null> {
    const { store } = this.#options;
    const value = await store.get(SNAPSHOT_KEY);
    if (value === null) return null;
    const record = decodeSnapshotRecord(value);
    if (record === null) throw this.#damaged("the snapshot's record fails its checksum");
    const snapshot = await loadChunks(store, record);
    if (snapshot === null) throw this.#damaged(`the snapshot at ${record.meta.index} fails its checksum`);
    this.#snapshot = record;
    return snapshot;
  }

  async #loadEntries(tail: LogTail): Promise<Entry[]> {
    const entries: Entry[] = [];
    for (;;) {
      const next = tail.lastIndex + 1;
      const rows = await this.#options.store.range({
        gte: entryKey(next),
        lt: ENTRIES_END,
        limit: LOAD_PAGE,
      });
      for (const [key, value] of rows) entries.push(this.#checkedEntry(key, value, tail));
      if (rows.length < LOAD_PAGE) return entries;
    }
  }

  #checkedEntry(key: Uint8Array, value: Uint8Array, tail: LogTail): Entry {
    const expected = tail.lastIndex + 1;
    if (Buffer.compare(key, entryKey(expected)) !== 0) throw this.#damaged(`entry ${expected} is missing`);
    const stored = decodeEntry(value);
    if (stored === null || stored.entry.index !== expected) {
      throw this.#damaged(`entry ${expected} fails its checksum`);
    }
    if (tail.lastIndex > tail.base && stored.previousCrc !== tail.lastCrc) {
      throw this.#damaged(`entry ${expected} does not follow the entry before it`);
    }
    tail.push(stored.entry.term, stored.crc);
    return stored.entry;
  }

  #damaged(what: string): Error {
    return damaged(this.#options.directory, what);
  }
}

/** What lies past the snapshot stays only where the log holds its last entry (paper, section 7). */
function keepsRest(tail: LogTail, snapshot: Snapshot): boolean {
  const { index, term } = snapshot.meta;
  if (index === tail.base) return true;
  return index < tail.lastIndex + 1 && tail.at(index).term === term;
}
