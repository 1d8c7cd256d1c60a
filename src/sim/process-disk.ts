import type { Disk, FixedFile, KeyValueStore, StoreOperation } from '../disk.ts';
import type { SimDisk } from './disk.ts';
import type { SimStoreImage } from './store-image.ts';
import type { SimProcess } from './world.ts';

/** A machine's disk as one process of it sees it. */
export class ProcessDisk implements Disk {
  readonly #disk: SimDisk;
  readonly #process: SimProcess;

  constructor(disk: SimDisk, process: SimProcess) {
    this.#disk = disk;
    this.#process = process;
  }

  openStore(directory: string, options: { createIfMissing: boolean }): Promise<KeyValueStore> {
    return this.#disk.read(this.#process, () => {
      const view = this.#disk.openStore(directory, options.createIfMissing);
      return new ProcessStore(this.#disk, this.#process, directory, view);
    });
  }

  makeDirectory(directory: string): Promise<void> {
    return this.#disk.commit(this.#process, directory, (image) => image.directories.add(directory));
  }

  list(directory: string): Promise<string[]> {
    const prefix = `${directory}/`;
    return this.#disk.read(this.#process, () => {
      const image = this.#disk.image();
      const names = new Set<string>();
      for (const path of [...image.files.keys(), ...image.stores.keys(), ...image.directories]) {
        if (path.startsWith(prefix)) names.add(path.slice(prefix.length).split('/')[0] as string);
      }
      return [...names].sort();
    });
  }

  readFile(path: string): Promise<Uint8Array | null> {
    return this.#disk.read(this.#process, () => this.#disk.image().files.get(path)?.slice() ?? null);
  }

  replaceFile(path: string, data: Uint8Array): Promise<void> {
    const copy = data.slice();
    return this.#disk.commit(this.#process, path, (image) => image.files.set(path, copy));
  }

  async openFixedFile(path: string, sizeBytes: number): Promise<FixedFile> {
    if ((await this.readFile(path)) === null) await this.replaceFile(path, new Uint8Array(sizeBytes));
    return {
      read: async () => (await this.readFile(path)) ?? new Uint8Array(sizeBytes),
      writeAt: (offset, data, options) =>
        this.#disk.overwrite(this.#process, path, offset, data.slice(), options.sync),
      close: () => Promise.resolve(),
    };
  }

  lock(path: string): Promise<() => Promise<void>> {
    return this.#disk.read(this.#process, () => {
      const release = this.#disk.lock(path, this.#process);
      return () => Promise.resolve(release());
    });
  }
}

/** An open store: reads see what was written and synced, as one process sees its own LevelDB. */
class ProcessStore implements KeyValueStore {
  readonly #disk: SimDisk;
  readonly #process: SimProcess;
  readonly #directory: string;
  readonly #view: SimStoreImage;

  constructor(disk: SimDisk, process: SimProcess, directory: string, view: SimStoreImage) {
    this.#disk = disk;
    this.#process = process;
    this.#directory = directory;
    this.#view = view;
  }

  get(key: Uint8Array): Promise<Uint8Array | null> {
    return this.#disk.read(this.#process, () => this.#view.get(key));
  }

  range(options: { gte: Uint8Array; lt: Uint8Array; limit: number }): Promise<[Uint8Array, Uint8Array][]> {
    return this.#disk.read(this.#process, () => this.#view.range(options));
  }

  async write(operations: readonly StoreOperation[]): Promise<void> {
    const batch = operations.map((operation) =>
      operation.type === 'put'
        ? { type: 'put' as const, key: operation.key.slice(), value: operation.value.slice() }
        : { type: 'delete' as const, key: operation.key.slice() },
    );
    await this.#disk.commit(this.#process, this.#directory, (image) =>
      image.stores.get(this.#directory)?.apply(batch),
    );
    this.#view.apply(batch);
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}
