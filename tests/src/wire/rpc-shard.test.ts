import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { listShards } from '../../../src/cli/shard.ts';
import type { AdminClient } from '../../../src/client/index.ts';
import { AdminNode } from '../../support/admin-node.ts';
import { assignmentRow, brokerRow, importOf, resource, staged } from '../apply/harness.ts';

let node: AdminNode;
beforeEach(async () => {
  node = await AdminNode.start();
  const assignments = ['stream:a', 'stream:b', 'cache:c'].flatMap((key) =>
    Array.from({ length: 4 }, (_, i) => assignmentRow(`${key}/${i}`, i % 3 === 0 ? ['b1'] : ['b2', 'b1'])),
  );
  // One row of another broker between those that match.
  assignments[5] = assignmentRow('stream:b/1', ['b2']);
  const rows = {
    brokers: [brokerRow('b1'), brokerRow('b2')],
    resources: [
      resource('a', { shards: 4 }),
      resource('b', { shards: 4 }),
      resource('c', { kind: 'cache', shards: 4 }),
    ],
    assignments,
  };
  for (const command of importOf(rows)) node.plane.harness.ok(command);
});
afterEach(() => node.stop());

type Page = { items: { shard: string }[]; next: string | null };

async function page(params: object): Promise<Page> {
  const { result, error } = await node.call('shard.list', params);
  if (error !== undefined) throw new Error(error.message);
  return result as unknown as Page;
}

const FILTERS = [{}, { broker: 'b1' }, { leader: 'b2' }, { broker: 'b1', kind: 'stream', resource: 'b' }];

it.each(FILTERS)('pages of %j put together are the whole list', async (filter) => {
  const whole = (await page(filter)).items;
  expect(whole.length).toBeGreaterThan(2);
  const paged: unknown[] = [];
  let next: string | null = null;
  do {
    const got: Page = await page({ ...filter, limit: 2, ...(next === null ? {} : { after: next }) });
    paged.push(...got.items);
    next = got.next;
  } while (next !== null);
  expect(paged).toEqual(whole);
});

it('the client that reads every page asks for each with the same filter', async () => {
  const small = {
    read: async (_method: string, params: object) => ({
      revision: 1,
      ...(await page({ ...params, limit: 2 })),
    }),
  } as unknown as AdminClient;
  for (const filter of FILTERS) {
    expect((await listShards(small, filter)).items).toEqual((await page(filter)).items);
  }
});

it('moves in flight are listed in shard order, filtered, and without a look at the shards that do not move', async () => {
  const shards = [9, 10, 2].map((number) => `stream:m/${number}`);
  const rows = {
    brokers: [brokerRow('b1'), brokerRow('b2')],
    resources: [resource('m', { shards: 12 }), resource('m', { kind: 'cache', shards: 1 })],
    assignments: [
      assignmentRow('stream:m/0', ['b1', 'b2']),
      ...shards.map((shard) => assignmentRow(shard, ['b1', 'b2'], { move: staged() })),
      assignmentRow('cache:m/0', ['b1', 'b2'], { move: staged() }),
    ],
  };
  for (const command of importOf(rows, { overwrite: true })) node.plane.harness.ok(command);
  const looks = vi.spyOn(node.plane.state.assignments, 'get');
  const list = async (params: object): Promise<string[]> => {
    const { result } = await node.call('move.list', params);
    return (result as unknown as Page).items.map(({ shard }) => shard);
  };
  expect(await list({})).toEqual(['cache:m/0', 'stream:m/2', 'stream:m/9', 'stream:m/10']);
  expect(await list({ resource: 'm', kind: 'stream' })).toEqual(['stream:m/2', 'stream:m/9', 'stream:m/10']);
  expect(await list({ kind: 'cache' })).toEqual(['cache:m/0']);
  expect(await list({ resource: 'a' })).toEqual([]);
  expect(looks).not.toHaveBeenCalled();
});
