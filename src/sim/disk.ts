import type { Disk } from '../disk.ts';
import { EvenkeelError } from '../errors.ts';
import { ProcessDisk } from './process-disk.ts';
import type { SimRandom } from './random.ts';
import { SimStoreImage } from './store-image.ts';
import type { SimProcess, SimWorld } from './world.ts';

export interface DiskFaults {
  /** One synced write takes a time in this range. */
  syncMinMs: number;
  syncMaxMs: number;
  /** A write or sync fails, by chance. */
  failPart: number;
  /** No room: every write fails. */
  full: boolean;
  /** Syncs are acknowledged before they are durable; only a power cut shows it. */
  lies: boolean;
  /** A read takes up to so long. */
  readMaxMs: number;
}

export const HEALTHY_DISK: Readonly<DiskFaults> = {
  syncMinMs: 0.1,
  syncMaxMs: 0.5,
  failPart: 0,
  full: false,
  lies: false,
  readMaxMs: 0.1,
};

/** A change on its way to the platter: what the drive holds once it is there. */
interface PendingChange {
  /** Changes of one file reach the platter in order; those of different files in any. */
  readonly file: string;
  readonly apply: (image: Image) => void;
  /** What a power cut may leave of it instead: half of an overwrite in place. `null`: it is whole or absent. */
  readonly tear: ((image: Image, part: number) => void) | null;
  /** The caller was told it is written: it outlives the process, and where it was synced, the power. */
  acknowledged: boolean;
}

interface Image {
  readonly stores: Map<string, SimStoreImage>;
  readonly files: Map<string, Uint8Array>;
  readonly directories: Set<string>;
}

/** A lying drive empties its cache at last after this. */
const LIE_MS = 2_000;
/** What takes no longer is not slow. */
const WELL_MS = 50;
/** A write that is not synced. */
const SYSTEM_CALL_MS = 0.02;

const SIMULATED = '(simulated)';

/** Whether an error, or what caused it, is a failure that a simulated disk was made to have. */
export function isSimulatedFailure(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return isSimulated(error.message) || isSimulatedFailure(error.cause);
}

export function isSimulated(message: string): boolean {
  return message.includes(SIMULATED);
}

/**
 * One machine's disk; it outlives the machine's processes. Writes go to an unsynced buffer first and reach
 * the durable image in order, file by file. A power cut keeps a random beginning of what each file was to take.
 *
 * A store in which one write has failed is like LevelDB then: where the sync failed, it refuses all that follows; where
 * the write itself failed, it takes and acknowledges what follows, but the next process that opens it finds none of that.
 */
export class SimDisk {
  readonly world: SimWorld;
  readonly faults: DiskFaults = { ...HEALTHY_DISK };
  #durable: Image = { stores: new Map(), files: new Map(), directories: new Set() };
  #buffer: PendingChange[] = [];
  readonly #locks = new Map<string, SimProcess>();
  readonly #host: string;
  readonly #random: SimRandom;
  #failNext = false;
  #idleAtMs = 0;
  /** Stores in which a write has failed since they were opened: what becomes of later writes. */
  readonly #broken = new Map<string, 'fails' | 'forgets'>();

  constructor(world: SimWorld, host: string) {
    this.world = world;
    this.#host = host;
    this.#random = world.random(`disk ${host}`);
  }

  /** The disk as one process of this machine sees it. */
  diskOf(process: SimProcess): Disk {
    return new ProcessDisk(this, process);
  }

  /** From now on it works as these say. */
  heal(faults: DiskFaults): void {
    Object.assign(this.faults, faults);
    this.#failNext = false;
  }

  /** Nothing is wrong with it that anybody could notice. */
  get isWell(): boolean {
    const { syncMaxMs, readMaxMs, full, failPart } = this.faults;
    return !full && !this.#failNext && failPart === 0 && syncMaxMs <= WELL_MS && readMaxMs <= WELL_MS;
  }

  /** The next write or sync fails, whatever the rates. */
  failNextWrite(): void {
    this.#failNext = true;
  }

