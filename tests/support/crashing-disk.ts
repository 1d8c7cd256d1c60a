import type { Disk, FixedFile, KeyValueStore } from '../../src/disk.ts';

export class Crash extends Error {}

/**
 * A disk whose process dies at one of its calls: nothing is carried out from then on. What had been handed
 * over stays, as after kill -9.
 */
export class CrashingDisk {
  /** Calls that change something, counted from 1, up to now. */
  calls = 0;
  readonly #disk: Disk;
  readonly #point: number;
  readonly #done: boolean;
  #dead = false;
  readonly #open: (() => Promise<void>)[] = [];

  /** Dies at call `point`; `done`: right after it was carried out, before anyone heard. */
  constructor(disk: Disk, point: number, done: boolean) {
    this.#disk = disk;
    this.#point = point;
    this.#done = done;
  }

  get dead(): boolean {
    return this.#dead;
  }

  /** The system closes what the dead process had open. */
  async bury(): Promise<void> {
    for (const close of this.#open.splice(0).reverse()) await close();
  }

  asDisk(): Disk {
    const disk = this.#disk;
    return {
      makeDirectory: (path) => this.#change(() => disk.makeDirectory(path)),
      list: (path) => this.#read(() => disk.list(path)),
      readFile: (path) => this.#read(() => disk.readFile(path)),
      replaceFile: (path, data) => this.#change(() => disk.replaceFile(path, data)),
      openStore: async (...args) => {
        const store = await this.#change(async () => this.#opened(await disk.openStore(...args)));
        return this.#store(store);
      },
      openFixedFile: async (...args) => {
        const file = await this.#change(async () => this.#opened(await disk.openFixedFile(...args)));
        return this.#file(file);
      },
      lock: async (path) => {
        const unlock = await this.#change(async () => {
          const taken = await disk.lock(path);
          this.#open.push(taken);
          return taken;
        });
        return () => this.#read(() => this.#closing(unlock));
      },
    };
  }

  #store(store: KeyValueStore): KeyValueStore {
    return {
      get: (key) => this.#read(() => store.get(key)),
      range: (options) => this.#read(() => store.range(options)),
      write: (operations) => this.#change(() => store.write(operations)),
      close: () => this.#read(() => this.#closing(store)),
    };
  }

  #file(file: FixedFile): FixedFile {
    return {
      read: () => this.#read(() => file.read()),
      writeAt: (offset, data, options) => this.#change(() => file.writeAt(offset, data, options)),
      close: () => this.#read(() => this.#closing(file)),
    };
  }

  readonly #closers = new Map<object, () => Promise<void>>();

  #opened<T extends { close(): Promise<void> }>(part: T): T {
    const close = () => part.close();
    this.#closers.set(part, close);
    this.#open.push(close);
    return part;
  }

  #closing(part: { close(): Promise<void> } | (() => Promise<void>)): Promise<void> {
    const close = typeof part === 'function' ? part : this.#closers.get(part);
    const at = this.#open.findIndex((each) => each === close);
    if (close === undefined || at === -1) throw new Error('closed twice');
    this.#open.splice(at, 1);
    return close();
  }

  async #read<T>(work: () => Promise<T>): Promise<T> {
    if (this.#dead) throw new Crash('the process is dead');
    return work();
  }

  async #change<T>(work: () => Promise<T>): Promise<T> {
    if (this.#dead) throw new Crash('the process is dead');
    this.calls += 1;
    if (this.calls !== this.#point) return work();
    this.#dead = true;
    if (this.#done) await work();
    throw new Crash(`crashed at call ${this.#point}`);
  }
}
