import type { Random } from '../../raft/index.ts';
import type { Disk } from '../disk.ts';
import { EvenkeelError } from '../errors.ts';

const FORMAT_VERSION = 1;
const STORE_ID_WORDS = 4;

interface Identity {
  readonly formatVersion: number;
  readonly clusterId: string;
  readonly broker: string;
  /** Made at random with the directory. */
  readonly storeId: string;
  /** Registrations counted so far. */
  readonly starts: number;
}

interface Owner {
  readonly random: Random;
  readonly clusterId: string;
  readonly id: string;
}

/**
 * `broker.json`: whose data directory it is, and what its store says of itself when it registers: an id, and a count
 * that rises before each registration. An older copy of the directory has the id and a count that was used already.
 */
export class StoreIdentity {
  readonly #disk: Disk;
  readonly #file: string;
  readonly #random: Random;
  #identity: Identity;
  #last: Promise<unknown> = Promise.resolve();

  private constructor(disk: Disk, file: string, random: Random, identity: Identity) {
    this.#disk = disk;
    this.#file = file;
    this.#random = random;
    this.#identity = identity;
  }

  /** Rejects with `wrong_directory` (another broker's or cluster's), `corrupt`. */
  static async open(disk: Disk, file: string, owner: Owner): Promise<StoreIdentity> {
    const found = await disk.readFile(file);
    if (found !== null) return new StoreIdentity(disk, file, owner.random, read(file, found, owner));
    const { clusterId, id, random } = owner;
    const made = {
      formatVersion: FORMAT_VERSION,
      clusterId,
      broker: id,
      storeId: newStoreId(random),
      starts: 0,
    };
    const identity = new StoreIdentity(disk, file, random, made);
    await identity.#replace(() => made);
    return identity;
  }

  get storeId(): string {
    return this.#identity.storeId;
  }

  /** Counts one more registration; resolves once synced. */
  async count(): Promise<{ readonly storeId: string; readonly starts: number }> {
    const { storeId, starts } = await this.#replace((was) => ({ ...was, starts: was.starts + 1 }));
    return { storeId, starts };
  }

  /** The registration counted last was refused and changed nothing: the next one has its number. */
  async takeBack(): Promise<void> {
    await this.#replace((was) => ({ ...was, starts: was.starts - 1 }));
  }

  /** The store vouches for nothing any more: it goes on as another. */
  async renew(): Promise<void> {
    await this.#replace((was) => ({ ...was, storeId: newStoreId(this.#random), starts: 0 }));
  }

  #replace(change: (was: Identity) => Identity): Promise<Identity> {
    const done = this.#last.then(() => this.#write(change(this.#identity)));
    this.#last = done.catch(() => {});
    return done;
  }

  async #write(next: Identity): Promise<Identity> {
    await this.#disk.replaceFile(this.#file, Buffer.from(JSON.stringify(next)));
    this.#identity = next;
    return next;
  }
}

function newStoreId(random: Random): string {
  const words = Array.from({ length: STORE_ID_WORDS }, () =>
    random.nextUint32().toString(16).padStart(8, '0'),
  );
  return words.join('');
}

function read(file: string, data: Uint8Array, expected: Owner): Identity {
  let identity: Partial<Identity>;
  try {
    identity = JSON.parse(Buffer.from(data).toString('utf8')) as Partial<Identity>;
  } catch {
    throw new EvenkeelError(
      'corrupt',
      `${file} cannot be read: restore it, or start with an empty directory`,
    );
  }
  const { formatVersion, clusterId, broker, storeId, starts } = identity;
  if (formatVersion !== FORMAT_VERSION || typeof storeId !== 'string' || !isCount(starts)) {
    throw new EvenkeelError(
      'wrong_directory',
      `${file} is of format ${String(formatVersion)}, not ${FORMAT_VERSION}`,
    );
  }
  if (clusterId !== expected.clusterId || broker !== expected.id) {
    throw new EvenkeelError(
      'wrong_directory',
      `${file} belongs to broker ${String(broker)} of cluster ${String(clusterId)}: give broker ${expected.id} a directory of its own`,
    );
  }
  return { formatVersion, clusterId, broker, storeId, starts };
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}
