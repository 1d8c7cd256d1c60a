import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Entry, StorageWrite } from '../../../raft/index.ts';
import { createLevelDisk } from '../../../src/disk-level.ts';
import type { Disk } from '../../../src/disk.ts';
import { describeStorage } from '../../raft/storage-conformance.ts';
import { SNAPSHOT_CHUNK_BYTES } from '../../../src/log/snapshot-chunks.ts';
import { openTestDirectory, temporaryDirectory } from '../../support/data-directories.ts';

describeStorage('LogStorage on LevelDB', async () => {
  const directory = await temporaryDirectory();
  return {
    open: async () => (await openTestDirectory(directory.path)).storage,
    cleanUp: directory.remove,
  };
});

const CONFIGURATION = { voters: ['n1'], outgoing: [], learners: [], learnersNext: [] };

let directory: { path: string; remove: () => Promise<void> };
beforeEach(async () => {
  directory = await temporaryDirectory();
});
afterEach(() => directory.remove());

function batch(part: Partial<StorageWrite>): StorageWrite {
  return { hardState: null, entries: [], snapshot: null, compactTo: 0, ...part };
}

function run(from: number, to: number, term: number): Entry[] {
  return Array.from({ length: to - from + 1 }, (_, at) => ({
    index: from + at,
    term,
    kind: 'command',
    data: new TextEncoder().encode(`entry ${from + at} of term ${term}`),
  }));
}

/** Opens the closed directory's store beside the storage's back. */
async function tamper(
  change: (store: Awaited<ReturnType<Disk['openStore']>>) => Promise<void>,
): Promise<void> {
  const store = await createLevelDisk().openStore(join(directory.path, 'store'), { createIfMissing: false });
  await change(store);
  await store.close();
}

function key(letter: string, index?: number): Uint8Array {
  const bytes = Buffer.alloc(index === undefined ? 1 : 9);
  bytes.write(letter);
  if (index !== undefined) bytes.writeBigUInt64BE(BigInt(index), 1);
  return bytes;
}

async function written(...batches: StorageWrite[]): Promise<void> {
  const { storage } = await openTestDirectory(directory.path);
  await storage.load();
  for (const each of batches) await storage.write(each);
  await storage.close();
}

async function loading(): Promise<unknown> {
  const { storage } = await openTestDirectory(directory.path);
  try {
    return await storage.load();
  } finally {
    await storage.close();
  }
}

const state = batch({ hardState: { term: 3, votedFor: 'n2', commit: 2 }, entries: run(1, 9, 3) });

test('an entry that vanished from the middle is missed', async () => {
  await written(state);
  await tamper((store) => store.write([{ type: 'delete', key: key('e', 5) }]));
  await expect(loading()).rejects.toMatchObject({
    code: 'corrupt',
    message: expect.stringMatching(/entry 5 is missing.*stays down/s),
  });
});

test('an entry of another life is missed at any place, though its own checksum holds', async () => {
  const other = batch({
    hardState: { term: 3, votedFor: 'n2', commit: 2 },
    entries: run(1, 9, 3).map((entry) => ({
      ...entry,
      data: new TextEncoder().encode(`other ${entry.index}`),
    })),
  });
  await written(other);
  const theirs: (Uint8Array | null)[] = [];
  await tamper(async (store) => {
    for (let index = 1; index <= 9; index++) theirs.push(await store.get(key('e', index)));
  });
  for (let index = 1; index <= 9; index++) {
    await directory.remove();
    directory = await temporaryDirectory();
    await written(state);
    const value = theirs[index - 1];
    if (value === null || value === undefined) throw new Error(`entry ${index} was written`);
    await tamper((store) => store.write([{ type: 'put', key: key('e', index), value }]));
    await expect(loading(), `entry ${index}`).rejects.toMatchObject({ code: 'corrupt' });
  }
});

test('the chunks of a snapshot go with the one that replaces it', async () => {
  const snapshots = [2, 4, 6].map((index) =>
    batch({
      snapshot: {
        meta: { index, term: 3, configuration: CONFIGURATION },
        data: new Uint8Array(SNAPSHOT_CHUNK_BYTES + 1).fill(index),
      },
    }),
  );
  await written(state, ...snapshots);
  await tamper(async (store) => {
    const rows = await store.range({ gte: key('s'), lt: key('t'), limit: 100 });
    expect(rows).toHaveLength(2);
  });
});

test('entries that vanished from the end are missed by the mark', async () => {
  await written(state);
  await tamper((store) => store.write([{ type: 'delete', key: key('e', 9) }]));
  await expect(loading()).rejects.toMatchObject({
    code: 'corrupt',
    message: expect.stringMatching(/log ends at 8 and had reached 9/),
  });
});

test('a vote that vanished is missed by the mark', async () => {
  await written(state);
  await tamper((store) => store.write([{ type: 'delete', key: key('h') }]));
  await expect(loading()).rejects.toMatchObject({
    code: 'corrupt',
    message: expect.stringMatching(/term 3/),
  });
});

test('an older vote of the same term that came back to light is noticed', async () => {
  await written(batch({ hardState: { term: 3, votedFor: null, commit: 0 } }));
  const before: Uint8Array[] = [];
  await tamper(async (store) => {
    const value = await store.get(key('h'));
    if (value !== null) before.push(value);
  });
  await written(batch({ hardState: { term: 3, votedFor: 'n3', commit: 0 } }));
  await tamper((store) => store.write(before.map((value) => ({ type: 'put', key: key('h'), value }))));
  await expect(loading()).rejects.toMatchObject({
    message: expect.stringMatching(/vote for n3 in term 3 is gone/),
  });
});