  /**
   * The machine loses power, or its process alone is killed (then what the system took stays unless a write
   * was not yet handed over). Call after the process ended.
   */
  settle(powerCut: boolean): void {
    const byFile = new Map<string, PendingChange[]>();
    for (const change of this.#buffer) {
      const changes = byFile.get(change.file);
      if (changes === undefined) byFile.set(change.file, [change]);
      else changes.push(change);
    }
    this.#buffer = [];
    this.#broken.clear();
    for (const changes of byFile.values()) {
      const least = powerCut ? 0 : changes.findLastIndex((change) => change.acknowledged) + 1;
      const kept = least + this.#random.below(changes.length - least + 1);
      for (const change of changes.slice(0, kept)) change.apply(this.#durable);
      changes[kept]?.tear?.(this.#durable, this.#random.unit());
    }
  }

  /** A new, empty disk. */
  wipe(): void {
    this.#buffer = [];
    this.#durable = { stores: new Map(), files: new Map(), directories: new Set() };
  }

  /** A backup of the durable image. */
  copy(): SimDiskCopy {
    return { image: copyImage(this.#durable) };
  }

  /** Yesterday's copy is put back. */
  restore(copy: SimDiskCopy): void {
    this.#buffer = [];
    this.#durable = copyImage(copy.image);
  }

  /** Flips one bit of one value at rest; false where there is none. */
  flipBit(): boolean {
    const stores = [...this.#durable.stores.values()].filter((store) => store.size > 0);
    if (stores.length === 0) return false;
    return this.#random.pick(stores).flipBit(this.#random);
  }

  /**
   * The newest writes of one store are gone, up to so many: what LevelDB makes of a bit flipped in its log. Call while no
   * process has it open; false where there are none.
   */
  loseTail(writes: number): boolean {
    const stores = [...this.#durable.stores.values()].filter((store) => store.size > 0);
    if (stores.length === 0) return false;
    return this.#random.pick(stores).undo(writes);
  }

  /** Rows of one store as they would be found after a power cut now. */
  durableStore(directory: string): SimStoreImage | undefined {
    return this.#durable.stores.get(directory);
  }

  /** What a process that reads now sees: the durable image and, over it, what the system has taken. */
  image(): Image {
    if (this.#buffer.length === 0) return this.#durable;
    const seen = copyImage(this.#durable);
    for (const change of this.#buffer) change.apply(seen);
    return seen;
  }

  /** An open store's contents; a new store is empty. */
  openStore(directory: string, createIfMissing: boolean): SimStoreImage {
    if (!this.image().stores.has(directory)) {
      if (!createIfMissing) throw new Error(`${directory} does not exist`);
      this.#durable.stores.set(directory, new SimStoreImage());
    }
    return (this.image().stores.get(directory) as SimStoreImage).copy();
  }

  lock(path: string, process: SimProcess): () => void {
    const owner = this.#locks.get(path);
    if (owner?.alive === true) {
      throw new EvenkeelError('directory_in_use', `${path} is locked by a running process`);
    }
    this.#locks.set(path, process);
    return () => {
      if (this.#locks.get(path) === process) this.#locks.delete(path);
    };
  }

  /** Takes a change into the buffer; resolves once it is durable (or a lying drive says so). */
  commit(process: SimProcess, file: string, apply: (image: Image) => void): Promise<void> {
    return this.#submit(process, { file, apply, tear: null, acknowledged: false }, true);
  }

  /** An overwrite in place; without `sync` it is answered once the system has it. */
  overwrite(
    process: SimProcess,
    path: string,
    offset: number,
    data: Uint8Array,
    sync: boolean,
  ): Promise<void> {
    const apply = (image: Image, bytes: Uint8Array): void => {
      const file = (image.files.get(path) ?? new Uint8Array(offset + bytes.length)).slice();
      file.set(bytes, offset);
      image.files.set(path, file);
    };
    const change: PendingChange = {
      file: path,
      apply: (image) => apply(image, data),
      tear: (image, part) => apply(image, data.subarray(0, Math.floor(part * data.length))),
      acknowledged: false,
    };
    return this.#submit(process, change, sync);
  }

  #submit(process: SimProcess, change: PendingChange, sync: boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      const { world, faults } = this;
      if (!process.alive) return;
      const broken = this.#broken.get(change.file);
      const fails =
        this.#failNext || faults.full || broken === 'fails' || this.#random.chance(faults.failPart);
      this.#failNext = false;
      // A failed write may have reached the drive all the same.
      const reaches = !fails || this.#random.chance(0.5);
      if (reaches && broken === undefined) this.#buffer.push(change);
      if (fails && broken === undefined && this.#durable.stores.has(change.file)) {
        this.#broken.set(change.file, reaches ? 'fails' : 'forgets');
      }
      if (sync) {
        const tookMs = this.#random.between(faults.syncMinMs, faults.syncMaxMs);
        this.#idleAtMs = Math.max(this.#idleAtMs, world.nowMs) + tookMs;
      }
      const dueMs = sync ? this.#idleAtMs - world.nowMs : SYSTEM_CALL_MS;
      world.schedule(dueMs, `${this.#host} sync`, () => {
        if (!process.alive) return;
        if (fails) {
          const why = faults.full ? 'no space left on device' : 'input/output error';
          process.deliver(() => reject(new Error(`${why} ${SIMULATED}`)));
          return;
        }
        change.acknowledged = true;
        if (sync && faults.lies) world.schedule(LIE_MS, `${this.#host} late sync`, () => this.#flush(change));
        else if (sync) this.#flush(change);
        process.deliver(resolve);
      });
    });
  }

  /** Answers a read in its own time. */
  read<T>(process: SimProcess, answer: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      this.world.schedule(this.#random.between(0.02, this.faults.readMaxMs), `${this.#host} read`, () =>
        process.deliver(() => {
          try {
            resolve(answer());
          } catch (error) {
            reject(error instanceof Error ? error : new Error(String(error)));
          }
        }),
      );
    });
  }

  /** Everything of the file up to a change reaches the durable image. */
  #flush(change: PendingChange): void {
    const at = this.#buffer.indexOf(change);
    if (at < 0) return;
    const kept: PendingChange[] = [];
    for (const [index, other] of this.#buffer.entries()) {
      if (index <= at && other.file === change.file) other.apply(this.#durable);
      else kept.push(other);
    }
    this.#buffer = kept;
  }
}

/** A durable image put aside. */
export interface SimDiskCopy {
  readonly image: Image;
}

function copyImage(image: Image): Image {
  return {
    stores: new Map([...image.stores].map(([name, store]) => [name, store.copy()])),
    files: new Map(image.files),
    directories: new Set(image.directories),
  };
}
