import { expect, test } from 'vitest';
import { splitCaps } from '../../../placement/copies/caps.ts';
import type { Field } from '../../../placement/copies/field.ts';
import type { ResourceTarget } from '../../../placement/copies/targets.ts';
import { cluster, row, viewOf, withRows } from './support.ts';

test("the parts of a cap sum to it less the broker's copies of shards that do not count", () => {
  const from = cluster(
    [{ id: 'b1', cap: 6 }, { id: 'b2' }, { id: 'dead', lifecycle: 'down' }],
    [
      { name: 'a', shards: 8, factor: 2 },
      { name: 'b', shards: 8, factor: 2 },
    ],
  );
  // Three shards whose leader is down hold a copy each on the capped broker: they do not count, and stay.
  const held = [0, 1, 2].map((n) => row(`stream:a/${n}`, ['dead', 'b1']));
  const view = viewOf(withRows(from, held));
  const b1 = view.brokers.ids.indexOf('b1');
  const wantsFive = { share: { floor: () => 5, remainder: () => 0, denominator: () => 1 } };
  const parts = splitCaps(view, { capped: [b1] } as unknown as Field, {
    toLead: () => 0,
    build: () => wantsFive as unknown as ResourceTarget,
  });
  const sum = (parts ?? []).reduce((all, of) => all + (of[0] ?? 0), 0);
  expect(sum).toBe(6 - held.length);
});