test('an entry of an overwritten tail that came back to light does not link', async () => {
  await written(batch({ entries: run(1, 9, 1) }));
  const old: { index: number; value: Uint8Array }[] = [];
  await tamper(async (store) => {
    for (const index of [5, 8, 9]) {
      const value = await store.get(key('e', index));
      if (value !== null) old.push({ index, value });
    }
  });
  await written(batch({ hardState: { term: 2, votedFor: null, commit: 0 }, entries: run(4, 7, 2) }));
  const putBack = (...indexes: number[]) =>
    tamper((store) =>
      store.write(
        old
          .filter(({ index }) => indexes.includes(index))
          .map(({ index, value }) => ({ type: 'put', key: key('e', index), value })),
      ),
    );
  await putBack(8, 9);
  await expect(loading()).rejects.toMatchObject({
    message: expect.stringMatching(/entry 8 does not follow/),
  });
  await tamper((store) => store.write([8, 9].map((index) => ({ type: 'delete', key: key('e', index) }))));
  await loading();
  await putBack(5);
  await expect(loading()).rejects.toMatchObject({
    message: expect.stringMatching(/entry 5 does not follow/),
  });
});

test('the last entry replaced by the one it had replaced is noticed', async () => {
  await written(batch({ entries: run(1, 9, 1) }));
  let old: Uint8Array | null = null;
  await tamper(async (store) => {
    old = await store.get(key('e', 9));
  });
  await written(batch({ entries: run(9, 9, 2) }));
  await tamper((store) => store.write([{ type: 'put', key: key('e', 9), value: old ?? new Uint8Array() }]));
  await expect(loading()).rejects.toMatchObject({ message: expect.stringMatching(/entry 9 is not the one/) });
});

test('a damaged mark is refused, and one torn slot is not', async () => {
  await written(state);
  const disk = createLevelDisk();
  const path = join(directory.path, 'mark');
  const mark = Buffer.from((await disk.readFile(path)) ?? []);
  mark.fill(0xff, 0, 200);
  await disk.replaceFile(path, mark);
  await loading();
  await disk.replaceFile(path, new Uint8Array(8192));
  await expect(openTestDirectory(directory.path)).rejects.toMatchObject({ code: 'corrupt' });
  await expect(openTestDirectory(directory.path)).rejects.toMatchObject({ code: 'corrupt' });
});

test('a truncation lowers the mark before it is written', async () => {
  await written(batch({ entries: run(1, 9, 1) }), batch({ entries: run(4, 5, 2) }));
  await loading();
  await written(batch({ entries: run(6, 7, 2) }));
  await loading();
});

test('hazard 31: the first failed write is final', async () => {
  const real = createLevelDisk();
  let failNext = false;
  const disk: Disk = {
    ...real,
    openStore: async (...args) => {
      const store = await real.openStore(...args);
      return {
        get: (at) => store.get(at),
        range: (options) => store.range(options),
        close: () => store.close(),
        write: (operations) => {
          if (!failNext) return store.write(operations);
          failNext = false;
          return Promise.reject(new Error('input/output error'));
        },
      };
    },
  };
  const { storage } = await openTestDirectory(directory.path, disk);
  await storage.load();
  await storage.write(batch({ entries: run(1, 2, 1) }));
  failNext = true;
  await expect(storage.write(batch({ entries: run(3, 3, 1) }))).rejects.toThrow('input/output error');
  await expect(storage.write(batch({ entries: run(3, 3, 1) }))).rejects.toThrow('input/output error');
  await storage.close();
  const again = await openTestDirectory(directory.path);
  expect((await again.storage.load()).entries).toHaveLength(2);
  await again.storage.close();
});

test('a mark that cannot be written stops the storage', async () => {
  const real = createLevelDisk();
  let broken = false;
  const disk: Disk = {
    ...real,
    openFixedFile: async (...args) => {
      const file = await real.openFixedFile(...args);
      return {
        read: () => file.read(),
        close: () => file.close(),
        writeAt: (offset, data, options) =>
          broken ? Promise.reject(new Error('input/output error')) : file.writeAt(offset, data, options),
      };
    },
  };
  const { storage } = await openTestDirectory(directory.path, disk);
  await storage.load();
  broken = true;
  await storage.write(batch({ entries: run(1, 1, 1) }));
  await expect(storage.write(batch({ entries: run(2, 2, 1) }))).rejects.toThrow('input/output error');
  await storage.close();
});

test('misuse is an error of ours: a gap, an older snapshot, compaction past the snapshot, overlapping writes', async () => {
  const misuses: StorageWrite[] = [
    batch({ entries: run(3, 3, 1) }),
    batch({ entries: [...run(1, 1, 1), ...run(3, 3, 1)] }),
    batch({ compactTo: 1 }),
  ];
  for (const misuse of misuses) {
    const { storage } = await openTestDirectory(directory.path);
    await storage.load();
    await expect(storage.write(misuse)).rejects.toThrow();
    await storage.close();
  }
  const { storage } = await openTestDirectory(directory.path);
  await expect(storage.write(state)).rejects.toThrow(/before load/);
  await storage.load();
  const first = storage.write(state);
  await expect(storage.write(state)).rejects.toThrow(/overlap/);
  await first;
  await storage.close();
});
