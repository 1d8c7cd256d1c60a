import type { Random } from '../../raft/index.ts';
import type { Disk } from '../disk.ts';
import { EvenkeelError } from '../errors.ts';
import { RecordStore } from './record-store.ts';

const FORMAT_VERSION = 1;
const STORE_ID_WORDS = 4;

/** An opened data directory of a broker: locked, and sure to be this broker's. */
export interface BrokerDirectory {
  /** Made at random with the directory: says whether a broker that comes back has its records with it. */
  readonly storeId: string;
  readonly records: RecordStore;
  close(): Promise<void>;
}

interface Identity {
  readonly formatVersion: number;
  readonly clusterId: string;
  readonly broker: string;
  readonly storeId: string;
}

/** Rejects with `directory_in_use`, `wrong_directory` (another broker's or cluster's), `corrupt`. */
export async function openBrokerDirectory(
  disk: Disk,
  path: string,
  options: { readonly random: Random; readonly clusterId: string; readonly id: string },
): Promise<BrokerDirectory> {
  await disk.makeDirectory(path);
  const unlock = await disk.lock(`${path}/lock`);
  try {
    const file = `${path}/broker.json`;
    const known = await disk.readFile(file);
    const identity = known === null ? newIdentity(options) : readIdentity(file, known, options);
    if (known === null) await disk.replaceFile(file, Buffer.from(JSON.stringify(identity)));
    const store = await disk.openStore(`${path}/records`, { createIfMissing: true });
    const records = await RecordStore.open(store);
    return {
      storeId: identity.storeId,
      records,
      async close() {
        await records.close();
        await unlock();
      },
    };
  } catch (error) {
    await unlock();
    throw error;
  }
}

function newIdentity({ random, clusterId, id }: { random: Random; clusterId: string; id: string }): Identity {
  const words = Array.from({ length: STORE_ID_WORDS }, () =>
    random.nextUint32().toString(16).padStart(8, '0'),
  );
  return { formatVersion: FORMAT_VERSION, clusterId, broker: id, storeId: words.join('') };
}

function readIdentity(file: string, data: Uint8Array, expected: { clusterId: string; id: string }): Identity {
  let identity: Partial<Identity>;
  try {
    identity = JSON.parse(Buffer.from(data).toString('utf8')) as Partial<Identity>;
  } catch {
    throw new EvenkeelError(
      'corrupt',
      `${file} cannot be read: restore it, or start with an empty directory`,
    );
  }
  const { formatVersion, clusterId, broker, storeId } = identity;
  if (formatVersion !== FORMAT_VERSION || typeof storeId !== 'string') {
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
  return { formatVersion, clusterId, broker, storeId };
}
