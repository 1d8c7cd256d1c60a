import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type {
  Configuration,
  Entry,
  RaftStorage,
  Snapshot,
  StorageWrite,
  StoredState,
} from '../../raft/index.ts';

/** One durable place. `open` may be called again once the storage it answered before is closed, and finds what that one wrote. */
export interface StorageUnderTest {
  /** A storage that is not loaded yet. */
  open(): Promise<RaftStorage>;
  cleanUp(): Promise<void>;
}

const CONFIGURATION: Configuration = {
  voters: ['n1', 'n2'],
  outgoing: ['n1'],
  learners: ['n3'],
  learnersNext: ['n2'],
};

function entry(index: number, term: number, text = `${index}@${term}`): Entry {
  return { index, term, kind: 'command', data: new TextEncoder().encode(text) };
}

function run(from: number, to: number, term: number): Entry[] {
  return Array.from({ length: to - from + 1 }, (_, at) => entry(from + at, term));
}

function snapshotAt(index: number, term: number, text = `state ${index}@${term}`): Snapshot {
  return { meta: { index, term, configuration: CONFIGURATION }, data: new TextEncoder().encode(text) };
}

function batch(part: Partial<StorageWrite>): StorageWrite {
  return { hardState: null, entries: [], snapshot: null, compactTo: 0, ...part };
}

/** Bytes compare by value whatever class carries them. */
function plain(state: StoredState): unknown {
  return {
    hardState: state.hardState,
    snapshot: state.snapshot && { meta: state.snapshot.meta, data: [...state.snapshot.data] },
    entries: state.entries.map((each) => ({ ...each, data: [...each.data] })),
  };
}

/** Every implementation of `RaftStorage` runs this suite. */
export function describeStorage(name: string, factory: () => Promise<StorageUnderTest>): void {
  describe(`${name} keeps the storage contract`, () => {
    let place: StorageUnderTest;
    let storage: RaftStorage;

    async function reopen(): Promise<StoredState> {
      await storage.close();
      storage = await place.open();
      return storage.load();
    }

    beforeEach(async () => {
      place = await factory();
      storage = await place.open();
      await storage.load();
    });

    afterEach(async () => {
      await storage.close();
      await place.cleanUp();
    });

    test('an empty one has term 0, no vote and no log', async () => {
      expect(await reopen()).toEqual({
        hardState: { term: 0, votedFor: null, commit: 0 },
        snapshot: null,
        entries: [],
      });
    });

    test('hard state, entries of every kind and their bytes come back', async () => {
      const entries: Entry[] = [
        { index: 1, term: 1, kind: 'noop', data: new Uint8Array(0) },
        { index: 2, term: 1, kind: 'config', data: new TextEncoder().encode('{}') },
        {
          index: 3,
          term: 2,
          kind: 'command',
          data: Uint8Array.from({ length: 70_000 }, (_, at) => at % 251),
        },
      ];
      const hardState = { term: 2, votedFor: 'n2', commit: 1 };
      await storage.write(batch({ hardState, entries }));
      expect(plain(await reopen())).toEqual(plain({ hardState, snapshot: null, entries }));
    });

    test('a batch without hard state leaves the one before', async () => {
      await storage.write(batch({ hardState: { term: 4, votedFor: null, commit: 0 } }));
      await storage.write(batch({ entries: run(1, 2, 4) }));
      expect((await reopen()).hardState).toEqual({ term: 4, votedFor: null, commit: 0 });
    });

    test('an append inside the log removes everything from its first index on', async () => {
      await storage.write(batch({ entries: run(1, 9, 1) }));
      await storage.write(batch({ entries: run(4, 5, 2) }));
      const { entries } = await reopen();
      expect(entries.map((each) => [each.index, each.term])).toEqual([
        [1, 1],
        [2, 1],
        [3, 1],
        [4, 2],
        [5, 2],
      ]);
    });

    test('an append at index 1 replaces the whole log', async () => {
      await storage.write(batch({ entries: run(1, 9, 1) }));
      await storage.write(batch({ entries: [entry(1, 3)] }));
      expect((await reopen()).entries).toHaveLength(1);
    });

    test('a snapshot inside a matching log keeps what follows it', async () => {
      await storage.write(batch({ entries: run(1, 9, 1) }));
      await storage.write(batch({ snapshot: snapshotAt(6, 1), compactTo: 6 }));
      const state = await reopen();
      expect(state.snapshot?.meta).toEqual({ index: 6, term: 1, configuration: CONFIGURATION });
      expect(new TextDecoder().decode(state.snapshot?.data)).toBe('state 6@1');
      expect(state.entries.map((each) => each.index)).toEqual([7, 8, 9]);
    });

    test('hazard 25: a snapshot whose term differs from the log at its index clears the log', async () => {
      await storage.write(batch({ entries: run(1, 9, 1) }));
      await storage.write(batch({ snapshot: snapshotAt(6, 2) }));
      expect((await reopen()).entries).toEqual([]);
    });

    test('hazard 25: a snapshot past the log clears it, and the next entry follows the snapshot', async () => {
      await storage.write(batch({ entries: run(1, 9, 1) }));
      await storage.write(batch({ snapshot: snapshotAt(20, 3), entries: run(21, 22, 3) }));
      const state = await reopen();
      expect(state.snapshot?.meta.index).toBe(20);
      expect(state.entries.map((each) => each.index)).toEqual([21, 22]);
    });

    test('compacting behind a snapshot leaves what load answers as it was', async () => {
      await storage.write(batch({ entries: run(1, 9, 1) }));
      await storage.write(batch({ snapshot: snapshotAt(7, 1), compactTo: 4 }));
      await storage.write(batch({ compactTo: 7 }));
      const state = await reopen();
      expect(state.snapshot?.meta.index).toBe(7);
      expect(state.entries.map((each) => each.index)).toEqual([8, 9]);
    });

    test('the newest of two snapshots is the one that comes back', async () => {
      await storage.write(batch({ entries: run(1, 9, 1) }));
      await storage.write(batch({ snapshot: snapshotAt(3, 1), compactTo: 3 }));
      await storage.write(batch({ snapshot: snapshotAt(8, 1), compactTo: 8 }));
      const state = await reopen();
      expect(new TextDecoder().decode(state.snapshot?.data)).toBe('state 8@1');
      expect(state.entries.map((each) => each.index)).toEqual([9]);
    });

    test('a large snapshot and an empty one come back whole', async () => {
      const large = Uint8Array.from({ length: 3_000_000 }, (_, at) => at % 253);
      await storage.write(
        batch({ snapshot: { meta: { index: 5, term: 1, configuration: CONFIGURATION }, data: large } }),
      );
      const found = (await reopen()).snapshot?.data;
      expect(found !== undefined && Buffer.compare(found, large) === 0).toBe(true);
      await storage.write(
        batch({
          snapshot: { meta: { index: 6, term: 1, configuration: CONFIGURATION }, data: new Uint8Array(0) },
        }),
      );
      expect((await reopen()).snapshot?.data).toHaveLength(0);
    });

    test('any sequence of writes comes back as a plain model has it', async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.array(fc.tuple(fc.nat(5), fc.nat(11), fc.nat(6)), { maxLength: 14 }),
          async (steps) => {
            const fresh = await factory();
            let under = await fresh.open();
            await under.load();
            const model = new Model();
            for (const [kind, at, count] of steps) {
              if (kind === 5) {
                await under.close();
                under = await fresh.open();
                expect(plain(await under.load())).toEqual(plain(model.state()));
                continue;
              }
              const write = model.next(kind, at, count);
              await under.write(write);
            }
            await under.close();
            under = await fresh.open();
            expect(plain(await under.load())).toEqual(plain(model.state()));
            await under.close();
            await fresh.cleanUp();
          },
        ),
        { numRuns: 40 },
      );
    });
  });
}

