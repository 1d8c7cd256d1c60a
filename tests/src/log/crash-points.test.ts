import { expect, test } from 'vitest';
import { MemoryStorage, type Entry, type StorageWrite, type StoredState } from '../../../raft/index.ts';
import { createLevelDisk } from '../../../src/disk-level.ts';
import { Crash, CrashingDisk } from '../../support/crashing-disk.ts';
import { openTestDirectory, temporaryDirectory } from '../../support/data-directories.ts';

function run(from: number, to: number, term: number): Entry[] {
  return Array.from({ length: to - from + 1 }, (_, at) => ({
    index: from + at,
    term,
    kind: 'command',
    data: new TextEncoder().encode(`${from + at}@${term}`),
  }));
}

const configuration = { voters: ['n1'], outgoing: [], learners: [], learnersNext: [] };
const snapshot = (index: number, term: number, bytes: number) => ({
  meta: { index, term, configuration },
  data: Uint8Array.from({ length: bytes }, (_, at) => (at + index) % 251),
});

/** Every kind of write a member makes, each between others. Chunks of 256 KiB go four to a write. */
const WRITES: readonly Partial<StorageWrite>[] = [
  { hardState: { term: 1, votedFor: 'n1', commit: 0 }, entries: run(1, 1, 1) },
  { entries: run(2, 9, 1) },
  { hardState: { term: 2, votedFor: null, commit: 3 }, entries: run(5, 7, 2) },
  { hardState: { term: 3, votedFor: 'n2', commit: 3 } },
  { snapshot: snapshot(4, 1, 1_500_000), compactTo: 4 },
  { entries: run(7, 12, 3) },
  { snapshot: snapshot(8, 3, 300_000), entries: run(13, 13, 3), compactTo: 8 },
  { hardState: { term: 4, votedFor: null, commit: 9 }, snapshot: snapshot(10, 4, 700_000) },
  { hardState: { term: 4, votedFor: null, commit: 11 }, entries: run(11, 12, 4) },
  { snapshot: snapshot(30, 4, 0), entries: run(31, 31, 4) },
];

function plain(state: StoredState): unknown {
  const { hardState, snapshot, entries } = state;
  return {
    hardState,
    snapshot: snapshot && { meta: snapshot.meta, data: Buffer.from(snapshot.data).toString('base64') },
    entries: entries.map((entry) => ({ ...entry, data: Buffer.from(entry.data).toString() })),
  };
}

/** What must be found before any write, and after each. */
async function expected(): Promise<unknown[]> {
  const model = new MemoryStorage();
  const states = [plain(await model.load())];
  for (const write of WRITES) {
    await model.write({ hardState: null, entries: [], snapshot: null, compactTo: 0, ...write });
    states.push(plain(await model.load()));
  }
  return states;
}

/** Runs all writes until the disk's process dies. Answers how many were acknowledged. */
async function live(path: string, crashing: CrashingDisk): Promise<number> {
  let acknowledged = 0;
  try {
    const { storage } = await openTestDirectory(path, crashing.asDisk());
    await storage.load();
    for (const write of WRITES) {
      await storage.write({ hardState: null, entries: [], snapshot: null, compactTo: 0, ...write });
      acknowledged += 1;
    }
    await storage.close();
  } catch (error) {
    if (!(error instanceof Crash)) throw error;
  }
  return acknowledged;
}

test.each([false, true])(
  'hazard 20: kill -9 at every storage call loses nothing acknowledged (call carried out: %s)',
  async (done) => {
    const states = await expected();
    for (let point = 1; ; point += 1) {
      const directory = await temporaryDirectory();
      const crashing = new CrashingDisk(createLevelDisk(), point, done);
      const acknowledged = await live(directory.path, crashing);
      await crashing.bury();
      const { storage } = await openTestDirectory(directory.path);
      const found = plain(await storage.load());
      // The write under way may have got there, whole.
      const allowed = states.slice(acknowledged, acknowledged + 2);
      expect(allowed, `crash at call ${point}`).toContainEqual(found);
      await storage.write({
        hardState: { term: 9, votedFor: null, commit: 0 },
        entries: [],
        snapshot: snapshot(40, 9, 10),
        compactTo: 0,
      });
      await storage.close();
      const again = await openTestDirectory(directory.path);
      expect((await again.storage.load()).snapshot?.meta.index).toBe(40);
      await again.storage.close();
      await directory.remove();
      if (!crashing.dead) {
        expect(acknowledged).toBe(WRITES.length);
        expect(point).toBeGreaterThan(20);
        return;
      }
    }
  },
);
