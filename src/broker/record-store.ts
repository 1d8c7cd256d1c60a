import type { KeyValueStore, StoreOperation } from '../disk.ts';
import { EvenkeelError } from '../errors.ts';
import {
  decodeMeta,
  decodeRecord,
  encodeMeta,
  encodeRecord,
  metaKey,
  METAS,
  recordKey,
  type ShardMeta,
  type StoredRecord,
} from './record-codec.ts';
import { SEAL, StoreSeal } from './store-seal.ts';

const METAS_PER_READ = 1_000;
const DELETES_PER_WRITE = 1_000;
/** Records read at a time to check them all: a frame holds no larger record than 8 MiB, and most are far smaller. */
const CHECKED_PER_READ = 64;
/** Operations gathered into one synced write. */
const MAX_BATCH_OPERATIONS = 4_096;

interface Waiting {
  readonly operations: readonly StoreOperation[];
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/**
 * The records of every shard this broker holds a copy of, in one store. Whatever is appended while a synced
 * write runs goes into the next one together.
 *
 * The first operation that fails is the last: nothing is written after it, and everything that waits is rejected.
 * A store that goes on after a failed write may acknowledge records that are gone when it is opened again: LevelDB
 * stops reading its log at the damaged block and drops whatever was written behind it.
 */
export class RecordStore {
  /** Called once, synchronously, before anything that waits is rejected. The broker must stop. */
  onFailure: (error: Error) => void = () => {};
  /** A write is synced; `writes` counts all there ever were. */
  onWritten: (writes: number) => void = () => {};
  readonly #seal = new StoreSeal();
  readonly #store: KeyValueStore;
  readonly #logs = new Map<string, ShardLog>();
  #lastId = 0;
  #waiting: Waiting[] = [];
  #writing: Promise<void> | null = null;
  #failure: Error | null = null;

  private constructor(store: KeyValueStore) {
    this.#store = store;
  }

  /**
   * Reads every record once, a few at a time. Throws `corrupt` where one is missing, does not match its checksum or is not
   * of the epoch it should be, or where a whole write is gone.
   */
  static async open(store: KeyValueStore): Promise<RecordStore> {
    const opened = new RecordStore(store);
    const descriptions = await readDescriptions(store);
    const [seal] = await store.range({ ...SEAL, limit: 1 });
    opened.#seal.load(seal?.[1] ?? null, descriptions);
    for (const [, value] of descriptions) {
      const log = opened.#adopt(decodeMeta(value));
      for (let at = 0; at < log.end; at += CHECKED_PER_READ) await log.read(at, CHECKED_PER_READ);
    }
    return opened;
  }

  /** Writes to the store so far. */
  get writes(): number {
    return this.#seal.writes;
  }

  /** What is kept beside the store failed: it ends as it does by a failure of its own. */
  fail(error: unknown): void {
    this.#fail(error);
  }

  /** The shards it holds something of. */
  get shards(): readonly string[] {
    return [...this.#logs.keys()];
  }

  get(shard: string): ShardLog | undefined {
    return this.#logs.get(shard);
  }

  /** The shard's log, empty where there was none. One of an earlier creation of its resource is thrown away first. */
  async openShard(shard: string, resourceRevision: number): Promise<ShardLog> {
    const known = this.#logs.get(shard);
    if (known?.resourceRevision === resourceRevision) return known;
    if (known !== undefined) await this.removeShard(shard);
    const raced = this.#logs.get(shard);
    if (raced !== undefined) return raced;
    return this.#adopt({ id: this.#lastId + 1, shard, resourceRevision, end: 0, epochs: [] });
  }

  async removeShard(shard: string): Promise<void> {
    const log = this.#logs.get(shard);
    if (log === undefined) return;
    this.#logs.delete(shard);
    await log.destroy();
  }

  async close(): Promise<void> {
    while (this.#writing !== null) await this.#writing;
    await this.#store.close();
  }

  #adopt(meta: ShardMeta): ShardLog {
    this.#lastId = Math.max(this.#lastId, meta.id);
    const log = new ShardLog(
      {
        range: (options) => this.#range(options),
        write: (operations) => this.#write(operations),
        fail: (error) => this.#fail(error),
      },
      meta,
    );
    this.#logs.set(meta.shard, log);
    return log;
  }

  /** Resolves once synced, together with whatever else waits. */
  #write(operations: readonly StoreOperation[]): Promise<void> {
    if (this.#failure !== null) return Promise.reject(this.#failure);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ operations, resolve, reject });
      this.#writing ??= this.#drain();
    });
  }

