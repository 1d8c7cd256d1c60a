import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Entry, StoredState, StorageWrite } from '../../../raft/index.ts';
import { loadFlipped, placesOf } from '../../support/bit-flips.ts';
import { openTestDirectory, temporaryDirectory } from '../../support/data-directories.ts';

/** Enough to touch every kind of record in a few seconds; EVENKEEL_TEST_FLIPS=40000 takes every bit. */
const FLIPS = Number(process.env.EVENKEEL_TEST_FLIPS ?? 250);

let directory: { path: string; remove: () => Promise<void> };
let whole: unknown;

function run(from: number, to: number, term: number): Entry[] {
  return Array.from({ length: to - from + 1 }, (_, at) => ({
    index: from + at,
    term,
    kind: 'command',
    data: new TextEncoder().encode(`entry ${from + at} of term ${term}`),
  }));
}

const plain = ({ hardState, snapshot, entries }: StoredState): unknown => ({
  hardState,
  snapshot: snapshot && { meta: snapshot.meta, data: Buffer.from(snapshot.data).toString('base64') },
  entries: entries.map((entry) => ({ ...entry, data: Buffer.from(entry.data).toString() })),
});

/** Each boot turns what was in LevelDB's log into a table, so that both kinds of file hold something that counts. */
beforeAll(async () => {
  directory = await temporaryDirectory();
  const configuration = { voters: ['n1', 'n2'], outgoing: [], learners: [], learnersNext: [] };
  const data = new Uint8Array(2_000).fill(7);
  const boots: Partial<StorageWrite>[][] = [
    [{ hardState: { term: 1, votedFor: 'n1', commit: 0 }, entries: run(1, 8, 1) }],
    [{ hardState: { term: 2, votedFor: null, commit: 4 }, entries: run(6, 9, 2) }],
    [{ snapshot: { meta: { index: 5, term: 1, configuration }, data }, compactTo: 5 }],
    [
      { entries: run(10, 12, 2) },
      { hardState: { term: 3, votedFor: 'n2', commit: 9 } },
      { entries: run(13, 14, 3) },
    ],
  ];
  for (const writes of boots) {
    const { storage } = await openTestDirectory(directory.path);
    await storage.load();
    for (const write of writes) {
      await storage.write({ hardState: null, entries: [], snapshot: null, compactTo: 0, ...write });
    }
    await storage.close();
  }
  const places = await placesOf(directory.path);
  const { storage } = await openTestDirectory(directory.path);
  whole = plain(await storage.load());
  await storage.close();
  expect(places.length).toBeGreaterThan(3_000);
});
afterAll(() => directory.remove());

test('hazard 32: one bit flipped anywhere is noticed, or changes nothing; nothing wrong is ever loaded', async () => {
  const places = await placesOf(directory.path);
  // The mark is mostly padding: its bytes past the records are passed over.
  const counted = places.filter(({ file, byte }) => file !== 'mark' || byte % 4096 < 256);
  const outcomes = new Map<string, number>();
  for (let flip = 0; flip < FLIPS; flip += 1) {
    const place = counted[Math.floor((flip * counted.length) / FLIPS)];
    if (place === undefined) throw new Error('no such place');
    const outcome = await loadFlipped(directory.path, place, flip % 8, (state) => {
      expect(plain(state), `${place.file} byte ${place.byte} bit ${flip % 8}`).toEqual(whole);
    });
    const kind = outcome ?? 'unharmed';
    outcomes.set(kind, (outcomes.get(kind) ?? 0) + 1);
  }
  expect([...outcomes.keys()].sort()).toEqual(['corrupt', 'unharmed']);
});
