import fc from 'fast-check';
import { expect, test } from 'vitest';
import { StateHash } from '../../../src/state/hash.ts';
import { Table } from '../../../src/state/table.ts';

const write = fc.tuple(fc.integer({ min: 0, max: 9 }), fc.option(fc.integer({ min: 0, max: 99 })));

test('rows that are held stay as they were, whatever is written or removed, until they are released', () => {
  fc.assert(
    fc.property(fc.array(write), fc.array(write), (earlier, later) => {
      const table = new Table<number, { readonly value: number }>(new StateHash(), 'row', (row) => ({
        ...row,
      }));
      const apply = ([key, value]: [number, number | null]): void => {
        if (value === null) table.delete(key);
        else table.put(key, { value });
      };
      earlier.forEach(apply);
      const before = new Map(table.rows);
      const held = table.hold();
      for (const each of later) {
        apply(each);
        expect(held.size).toBe(before.size);
        expect(new Map(held)).toEqual(before);
        expect(new Set(held.keys())).toEqual(new Set(before.keys()));
        expect([...held.values()]).toHaveLength(before.size);
        for (let key = 0; key < 10; key++) {
          expect(held.get(key)).toBe(before.get(key));
          expect(held.has(key)).toBe(before.has(key));
        }
      }
      table.release();
      apply([3, 7]);
      expect(table.rows.get(3)).toEqual({ value: 7 });
    }),
  );
});
