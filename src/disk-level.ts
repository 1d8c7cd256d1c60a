import { constants } from 'node:fs';
import { access, open, mkdir, readdir, readFile, realpath, rename, rm } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { Level } from 'level';
import type { Disk, FixedFile, KeyValueStore } from './disk.ts';
import { EvenkeelError } from './errors.ts';
import { findDamagedTable } from './level-tables.ts';

type Store = Level<Uint8Array, Uint8Array>;

/** LevelDB's memtable. Larger than its default of 4 MiB: a log is written once and mostly deleted before it is read. */
const WRITE_BUFFER_BYTES = 16 * 1024 * 1024;

/**
 * Stores this process has open. LevelDB's own lock is a POSIX record lock, which any failed second open in
 * the same process drops (closing a descriptor of the file ends it), so a second open must never reach it.
 */
const openHere = new Set<string>();

/** The real disk: LevelDB by way of `level`, and plain files. Rejects with `directory_in_use`, `disk_failed` or `corrupt`. */
export function createLevelDisk(): Disk {
  return {
    openStore,
    makeDirectory,
    list,
    readFile: readWhole,
    replaceFile,
    openFixedFile,
    lock,
  };
}

async function openStore(directory: string, options: { createIfMissing: boolean }): Promise<KeyValueStore> {
  const path = await claim(directory);
  try {
    const damage = await findDamagedTable(path);
    if (damage !== null) throw new EvenkeelError('corrupt', `the store ${directory} is damaged: ${damage}`);
    return new LevelStore(await openLevel(path, options.createIfMissing), path);
  } catch (error) {
    openHere.delete(path);
    throw storeError(error, directory);
  }
}

class LevelStore implements KeyValueStore {
  readonly #db: Store;
  readonly #path: string;

  constructor(db: Store, path: string) {
    this.#db = db;
    this.#path = path;
  }

