import type { Entry, HardState, Snapshot } from './types.ts';

/** What a restart finds. `entries` follow `snapshot.meta.index` without a gap. */
export interface StoredState {
  readonly hardState: HardState;
  readonly snapshot: Snapshot | null;
  readonly entries: readonly Entry[];
}

/** What goes to disk in one synced batch: all of it or nothing. */
export interface StorageWrite {
  readonly hardState: HardState | null;
  /**
   * Appended in order. Where `entries[0].index` is not past the log's end, everything from that index on
   * is removed in the same batch.
   */
  readonly entries: readonly Entry[];
  /** Replaces the log's beginning: entries up to `meta.index` go; the rest stay only where (index, term) matches. */
  readonly snapshot: Snapshot | null;
  /** Entries up to this index, which a stored snapshot covers, may go. 0: none. */
  readonly compactTo: number;
}

/**
 * The durable side of one member. Writes are issued one at a time by the node loop and resolve only
 * once synced. The first rejection is final: the node stops and the storage is never written again.
 */
export interface RaftStorage {
  load(): Promise<StoredState>;
  write(batch: StorageWrite): Promise<void>;
  close(): Promise<void>;
}
