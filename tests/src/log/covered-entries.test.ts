import { afterEach, beforeEach, expect, test } from 'vitest';
import { join } from 'node:path';
import type { Entry, StorageWrite } from '../../../raft/index.ts';
import { createLevelDisk } from '../../../src/disk-level.ts';
import { ENTRIES_END, entryKey, readEntryIndex } from '../../../src/log/keys.ts';
import { openTestDirectory, temporaryDirectory } from '../../support/data-directories.ts';

let directory: { path: string; remove: () => Promise<void> };
beforeEach(async () => {
  directory = await temporaryDirectory();
});
afterEach(() => directory.remove());

function run(from: number, to: number, term = 1): Entry[] {
  return Array.from({ length: to - from + 1 }, (_, at) => ({
    index: from + at,
    term,
    kind: 'command',
    data: Uint8Array.of(at & 255),
  }));
}

function batch(part: Partial<StorageWrite>): StorageWrite {
  return { hardState: null, entries: [], snapshot: null, compactTo: 0, ...part };
}

function snapshotAt(index: number, term = 1): Partial<StorageWrite> {
  const configuration = { voters: ['n1'], outgoing: [], learners: [], learnersNext: [] };
  return { snapshot: { meta: { index, term, configuration }, data: Uint8Array.of(1) }, compactTo: index };
}

/** Lowest and highest entry that is stored, and how many; once the storage is closed. */
async function stored(): Promise<{ first: number; last: number; count: number }> {
  const store = await createLevelDisk().openStore(join(directory.path, 'store'), { createIfMissing: false });
  const rows = await store.range({ gte: entryKey(0), lt: ENTRIES_END, limit: 100_000 });
  await store.close();
  const indexes = rows.map(([key]) => readEntryIndex(key));
  return { first: indexes[0] ?? 0, last: indexes.at(-1) ?? 0, count: indexes.length };
}

async function session(...batches: StorageWrite[]): Promise<readonly Entry[]> {
  const { storage } = await openTestDirectory(directory.path);
  const { entries } = await storage.load();
  for (const each of batches) await storage.write(each);
  await storage.close();
  return entries;
}

test('entries that a snapshot covers go a thousand with each write, over restarts too', async () => {
  await session(batch({ entries: run(1, 3_000) }), batch(snapshotAt(2_500)));
  expect(await stored()).toEqual({ first: 1_001, last: 3_000, count: 2_000 });
  const entries = await session(batch({ entries: run(3_001, 3_001) }));
  expect(entries.map(({ index }) => index)).toEqual(run(2_501, 3_000).map(({ index }) => index));
  expect(await stored()).toEqual({ first: 2_001, last: 3_001, count: 1_001 });
  await session(batch({ entries: run(3_002, 3_002) }));
  expect(await stored()).toEqual({ first: 2_501, last: 3_002, count: 502 });
});

test('they go twice as fast as entries come', async () => {
  await session(batch({ entries: run(1, 5_000) }), batch(snapshotAt(5_000)));
  expect((await stored()).first).toBe(1_001);
  await session(batch({ entries: run(5_001, 6_500) }));
  expect((await stored()).first).toBe(4_001);
});

test('entries past a snapshot that are not its log’s go with it, those it covers may stay', async () => {
  await session(batch({ entries: run(1, 3_000) }), batch(snapshotAt(2_500, 2)));
  expect(await stored()).toEqual({ first: 1_001, last: 2_500, count: 1_500 });
  expect(await session(batch({ entries: run(2_501, 2_502, 2) }))).toEqual([]);
  expect(await session()).toEqual(run(2_501, 2_502, 2));
});