  async get(key: Uint8Array): Promise<Uint8Array | null> {
    try {
      const value = await this.#db.get(key);
      return value === undefined ? null : plain(value);
    } catch (error) {
      throw storeError(error, this.#path);
    }
  }

  async range(options: {
    gte: Uint8Array;
    lt: Uint8Array;
    limit: number;
  }): Promise<[Uint8Array, Uint8Array][]> {
    try {
      const rows = await this.#db.iterator(options).all();
      return rows.map(([key, value]) => [plain(key), plain(value)]);
    } catch (error) {
      throw storeError(error, this.#path);
    }
  }

  async write(operations: Parameters<KeyValueStore['write']>[0]): Promise<void> {
    try {
      const batch = this.#db.batch();
      for (const operation of operations) {
        if (operation.type === 'put') batch.put(operation.key, operation.value);
        else batch.del(operation.key);
      }
      await batch.write({ sync: true });
    } catch (error) {
      throw storeError(error, this.#path);
    }
  }

  async close(): Promise<void> {
    try {
      await this.#db.close();
      openHere.delete(this.#path);
    } catch (error) {
      throw storeError(error, this.#path);
    }
  }
}

/** What keeps a path from being a directory to write in. */
const UNUSABLE: ReadonlyMap<string, string> = new Map([
  ['EEXIST', 'it is a file'],
  ['ENOTDIR', 'a part of its path is a file'],
  ['EACCES', 'this user may not write there'],
  ['EPERM', 'this user may not write there'],
  ['EROFS', 'the file system is read-only'],
]);

async function makeDirectory(directory: string): Promise<void> {
  try {
    await mkdir(directory, { recursive: true });
    await access(directory, constants.W_OK | constants.X_OK);
    await syncDirectory(dirname(resolve(directory)));
  } catch (error) {
    const why = UNUSABLE.get(codeOf(error) ?? '');
    if (why !== undefined) {
      const text = `${directory} cannot be a data directory: ${why}; name one that this user may write`;
      throw new EvenkeelError('invalid_argument', text);
    }
    throw diskError(error, `cannot make the directory ${directory}`);
  }
}

async function list(directory: string): Promise<string[]> {
  try {
    return (await readdir(directory)).sort();
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return [];
    throw diskError(error, `cannot list the directory ${directory}`);
  }
}

async function readWhole(path: string): Promise<Uint8Array | null> {
  try {
    return plain(await readFile(path));
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return null;
    throw diskError(error, `cannot read ${path}`);
  }
}

async function replaceFile(path: string, data: Uint8Array): Promise<void> {
  const beside = `${path}.new`;
  try {
    const file = await open(beside, 'w');
    try {
      await file.writeFile(data);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(beside, path);
    await syncDirectory(dirname(path));
  } catch (error) {
    throw diskError(error, `cannot write ${path}`);
  }
}

async function openFixedFile(path: string, sizeBytes: number): Promise<FixedFile> {
  try {
    return new PlainFixedFile(await open(path, 'r+'), path);
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw diskError(error, `cannot open ${path}`);
  }
  await replaceFile(path, new Uint8Array(sizeBytes));
  try {
    return new PlainFixedFile(await open(path, 'r+'), path);
  } catch (error) {
    throw diskError(error, `cannot open ${path}`);
  }
}

class PlainFixedFile implements FixedFile {
  readonly #file: FileHandle;
  readonly #path: string;

  constructor(file: FileHandle, path: string) {
    this.#file = file;
    this.#path = path;
  }

  async read(): Promise<Uint8Array> {
    const data = await readWhole(this.#path);
    if (data === null) throw new EvenkeelError('disk_failed', `${this.#path} was removed while it was open`);
    return data;
  }

  async writeAt(offset: number, data: Uint8Array, options: { sync: boolean }): Promise<void> {
    try {
      await this.#file.write(data, 0, data.byteLength, offset);
      if (options.sync) await this.#file.datasync();
    } catch (error) {
      throw diskError(error, `cannot write ${this.#path}`);
    }
  }

  async close(): Promise<void> {
    try {
      await this.#file.close();
    } catch (error) {
      throw diskError(error, `cannot close ${this.#path}`);
    }
  }
}

/**
 * Node has no file locks of its own, and a file that names a process id lies between containers that share
 * a volume. LevelDB has a kernel lock that ends with its process, so the lock is an empty LevelDB store.
 */
async function lock(path: string): Promise<() => Promise<void>> {
  const claimed = await claim(path);
  try {
    const db = await openLockStore(claimed);
    return async () => {
      await db.close();
      openHere.delete(claimed);
    };
  } catch (error) {
    openHere.delete(claimed);
    throw storeError(error, path);
  }
}

/** The lock store holds nothing, so one that is damaged is made anew around its LOCK file, which carries the lock. */
async function openLockStore(path: string): Promise<Store> {
  try {
    return await openLevel(path, true);
  } catch (error) {
    if (isLocked(error)) throw error;
    const names = (await readdir(path)).filter((name) => name !== 'LOCK');
    await Promise.all(names.map((name) => rm(join(path, name), { recursive: true })));
    return openLevel(path, true);
  }
}

async function openLevel(path: string, createIfMissing: boolean): Promise<Store> {
  const db: Store = new Level<Uint8Array, Uint8Array>(path, {
    keyEncoding: 'view',
    valueEncoding: 'view',
    createIfMissing,
    compression: false,
    writeBufferSize: WRITE_BUFFER_BYTES,
  });
  await db.open();
  return db;
}

async function claim(directory: string): Promise<string> {
  let parent = dirname(resolve(directory));
  try {
    parent = await realpath(parent);
  } catch (error) {
    throw diskError(error, `cannot open ${directory}`);
  }
  const path = join(parent, basename(directory));
  if (openHere.has(path)) throw inUse(directory);
  openHere.add(path);
  return path;
}

async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function inUse(directory: string): EvenkeelError {
  return new EvenkeelError(
    'directory_in_use',
    `${directory} is in use by another process; stop that one first, or give this node another --data-dir`,
  );
}

function storeError(error: unknown, directory: string): EvenkeelError {
  if (error instanceof EvenkeelError) return error;
  if (isLocked(error)) return inUse(directory);
  const text = reasonOf(error);
  if (causeCode(error) === 'LEVEL_CORRUPTION' || text.startsWith('Corruption')) {
    return new EvenkeelError('corrupt', `the store ${directory} is damaged: ${text}`);
  }
  if (text.includes('does not exist') || text.includes('No such file')) {
    return new EvenkeelError('corrupt', `the store ${directory} is gone or misses a file: ${text}`);
  }
  return diskError(error, `the store ${directory} failed`);
}

function diskError(error: unknown, what: string): EvenkeelError {
  if (error instanceof EvenkeelError) return error;
  const text = reasonOf(error);
  const full = codeOf(error) === 'ENOSPC' || text.includes('No space left');
  const advice = full ? '; free some room and start the node again' : '';
  return new EvenkeelError('disk_failed', `${what}: ${text}${advice}`);
}

function isLocked(error: unknown): boolean {
  return causeCode(error) === 'LEVEL_LOCKED';
}

function causeCode(error: unknown): string | undefined {
  return error instanceof Error && error.cause !== undefined ? codeOf(error.cause) : codeOf(error);
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? error.cause.message : error.message;
}

function codeOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}

/** LevelDB and `fs` answer Buffers; plain arrays keep Buffer's other `slice` out of the rest of the code. */
function plain(data: Uint8Array): Uint8Array {
  return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
}
