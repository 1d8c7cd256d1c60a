import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { hashRow, StateHash, type Plain } from '../../../src/state/hash.ts';

const header = hashRow('header', {});
const digest = (rows: readonly Plain[]) => {
  const hash = new StateHash();
  for (const row of rows) hash.add(hashRow('t', row));
  return hash.digest(header);
};

describe('the state hash', () => {
  it('is 16 hex digits, frozen: members of two versions compare it', () => {
    expect(digest([])).toBe(FROZEN_EMPTY);
    expect(digest([{ id: 'b1', n: 1, list: ['a', null, true], big: 2 ** 40 }])).toBe(FROZEN_ROW);
  });

  it('does not mind the order of rows, and forgets a row that is taken out', () => {
    const rows: Plain[] = [{ a: 1 }, { a: 2 }, { b: 'x' }];
    expect(digest([...rows].reverse())).toBe(digest(rows));
    const hash = new StateHash();
    for (const row of rows) hash.add(hashRow('t', row));
    hash.remove(hashRow('t', { a: 2 }));
    expect(hash.digest(header)).toBe(digest([{ a: 1 }, { b: 'x' }]));
  });

  it('tells apart what differs in one place', () => {
    const rows: Plain[] = [
      { a: 1 },
      { a: 1 + 2 ** 32 },
      { a: 1 + 2 ** 33 },
      { a: -1 },
      { a: '1' },
      { a: null },
      { a: false },
      { a: true },
      { a: [] },
      { a: {} },
      { a: [1] },
      { a: ['1'] },
      { a: ['', ''] },
      { a: [''] },
      { a: ['x', ''] },
      { a: ['', 'x'] },
      { b: 1 },
      { a: 1, b: null },
      {},
    ];
    expect(new Set(rows.map((row) => digest([row]))).size).toBe(rows.length);
    expect(new StateHash().digest(hashRow('x', { a: 1 }))).not.toBe(
      new StateHash().digest(hashRow('y', { a: 1 })),
    );
  });

  it('spreads: near rows do not collide, in either lane', () => {
    const a = new Set<number>();
    const b = new Set<number>();
    const both = new Set<string>();
    const N = 20_000;
    for (let i = 0; i < N; i++) {
      const row = hashRow('assignment', { shard: `stream:s/${i}`, generation: i % 7 });
      a.add(row.a);
      b.add(row.b);
      both.add(`${row.a},${row.b}`);
    }
    expect(both.size).toBe(N);
    // By chance 20,000 draws of 2^32 collide about 0.05 times.
    expect(a.size).toBeGreaterThan(N - 5);
    expect(b.size).toBeGreaterThan(N - 5);
  });

  it('changes with any field of any row', () => {
    const plain = fc.letrec<{ value: Plain }>((tie) => ({
      value: fc.oneof(
        { depthSize: 'small' },
        fc.constant(null),
        fc.boolean(),
        fc.maxSafeInteger(),
        fc.string(),
        fc.array(tie('value'), { maxLength: 3 }),
        fc.dictionary(fc.string(), tie('value'), { maxKeys: 3 }),
      ),
    })).value;
    fc.assert(
      fc.property(plain, plain, (x, y) => {
        const same = JSON.stringify(x) === JSON.stringify(y);
        expect(digest([x]) === digest([y])).toBe(same);
      }),
      { numRuns: 2_000 },
    );
  });
});

const FROZEN_EMPTY = '7dd858d66d11987f';
const FROZEN_ROW = '120c2b96f06e399b';
