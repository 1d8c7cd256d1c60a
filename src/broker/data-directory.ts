import type { Random } from '../../raft/index.ts';
import type { Disk, KeyValueStore } from '../disk.ts';
import { EvenkeelError } from '../errors.ts';
import { RecordStore } from './record-store.ts';
import { StoreIdentity } from './store-identity.ts';
import { StoreMark } from './store-mark.ts';

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
    const { records, mark } = await openRecords(disk, path, store).catch(async (error: unknown) => {
      await store.close();
      throw error;
    });
    return {
      identity,
      records,
      async close() {
        await records.close();
        await mark.close();
        await unlock();
      },
    };
  } catch (error) {
    await unlock();
    throw error;
  }
}

/** Checks every record, and that the store holds as many writes as the mark beside it says. */
async function openRecords(
  disk: Disk,
  path: string,
  store: KeyValueStore,
): Promise<{ readonly records: RecordStore; readonly mark: StoreMark }> {
  let records: RecordStore;
  try {
    records = await RecordStore.open(store);
  } catch (error) {
    if (error instanceof EvenkeelError && error.code === 'corrupt') throw damaged(path, error.message);
    throw error;
  }
  const { mark, value } = await StoreMark.open(disk, `${path}/mark`, (error) => records.fail(error));
  records.onWritten = (writes) => mark.raise(writes);
  if (value !== null && records.writes >= value) return { records, mark };
  await mark.close();
  const what =
    value === null
      ? 'its mark cannot be read'
      : `its store ends at write ${records.writes} and had reached ${value}`;
  throw damaged(path, what);
}

/** It may lack acknowledged records, so it must not lead or follow; it may also be the last to hold some, so nothing of it is dropped. */
function damaged(path: string, what: string): EvenkeelError {
  return new EvenkeelError(
    'corrupt',
    `the data directory ${path} is damaged: ${what}. Keep it aside and start the broker with an empty one: it copies ` +
      'everything again from the brokers that hold it',
  );
}
