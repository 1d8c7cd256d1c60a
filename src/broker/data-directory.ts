import type { Random } from '../../raft/index.ts';
import type { Disk } from '../disk.ts';
import { RecordStore } from './record-store.ts';
import { StoreIdentity } from './store-identity.ts';

/** An opened data directory of a broker: locked, and sure to be this broker's. */
export interface BrokerDirectory {
  readonly identity: StoreIdentity;
  readonly records: RecordStore;
  close(): Promise<void>;
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
    const identity = await StoreIdentity.open(disk, `${path}/broker.json`, options);
    const store = await disk.openStore(`${path}/records`, { createIfMissing: true });
    const records = await RecordStore.open(store);
    return {
      identity,
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
