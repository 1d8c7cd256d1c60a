import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { DEFAULT_POLICY, type Plan } from '../../../placement/index.ts';
import { RPC_METHODS, findMethod } from '../../../src/wire/index.ts';
import { AdminNode } from '../../support/admin-node.ts';
import { assignmentRow, brokerRow, importOf, resource } from '../apply/harness.ts';

let node: AdminNode;
beforeAll(async () => {
  node = await AdminNode.start();
  const rows = {
    brokers: ['b1', 'b2', 'b3'].map((id) => brokerRow(id)),
    resources: [resource('orders', { shards: 2 }), resource('kv', { kind: 'cache' })],
    assignments: [
      assignmentRow('stream:orders/0', ['b1', 'b2']),
      assignmentRow('stream:orders/1', ['b2', 'b1'], { leader: 'b2' }),
      assignmentRow('cache:kv/0', ['b1', 'b2']),
    ],
  };
  for (const command of importOf(rows)) node.plane.harness.ok(command);
  node.plane.harness.ok(importOf({}, { importId: '9' })[0]);
  const emptyPlan: Pick<Plan, 'steps' | 'waiting'> = { steps: [], waiting: [] };
  node.plane.serve('placement.plan', async () => emptyPlan);
  node.plane.serve('raft.transfer', async () => ({ from: 'n2', to: 'n1', term: 3 }));
  node.plane.serve('raft.snapshot', async () => ({ id: 'n1', index: 5 }));
  node.plane.serve('placement.status', async () => ({
    paused: false,
    level: true,
    leaderMovesLeft: 0,
    movesInFlight: 0,
  }));
  node.plane.serve('move.start', async (params) => ({ ...(params as object), revision: 77 }));
  node.plane.serve('move.cancel', async (params) => ({ ...(params as object), revision: 78 }));
  const explained = { place: ['b1 leads'], next: [], waiting: [] };
  node.plane.serve('shard.explain', async (params) => ({ ...(params as object), ...explained }));
  node.plane.serve('shard.abandon', async (params) => ({ ...(params as object), revision: 79 }));
});
afterAll(() => node.stop());

/** Params that each method takes; in an order in which each finds what it needs. */
const GOOD: Record<string, Record<string, unknown>> = {
  'cluster.status': {},
  'cluster.health': { consistency: 'local' },
  'raft.status': {},
  'member.list': {},
  'raft.transfer': { to: 'n1' },
  'raft.snapshot': {},
  'broker.list': { deadlineMs: 1_000 },
  'broker.show': { id: 'b1' },
  'broker.drain': { id: 'b2' },
  'broker.undrain': { id: 'b2' },
  'broker.remove': { id: 'b3' },
  'resource.list': { kind: 'cache' },
  'resource.show': { name: 'orders' },
  'resource.create': { name: 'fresh', shards: 3, replicationFactor: 2, labels: { team: 'x' } },
  'resource.alter': { name: 'fresh', labels: { team: null, tier: '1' } },
  'resource.delete': { name: 'fresh' },
  'shard.list': { resource: 'orders', leader: 'b1', limit: 1 },
  'shard.show': { shard: 'stream:orders/0' },
  'shard.explain': { shard: 'orders/0' },
  'shard.abandon': { shard: 'cache:kv/0', expectedGeneration: 4 },
  'move.list': {},
  'move.start': { shard: 'orders/0', role: 'follower', from: 'b2', to: 'b3' },
  'move.cancel': { shard: 'orders/0' },
  'placement.levels': {},
  'placement.replication': {},
  'placement.plan': {},
  'placement.pause': {},
  'placement.resume': {},
  'placement.policy.get': {},
  'placement.policy.set': { restoreAfterMs: 5 },
  'session.open': {},
  export: {},
  'import.begin': {},
  'import.part': { importId: '1', part: 0 },
  'import.commit': { importId: '1', parts: 1, timeMs: 7, policy: DEFAULT_POLICY, overwrite: true },
  'import.list': {},
  'import.abort': { importId: '9' },
};

const PUSHING = ['watch', 'unwatch'];

/** A value of another type than each kind of param takes. */
const WRONG: Record<string, unknown[]> = {
  string: [5, true, ['x'], { x: 1 }],
  integer: ['five', 1.5, true, [1], 2 ** 53],
  number: ['five', true],
  boolean: ['perhaps', 1],
  array: ['x', { x: 1 }],
  object: ['x', 5, ['x']],
};

