/** The seam for everything durable: LevelDB and plain files in production, a crashable image in the simulator. */
export interface Disk {
  /** Opens an ordered key-value store (LevelDB). Keys and values are bytes, keys ordered bytewise. */
  openStore(directory: string, options: { createIfMissing: boolean }): Promise<KeyValueStore>;
  makeDirectory(directory: string): Promise<void>;
  /** File and folder names in a directory, sorted; empty where it does not exist. */
  list(directory: string): Promise<string[]>;
  /** `null` where it does not exist. */
  readFile(path: string): Promise<Uint8Array | null>;
  /** Writes beside, syncs, renames over, syncs the directory: old or new, never half. */
  replaceFile(path: string, data: Uint8Array): Promise<void>;
  /** Opens a small file that is overwritten in place; made of `sizeBytes` zeros, synced, where it does not exist. */
  openFixedFile(path: string, sizeBytes: number): Promise<FixedFile>;
  /** Takes an exclusive lock that ends with the process; rejects with `directory_in_use`. The answer releases it. */
  lock(path: string): Promise<() => Promise<void>>;
}

/** A pre-allocated file. Without `sync` a write survives the process, not a power cut; it may be torn by either. */
export interface FixedFile {
  read(): Promise<Uint8Array>;
  writeAt(offset: number, data: Uint8Array, options: { sync: boolean }): Promise<void>;
  close(): Promise<void>;
}

export interface KeyValueStore {
  get(key: Uint8Array): Promise<Uint8Array | null>;
  /** Rows of `[gte, lt)` in key order, at most `limit`. */
  range(options: { gte: Uint8Array; lt: Uint8Array; limit: number }): Promise<[Uint8Array, Uint8Array][]>;
  /** All or nothing, in order; resolves once synced to disk (`sync: true` always). */
  write(operations: readonly StoreOperation[]): Promise<void>;
  close(): Promise<void>;
}

export type StoreOperation =
  | { readonly type: 'put'; readonly key: Uint8Array; readonly value: Uint8Array }
  | { readonly type: 'delete'; readonly key: Uint8Array };
