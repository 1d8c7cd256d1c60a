import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CountTable } from '../../placement/count-table.ts';

describe('a table of counts', () => {
  it.each([
    ['one block', 5, 3],
    ['several, the last not full', 600, 1_000],
    ['a block a row, rows longer than a block', 3, 300_000],
  ])('holds what was added, row by row: %s', (_, rows, columns) => {
    const add = fc.record({
      row: fc.nat({ max: rows - 1 }),
      column: fc.nat({ max: columns - 1 }),
      by: fc.integer({ min: -3, max: 3 }),
    });
    fc.assert(
      fc.property(fc.array(add, { maxLength: 50 }), (adds) => {
        const table = new CountTable(rows, columns);
        const window = table.row(rows - 1);
        const expected = new Map<string, number>();
        for (const { row, column, by } of adds) {
          table.add(row, column, by);
          const key = `${row}/${column}`;
          expected.set(key, (expected.get(key) ?? 0) + by);
        }
        for (const { row, column } of adds) {
          expect(table.at(row, column)).toBe(expected.get(`${row}/${column}`));
          expect(table.row(row)[column]).toBe(table.at(row, column));
        }
        expect(window).toHaveLength(columns);
        expect(window.buffer).toBe(table.row(rows - 1).buffer);
        let sum = 0;
        for (let r = 0; r < rows; r++) for (const n of table.row(r)) sum += n;
        expect(sum).toBe(adds.reduce((total, { by }) => total + by, 0));
      }),
      { numRuns: 10 },
    );
  });
});