describe('the registry', () => {
  it('names each method once and says what it does', () => {
    const names = RPC_METHODS.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    expect(Object.keys(GOOD).concat(PUSHING).sort()).toEqual([...names].sort());
    for (const { summary } of RPC_METHODS) expect(summary.length).toBeGreaterThan(10);
  });

  it('gives no two methods the same verb and path, and every brace a param', () => {
    const routes = RPC_METHODS.flatMap(({ http }) => (http === null ? [] : [`${http.verb} ${http.path}`]));
    expect(new Set(routes).size).toBe(routes.length);
    for (const { http, params } of RPC_METHODS) {
      for (const [, name = ''] of http?.path.matchAll(/\{(\w+)\}/g) ?? [])
        expect(params.shape).toHaveProperty(name);
    }
    expect(RPC_METHODS.filter(({ http }) => http === null).map(({ name }) => name)).toEqual(PUSHING);
  });

  it('has the paths that scripts rely on', () => {
    const route = (name: string): string => {
      const http = findMethod(name)?.http;
      return `${http?.verb} /v1${http?.path}`;
    };
    expect(route('shard.list')).toBe('GET /v1/shard-assignments');
    expect(route('move.start')).toBe('POST /v1/shard-moves');
    expect(route('move.cancel')).toBe('DELETE /v1/shard-moves/{shard}');
    expect(route('broker.drain')).toBe('POST /v1/brokers/{id}/drain');
    expect(route('placement.pause')).toBe('POST /v1/placement/pause');
    expect(route('placement.resume')).toBe('POST /v1/placement/resume');
    expect(route('placement.plan')).toBe('GET /v1/placement/plan');
  });
});

describe.each(Object.keys(GOOD))('%s', (name) => {
  const good = GOOD[name] ?? {};
  const method = findMethod(name);
  if (method === undefined) throw new Error(`no method ${name}`);
  const properties = z
    .object({ properties: z.record(z.string(), z.looseObject({ type: z.string().optional() })) })
    .parse(z.toJSONSchema(method.params, { io: 'input', unrepresentable: 'any' })).properties;

  it('answers by its schema, in the envelope', async () => {
    const { result, error } = await node.call(name, good);
    expect(error).toBeUndefined();
    expect(result).toMatchObject({ term: 3, leaderId: 'n1' });
    expect(Number.isSafeInteger(result?.['revision'])).toBe(true);
    expect(method.answer.safeParse(result).error).toBeUndefined();
  });

  it('refuses a key it does not know, by name', async () => {
    const { error } = await node.call(name, { ...good, shrads: 1 });
    expect(error?.data['code']).toBe('invalid_argument');
    expect(error?.message).toContain('"shrads"');
    expect(error?.message).toContain(name);
  });

  it.each(Object.entries(properties).filter(([, { type }]) => type !== undefined))(
    'refuses a %s of another type, by name',
    async (key, { type = '' }) => {
      for (const wrong of WRONG[type] ?? []) {
        const { error } = await node.call(name, { ...good, [key]: wrong });
        expect(error?.data, `${key}: ${JSON.stringify(wrong)}`).toMatchObject({
          code: 'invalid_argument',
          retriable: false,
        });
        expect(error?.message).toContain(key);
        expect(error?.code).toBe(-32000);
      }
    },
  );

  it('refuses to run without what it needs', async () => {
    const { required = [] } = z
      .object({ required: z.array(z.string()).optional() })
      .parse(z.toJSONSchema(method.params, { io: 'input', unrepresentable: 'any' }));
    for (const key of required) {
      const { [key]: _left, ...rest } = good;
      const { error } = await node.call(name, rest);
      expect(error?.data['code'], key).toBe('invalid_argument');
      expect(error?.message).toContain(`"${key}"`);
    }
  });

  it('bounds its deadline', async () => {
    for (const deadlineMs of [0, -1, 60_001]) {
      const { error } = await node.call(name, { ...good, deadlineMs });
      expect(error?.data['code']).toBe('invalid_argument');
      expect(error?.message).toContain('"deadlineMs"');
    }
  });

  if (method.kind === 'write') {
    it('refuses a requestId that is none, and a consistency', async () => {
      for (const requestId of ['', '1', '1:', '1:-1', 'a:b', '0:1', '1:2:3', '99999999999999999:1']) {
        const { error } = await node.call(name, { ...good, requestId });
        expect(error?.data['code'], requestId).toBe('invalid_argument');
        expect(error?.message).toContain('requestId');
      }
      const { error } = await node.call(name, { ...good, consistency: 'local' });
      expect(error?.message).toContain('"consistency"');
    });
  } else {
    it('takes a consistency and no requestId', async () => {
      expect((await node.call(name, { ...good, consistency: 'local' })).error).toBeUndefined();
      expect((await node.call(name, { ...good, consistency: 'eventual' })).error?.message).toContain(
        'consistency',
      );
      expect((await node.call(name, { ...good, requestId: '1:1' })).error?.message).toContain('"requestId"');
    });
  }
});

