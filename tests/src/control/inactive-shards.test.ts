import { expect, test } from 'vitest';
import { InactiveShards } from '../../../src/control/inactive-shards.ts';
import type { AssignmentRow } from '../../../src/state/index.ts';
import { VirtualClock } from '../../raft/support/virtual-clock.ts';
import { Harness } from '../apply/harness.ts';
import { assignmentRow, brokerRow, importOf, resource } from '../apply/harness.ts';

function rows(count: number): AssignmentRow[] {
  const h = new Harness();
  const assignments = Array.from({ length: count }, (_, i) => assignmentRow(`stream:s/${i}`, ['b1']));
  for (const command of importOf({
    brokers: [brokerRow('b1')],
    resources: [resource('s', { shards: count })],
    assignments,
  }))
    h.ok(command);
  return h.state.assignments.list();
}

test('a shard counts from when it stopped being active, through whatever is written while it opens', async () => {
  const clock = new VirtualClock();
  const shards = new InactiveShards(clock);
  const [row] = rows(1);
  if (row === undefined) throw new Error('a row was imported');
  shards.note({ ...row, state: 'assigning' });
  await clock.advance(4_000);
  shards.note({ ...row, state: 'draining' });
  await clock.advance(6_000);
  expect(shards.longerThan(10_000)).toEqual({ count: 1, longest: { shard: row.shard, forMs: 10_000 } });
  expect(shards.longerThan(10_001)).toEqual({ count: 0, longest: null });
  shards.note({ ...row, state: 'active' });
  expect(shards.longerThan(0).count).toBe(0);
  shards.note({ ...row, state: 'assigning' });
  shards.forget(row.shard);
  expect(shards.longerThan(0).count).toBe(0);
});

test('a new leader finds what was inactive before it, over several turns', async () => {
  const clock = new VirtualClock();
  const shards = new InactiveShards(clock);
  const all = rows(12_000);
  const now = new Map(all.map((row): [string, AssignmentRow] => [row.shard, { ...row, state: 'assigning' }]));
  const scanned = shards.scan(all, (shard) => now.get(shard));
  const later = all.at(-1);
  if (later === undefined) throw new Error('rows were imported');
  // Confirmed before its turn came.
  now.set(later.shard, later);
  expect(shards.longerThan(0).count).toBeLessThan(all.length - 1);
  await clock.advance(1);
  await scanned;
  expect(shards.longerThan(0).count).toBe(all.length - 1);
});
