import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Entry } from '../../raft/index.ts';
import { RaftLog } from '../../raft/log.ts';
import { diskOf } from './support/core-cluster.ts';

const CONFIGURATION = { voters: ['a'], outgoing: [], learners: [], learnersNext: [] };
const ALL = { maxEntries: Infinity, maxBytes: Infinity };

function logOf(terms: readonly number[], commit = 0): RaftLog {
  return new RaftLog(diskOf(terms, terms.at(-1) ?? 0, commit), CONFIGURATION);
}

const entry = (index: number, term: number): Entry => ({
  index,
  term,
  kind: 'command',
  data: new Uint8Array(4),
});

describe('the log in memory', () => {
  test('the last index of at most a term is what a search from the end finds', () => {
    const terms = fc
      .array(fc.integer({ min: 1, max: 6 }), { maxLength: 30 })
      .map((list) => list.sort((a, b) => a - b));
    fc.assert(
      fc.property(terms, fc.nat(40), fc.nat(7), (list, from, term) => {
        let expected = Math.min(from, list.length);
        while (expected > 0 && (list[expected - 1] ?? 0) > term) expected -= 1;
        expect(logOf(list).lastIndexWithTermAtMost(from, term)).toBe(expected);
      }),
    );
  });

  test('a slice keeps to its limits and holds one entry at least', () => {
    const log = logOf([]);
    log.append([entry(1, 1), entry(2, 1), entry(3, 1)]);
    const indexes = (maxEntries: number, maxBytes: number) =>
      log.slice(1, 3, { maxEntries, maxBytes }).map((each) => each.index);
    expect(indexes(2, 100)).toEqual([1, 2]);
    expect(indexes(9, 8)).toEqual([1, 2]);
    expect(indexes(9, 1)).toEqual([1]);
  });

  test('compaction keeps the window behind the snapshot, and the term before it', () => {
    const log = logOf([1, 1, 2, 2, 3, 3], 6);
    log.compact(
      { meta: { index: 5, term: 3, configuration: CONFIGURATION }, data: new Uint8Array(0) },
      { maxEntries: 2, maxBytes: 100 },
    );
    expect(log).toMatchObject({ firstIndex: 4, snapshotIndex: 5, lastIndex: 6 });
    expect([2, 3, 4, 5, 6, 7].map((index) => log.termAt(index))).toEqual([null, 2, 2, 3, 3, null]);
    expect(() => log.slice(3, 6, ALL)).toThrow(/compacted/);
  });

  test('an installed snapshot leaves nothing durable but what was committed', () => {
    const log = logOf([1, 1, 1, 1], 2);
    log.install({ meta: { index: 9, term: 3, configuration: CONFIGURATION }, data: new Uint8Array(0) });
    expect(log).toMatchObject({ firstIndex: 10, lastIndex: 9, lastTerm: 3, commitIndex: 9, durableIndex: 2 });
    expect(log.takeUnwritten(ALL)).toEqual([]);
    log.written();
    expect(log.durableIndex).toBe(9);
  });

  test('gaps, falling terms, commits past the end and cuts below the commit are faults', () => {
    const log = logOf([1, 2], 1);
    expect(() => log.append([entry(4, 2)])).toThrow(/cannot follow/);
    expect(() => log.append([entry(3, 1)])).toThrow(/cannot follow/);
    expect(() => log.commitTo(3)).toThrow(/log ends at 2/);
    expect(() => log.truncateFrom(1)).toThrow(/commit is 1/);
    expect(() => logOf([2, 1])).toThrow(/cannot follow/);
  });

  test('the window behind a snapshot keeps to its bytes as well as its entries', () => {
    const first = (maxEntries: number, maxBytes: number) => {
      const log = logOf([]);
      log.append(Array.from({ length: 10 }, (_, at) => entry(at + 1, 1)));
      log.commitTo(10);
      const meta = { index: 10, term: 1, configuration: CONFIGURATION };
      log.compact({ meta, data: new Uint8Array(1) }, { maxEntries, maxBytes });
      return log.firstIndex;
    };
    expect(first(5, 100)).toBe(6);
    expect(first(5, 12)).toBe(8);
    expect(first(5, 11)).toBe(9);
    expect(first(0, 100)).toBe(11);
  });
});