describe('names and limits', () => {
  it.each([
    ['broker.show', { id: 'a b' }, 'id'],
    ['broker.show', { id: '' }, 'id'],
    ['broker.show', { id: 'x'.repeat(129) }, 'id'],
    ['resource.show', { name: 'a//b' }, 'name'],
    ['resource.show', { name: 'a/b/c/d' }, 'name'],
    ['resource.show', { name: '-a' }, 'name'],
    ['resource.create', { name: 'a b', shards: 1 }, 'name'],
    ['resource.create', { name: 'a', shards: 0 }, 'shards'],
    ['resource.create', { name: 'a', shards: 100_001 }, 'shards'],
    ['resource.create', { name: 'a', shards: 1, replicationFactor: 17 }, 'replicationFactor'],
    ['resource.create', { name: 'a', shards: 1, labels: { x: 'y'.repeat(4_096) } }, 'labels'],
    ['resource.create', { name: 'a', shards: 1, labels: { x: 1 } }, 'labels.x'],
    ['resource.alter', { name: 'a' }, 'nothing to change'],
    ['shard.show', { shard: 'orders' }, 'shard'],
    ['shard.show', { shard: 'topic:orders/1' }, 'shard'],
    ['shard.show', { shard: 'stream:orders/01' }, 'shard'],
    ['shard.list', { limit: 10_001 }, 'limit'],
    ['move.start', { shard: 'orders/0', to: 'b3', role: 'follower' }, '"from"'],
    ['placement.policy.set', {}, 'nothing to change'],
    ['placement.policy.set', { maxConcurrentMoves: 0 }, 'maxConcurrentMoves'],
    ['placement.policy.set', { passIntervalMs: 0 }, 'passIntervalMs'],
    ['placement.policy.set', { restoreAfterMs: -1 }, 'restoreAfterMs'],
    ['import.part', { importId: 'x', part: 0 }, 'importId'],
    ['import.part', { importId: '1', part: 10_000 }, 'part'],
    ['import.part', { importId: '1', part: 0, brokers: [{ id: 'b1' }] }, 'brokers.0'],
  ])('%s %j', async (method, params, word) => {
    const { error } = await node.call(method, params);
    expect(error?.data['code']).toBe('invalid_argument');
    expect(error?.message).toContain(word);
  });

  it('refuses a part of an import over its limit as such', async () => {
    const assignments = Array.from({ length: 3_000 }, (_, i) =>
      assignmentRow(`stream:orders/${i}`, ['b1', 'b2']),
    );
    const { error } = await node.call('import.part', { importId: '1', part: 0, assignments });
    expect(error?.data['code']).toBe('limit_exceeded');
  });

  it.each([
    ['broker.show', { id: 'b9' }],
    ['resource.show', { kind: 'cache', name: 'orders' }],
    ['resource.alter', { name: 'nobody', shards: 3 }],
    ['resource.delete', { name: 'nobody' }],
    ['shard.show', { shard: 'orders/9' }],
    ['broker.drain', { id: 'b9' }],
    ['broker.remove', { id: 'b9' }],
  ])('%s %j is not_found', async (method, params) => {
    const { error } = await node.call(method, params);
    expect(error?.data['code']).toBe('not_found');
    expect(error?.code).toBe(-32001);
  });
});

describe('shard.list', () => {
  it('pages in the order of resource and number, each shard once', async () => {
    const paged = await AdminNode.start();
    const numbers = Array.from({ length: 12 }, (_, i) => i);
    const rows = {
      brokers: [brokerRow('b1')],
      resources: [
        resource('s', { shards: 12 }),
        resource('s', { kind: 'cache', shards: 2 }),
        resource('s.a'),
      ],
      assignments: [
        ...numbers.map((i) => assignmentRow(`stream:s/${i}`, ['b1'])),
        ...[0, 1].map((i) => assignmentRow(`cache:s/${i}`, ['b1'])),
        assignmentRow('stream:s.a/0', ['b1']),
      ].reverse(),
    };
    for (const command of importOf(rows)) paged.plane.harness.ok(command);
    const seen: string[] = [];
    let after: unknown;
    do {
      const { result } = await paged.call('shard.list', { limit: 4, ...(after !== undefined && { after }) });
      seen.push(...((result?.['items'] ?? []) as { shard: string }[]).map(({ shard }) => shard));
      after = result?.['next'] ?? undefined;
    } while (after !== undefined);
    const expected = ['cache:s/0', 'cache:s/1', ...numbers.map((i) => `stream:s/${i}`), 'stream:s.a/0'];
    expect(seen).toEqual(expected);
    const exact = await paged.call('shard.list', { limit: 15 });
    expect(exact.result?.['next']).toBeNull();
    await paged.stop();
  });
});
