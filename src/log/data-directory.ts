import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { z } from 'zod';
import type { Random } from '../../raft/index.ts';
import type { Disk, KeyValueStore } from '../disk.ts';
import { EvenkeelError } from '../errors.ts';
import { damaged } from './damage.ts';
import { BOOT_KEY, END_KEY, ENTRIES_END, HARD_STATE_KEY, entryKey } from './keys.ts';
import { LogStorage } from './log-storage.ts';
import { Mark } from './mark.ts';
import { decodeBootCount, encodeBootCount } from './records.ts';

/** Raised when the layout changes; a directory of a newer one is refused. */
const FORMAT_VERSION = 1;

const identitySchema = z.strictObject({
  clusterId: z.string(),
  memberId: z.string(),
  /** Random, made once: a member is (id, directory id). */
  directoryId: z.string(),
});
const identityFileSchema = z.strictObject({
  formatVersion: z.literal(FORMAT_VERSION),
  identity: identitySchema,
  /** CRC-32 of the identity's JSON. */
  crc32: z.number(),
});

type Identity = Readonly<z.infer<typeof identitySchema>>;

interface DataDirectoryOptions {
  readonly disk: Disk;
  readonly random: Random;
  readonly directory: string;
  readonly clusterId: string;
  readonly memberId: string;
}

/** A member's data directory, locked and open. Closing `storage` closes and unlocks it. */
export interface DataDirectory {
  readonly identity: Identity;
  /** Rises with every start on this directory, from 1. */
  readonly bootCount: number;
  /** It held a term, a log or a snapshot when it was opened. */
  readonly hasState: boolean;
  readonly storage: LogStorage;
}

/**
 * The layout:
 *
 *   lock/           held by the running process
 *   identity.json   cluster, member and directory id, written last on the first boot
 *   mark            what the member last said it has, beside the store
 *   store/          LevelDB: log, term and vote, snapshot, boot count
 *
 * Rejects with `directory_in_use`, `wrong_directory` (another cluster's, another member's, a newer format),
 * `corrupt` or `disk_failed`.
 */
export async function openDataDirectory(options: DataDirectoryOptions): Promise<DataDirectory> {
  const { disk, directory } = options;
  await disk.makeDirectory(directory);
  const unlock = await disk.lock(join(directory, 'lock'));
  try {
    const found = await readIdentity(options);
    const first = found === null;
    const store = await openStore(options, first);
    try {
      return await openParts(options, found, store, unlock);
    } catch (error) {
      await store.close();
      throw error;
    }
  } catch (error) {
    await unlock();
    throw error;
  }
}

/** The disk says what is wrong with a store; what to do about it is known here. */
async function openStore({ disk, directory }: DataDirectoryOptions, first: boolean): Promise<KeyValueStore> {
  try {
    return await disk.openStore(join(directory, 'store'), { createIfMissing: first });
  } catch (error) {
    if (error instanceof EvenkeelError && error.code === 'corrupt') throw damaged(directory, error.message);
    throw error;
  }
}

async function openParts(
  options: DataDirectoryOptions,
  found: Identity | null,
  store: KeyValueStore,
  unlock: () => Promise<void>,
): Promise<DataDirectory> {
  const { disk, directory } = options;
  const hasState =
    (await holds(store, entryKey(0), ENTRIES_END)) || (await holds(store, HARD_STATE_KEY, END_KEY));
  if (found === null && hasState)
    throw damaged(directory, 'identity.json is missing though the store holds a log');
  const mark = await Mark.open(disk, join(directory, 'mark'), found === null);
  if (mark === null) throw damaged(directory, 'the file `mark` is missing or fails its checksum');
  try {
    const bootCount = await countBoot(store, mark, directory);
    const identity = found ?? (await writeIdentity(options));
    const storage = new LogStorage({ store, mark, directory, onClosed: unlock });
    return { identity, bootCount, hasState, storage };
  } catch (error) {
    await mark.close();
    throw error;
  }
}

/** Whether there is a row in `[gte, lt)`. */
async function holds(store: KeyValueStore, gte: Uint8Array, lt: Uint8Array): Promise<boolean> {
  return (await store.range({ gte, lt, limit: 1 })).length > 0;
}

async function countBoot(store: KeyValueStore, mark: Mark, directory: string): Promise<number> {
  const value = await store.get(BOOT_KEY);
  const before = value === null ? 0 : decodeBootCount(value);
  if (before === null) throw damaged(directory, 'the boot count fails its checksum');
  if (before < mark.value.boot) {
    throw damaged(directory, `it counts ${before} boots and had counted ${mark.value.boot}`);
  }
  const boot = before + 1;
  await store.write([{ type: 'put', key: BOOT_KEY, value: encodeBootCount(boot) }]);
  await mark.set({ ...mark.value, boot });
  return boot;
}

async function readIdentity(options: DataDirectoryOptions): Promise<Identity | null> {
  const { disk, directory, clusterId, memberId } = options;
  const bytes = await disk.readFile(join(directory, 'identity.json'));
  if (bytes === null) return null;
  const identity = parseIdentity(bytes, directory);
  if (identity.clusterId !== clusterId) {
    throw wrongDirectory(directory, `cluster ${identity.clusterId}, not to ${clusterId}`);
  }
  if (identity.memberId !== memberId) {
    throw wrongDirectory(directory, `member ${identity.memberId}, not to ${memberId}`);
  }
  return identity;
}

function parseIdentity(bytes: Uint8Array, directory: string): Identity {
  let json: unknown;
  try {
    json = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    throw damaged(directory, 'identity.json is no JSON');
  }
  const version = z.looseObject({ formatVersion: z.number().int() }).safeParse(json);
  if (version.success && version.data.formatVersion > FORMAT_VERSION) {
    throw new EvenkeelError(
      'wrong_directory',
      `the data directory ${directory} has format ${version.data.formatVersion}; this release reads up to ` +
        `${FORMAT_VERSION}: start a newer release on it`,
    );
  }
  const file = identityFileSchema.safeParse(json);
  if (!file.success || file.data.crc32 !== identityCrc(file.data.identity)) {
    throw damaged(directory, 'identity.json fails its checksum');
  }
  return file.data.identity;
}

async function writeIdentity(options: DataDirectoryOptions): Promise<Identity> {
  const { disk, directory, clusterId, memberId, random } = options;
  const words = Array.from({ length: 4 }, () => random.nextUint32().toString(16).padStart(8, '0'));
  const identity: Identity = { clusterId, memberId, directoryId: words.join('') };
  const file = { formatVersion: FORMAT_VERSION, identity, crc32: identityCrc(identity) };
  const text = `${JSON.stringify(file, null, 2)}\n`;
  await disk.replaceFile(join(directory, 'identity.json'), new TextEncoder().encode(text));
  return identity;
}

function identityCrc(identity: Identity): number {
  return crc32(JSON.stringify([identity.clusterId, identity.memberId, identity.directoryId]));
}

function wrongDirectory(directory: string, belongsTo: string): EvenkeelError {
  return new EvenkeelError(
    'wrong_directory',
    `the data directory ${directory} belongs to ${belongsTo}: check --data-dir, --cluster-id and --node-id`,
  );
}
