import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Selection } from '../../placement/selection.ts';
import { SEED } from './support/seed.ts';

const BROKERS = 40;

/** Few different keys and scores, so that most brokers have their equals. */
const rows = fc.uniqueArray(
  fc.record({
    broker: fc.nat({ max: BROKERS - 1 }),
    key: fc.integer({ min: -2, max: 2 }),
    score: fc.nat({ max: 3 }),
  }),
  { selector: (row) => row.broker, maxLength: BROKERS },
);

describe('a selection', () => {
  it('has the smallest keys, among equals the highest scores, then the first, and scores nobody else', () => {
    const keys = new Float64Array(BROKERS);
    const selection = new Selection(keys);
    fc.assert(
      fc.property(rows, fc.integer({ min: -1, max: BROKERS + 1 }), (list, wanted) => {
        const of = new Map(list.map((row) => [row.broker, row]));
        const score = (b: number): number => of.get(b)?.score ?? 0;
        const key = (b: number): number => of.get(b)?.key ?? 0;
        const inOrder = list
          .map(({ broker }) => broker)
          .sort((a, b) => key(a) - key(b) || score(b) - score(a) || a - b);
        const scored: number[] = [];
        selection.begin();
        for (const row of list) {
          keys[row.broker] = row.key;
          selection.add(row.broker);
        }
        const chosen = selection.choose(wanted, {
          ranks: (among, from, to, into) => {
            for (const b of among.subarray(from, to)) {
              scored.push(b);
              into[b] = -score(b);
            }
          },
          compare: (a, b) => score(b) - score(a) || a - b,
        });
        const front = Array.from({ length: chosen }, (_, i) => selection.at(i));
        const expected = inOrder.slice(0, Math.max(0, wanted));
        expect(front.sort((a, b) => a - b)).toEqual(expected.sort((a, b) => a - b));
        const last = inOrder[chosen - 1] ?? 0;
        expect(scored.every((b) => key(b) === key(last))).toBe(true);
      }),
      { numRuns: 2_000, seed: SEED },
    );
  });

  it('scores nobody where keys alone decide', () => {
    const selection = new Selection(Float64Array.of(0, 0, 1, 1));
    for (const b of [0, 1, 2, 3]) selection.add(b);
    const nobody = (): never => {
      throw new Error('scored');
    };
    expect(selection.choose(2, { ranks: nobody, compare: nobody })).toBe(2);
    expect([selection.at(0), selection.at(1)].sort((a, b) => a - b)).toEqual([0, 1]);
  });
});