  async #drain(): Promise<void> {
    // What the same turn still appends goes into this write.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const batch: Waiting[] = [];
      let operations = 0;
      while (this.#waiting[0] !== undefined && operations < MAX_BATCH_OPERATIONS) {
        const next = this.#waiting.shift() as Waiting;
        batch.push(next);
        operations += next.operations.length;
      }
      try {
        const all = batch.flatMap((waiting) => waiting.operations);
        await this.#store.write([...all, this.#seal.next(all)]);
        this.onWritten(this.#seal.writes);
      } catch (error) {
        const failure = this.#fail(error);
        for (const { reject } of batch) reject(failure);
        break;
      }
      for (const { resolve } of batch) resolve();
    }
    this.#writing = null;
  }

  async #range(options: Parameters<KeyValueStore['range']>[0]): ReturnType<KeyValueStore['range']> {
    try {
      return await this.#store.range(options);
    } catch (error) {
      throw this.#fail(error);
    }
  }

  /** Returns the first failure, whichever this one is. */
  #fail(error: unknown): Error {
    if (this.#failure !== null) return this.#failure;
    this.#failure = error instanceof Error ? error : new Error(String(error));
    this.onFailure(this.#failure);
    for (const { reject } of this.#waiting.splice(0)) reject(this.#failure);
    return this.#failure;
  }
}

async function readDescriptions(store: KeyValueStore): Promise<[Uint8Array, Uint8Array][]> {
  const all: [Uint8Array, Uint8Array][] = [];
  for (let { gte } = METAS; ;) {
    const rows = await store.range({ gte, lt: METAS.lt, limit: METAS_PER_READ });
    all.push(...rows);
    const last = rows.at(-1);
    if (rows.length < METAS_PER_READ || last === undefined) return all;
    gte = Uint8Array.from([...last[0], 0]);
  }
}

/** What a shard's log uses of the store. */
interface Access {
  readonly range: KeyValueStore['range'];
  readonly write: KeyValueStore['write'];
  /** The log was found damaged: the store stops as it does after a failed write. Returns what to throw. */
  readonly fail: (error: unknown) => Error;
}

/** One shard's records. Whatever changes it is carried out one after the other. */
export class ShardLog {
  readonly #store: Access;
  #meta: ShardMeta;
  #last: Promise<void> = Promise.resolve();
  #truncations = 0;
  #destroyed = false;

  constructor(store: Access, meta: ShardMeta) {
    this.#store = store;
    this.#meta = meta;
  }

  get shard(): string {
    return this.#meta.shard;
  }

  get resourceRevision(): number {
    return this.#meta.resourceRevision;
  }

  /** Offset of the next record: everything below is on disk. */
  get end(): number {
    return this.#meta.end;
  }

  /** Epoch of the record before `offset`; 0 where there is none. */
  epochBefore(offset: number): number {
    let found = 0;
    for (const [epoch, start] of this.#meta.epochs) if (start < offset) found = epoch;
    return found;
  }

  /** Where the records of epochs above this one begin. */
  endOfEpoch(epoch: number): number {
    return this.#meta.epochs.find(([one]) => one > epoch)?.[1] ?? this.#meta.end;
  }

  /** Resolves with the end they make, once on disk. Their epochs never fall. */
  append(records: readonly StoredRecord[]): Promise<number> {
    return this.#inTurn(() => this.#append(records));
  }

  /**
   * The same for records that belong at `from`; `null` where the log does not end there by the time it is their turn,
   * and nothing is written: what came before them, or the same records sent twice, was still under way.
   */
  appendAt(from: number, records: readonly StoredRecord[]): Promise<number | null> {
    return this.#inTurn(() => (this.#meta.end === from ? this.#append(records) : Promise.resolve(null)));
  }

  /** Records from an offset on; fewer than asked at the end. Throws `corrupt`, and the store fails, where one is damaged or missing. */
  async read(from: number, limit: number): Promise<StoredRecord[]> {
    const { id, end } = this.#meta;
    const until = Math.min(end, from + limit);
    if (until <= from) return [];
    const truncations = this.#truncations;
    const rows = await this.#store.range({
      gte: recordKey(id, from),
      lt: recordKey(id, until),
      limit: until - from,
    });
    // Records that were cut off while they were read are missing for a good reason.
    if (this.#truncations !== truncations) return [];
    try {
      return this.#checked(from, until, rows);
    } catch (error) {
      throw this.#store.fail(error);
    }
  }

  /** Keeps the records below `end`; resolves once the rest is gone from disk. */
  truncate(end: number): Promise<void> {
    return this.#inTurn(() => this.#truncate(end));
  }

  /** Throws it all away. Nothing may be appended any more. */
  destroy(): Promise<void> {
    return this.#inTurn(async () => {
      this.#destroyed = true;
      await this.#truncate(0);
      await this.#store.write([{ type: 'delete', key: metaKey(this.#meta.id) }]);
    });
  }

  /** Throws `corrupt` unless the rows are the records `[from, until)`, each of the epoch that the description gives it. */
  #checked(from: number, until: number, rows: readonly [Uint8Array, Uint8Array][]): StoredRecord[] {
    if (rows.length < until - from) {
      const found = `${rows.length} of the ${until - from} records from ${from} on are there`;
      throw new EvenkeelError('corrupt', `${this.shard}: ${found}: this broker's store is damaged`);
    }
    return rows.map(([, value], i) => {
      const record = decodeRecord(from + i, value);
      if (record.epoch === this.epochBefore(from + i + 1)) return record;
      const what = `record ${from + i} is of epoch ${record.epoch}, not ${this.epochBefore(from + i + 1)}`;
      throw new EvenkeelError('corrupt', `${this.shard}: ${what}: this broker's store is damaged`);
    });
  }

  async #append(records: readonly StoredRecord[]): Promise<number> {
    const { id, end } = this.#meta;
    const operations: StoreOperation[] = [];
    const epochs = [...this.#meta.epochs];
    records.forEach((record, i) => {
      const last = epochs.at(-1)?.[0] ?? 0;
      if (record.epoch < last)
        throw new Error(`${this.shard}: a record of epoch ${record.epoch} after ${last}`);
      if (record.epoch > last) epochs.push([record.epoch, end + i]);
      operations.push({ type: 'put', key: recordKey(id, end + i), value: encodeRecord(end + i, record) });
    });
    const meta = { ...this.#meta, end: end + records.length, epochs };
    operations.push({ type: 'put', key: metaKey(id), value: encodeMeta(meta) });
    await this.#store.write(operations);
    this.#meta = meta;
    return meta.end;
  }

  async #truncate(end: number): Promise<void> {
    const { id, end: before } = this.#meta;
    if (end >= before) return;
    this.#truncations++;
    const meta = { ...this.#meta, end, epochs: this.#meta.epochs.filter(([, start]) => start < end) };
    // Described as gone first: what a crash leaves behind is out of reach, and overwritten by the next append.
    await this.#store.write([{ type: 'put', key: metaKey(id), value: encodeMeta(meta) }]);
    this.#meta = meta;
    for (let at = end; at < before; at += DELETES_PER_WRITE) {
      const count = Math.min(DELETES_PER_WRITE, before - at);
      const keys = Array.from({ length: count }, (_, i) => recordKey(id, at + i));
      await this.#store.write(keys.map((key) => ({ type: 'delete', key }) as const));
    }
  }

  #inTurn<T>(run: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(() => {
      if (this.#destroyed) throw new Error(`${this.shard}: its copy has been dropped`);
      return run();
    });
    this.#last = turn.then(
      () => {},
      () => {},
    );
    return turn;
  }
}