/** Turns any numbers into a legal write and knows what must be stored after it. */
class Model {
  #term = 1;
  #hardState = { term: 0, votedFor: null as string | null, commit: 0 };
  #snapshot: Snapshot | null = null;
  #entries = new Map<number, Entry>();

  next(kind: number, at: number, count: number): StorageWrite {
    this.#term += 1;
    const base = this.#snapshot?.meta.index ?? 0;
    const last = base + this.#entries.size;
    if (kind === 0) return this.#setHardState(at);
    if (kind === 1 || kind === 2) return this.#append(base + 1 + (at % (last - base + 1)), count);
    return this.#cover(kind === 3 ? base + Math.min(at, last - base) : last + 1 + at, count);
  }

  state(): StoredState {
    const base = this.#snapshot?.meta.index ?? 0;
    const entries: Entry[] = [];
    for (let index = base + 1; this.#entries.has(index); index++) entries.push(this.#entries.get(index)!);
    return { hardState: this.#hardState, snapshot: this.#snapshot, entries };
  }

  #setHardState(at: number): StorageWrite {
    this.#hardState = { term: this.#term, votedFor: at % 2 === 0 ? null : `n${at}`, commit: at };
    return batch({ hardState: this.#hardState });
  }

  #append(from: number, count: number): StorageWrite {
    const entries = run(from, from + count, this.#term);
    for (const index of [...this.#entries.keys()]) if (index >= from) this.#entries.delete(index);
    for (const each of entries) this.#entries.set(each.index, each);
    return batch({ entries });
  }

  #cover(index: number, count: number): StorageWrite {
    const matching =
      this.#entries.get(index)?.term ??
      (index === this.#snapshot?.meta.index ? this.#snapshot.meta.term : undefined);
    if (index === 0) return this.#setHardState(count);
    const differs = matching === undefined || (count > 4 && index > (this.#snapshot?.meta.index ?? 0));
    this.#snapshot = snapshotAt(index, differs ? this.#term : matching);
    for (const each of [...this.#entries.keys()]) if (differs || each <= index) this.#entries.delete(each);
    return batch({
      snapshot: this.#snapshot,
      compactTo: count % 2 === 0 ? index : Math.max(0, index - count),
    });
  }
}
