import { beforeEach, describe, expect, it } from 'vitest';
import { BrokerWorld } from '../../support/broker-world.ts';
import { assign, createStream } from '../../support/placed.ts';
import { RawBroker } from '../../support/raw-broker.ts';
import { JSON_SUBPROTOCOL } from '../../../src/broker-protocol.ts';
import type { Connection } from '../../../src/net.ts';
import { MAX_UNREAD_ANSWER_BYTES } from '../../../src/wire/broker-session.ts';

const HEARTBEAT_OK = { type: 'heartbeat.ok', lifecycle: 'live', leaseMs: 4_000 };

describe.each(['json', 'msgpack'] as const)('a broker session over %s', (encoding) => {
  let w: BrokerWorld;
  beforeEach(async () => {
    w = new BrokerWorld({});
    for (const id of ['n1', 'n2', 'n3']) await w.node(id);
    w.quorum.elect('n1');
  });
  const open = (node: string) => RawBroker.open(w, node, encoding);

  it('registers, on a node that does not lead, and beats', async () => {
    const b = await open('n2');
    expect(await b.register('b1', { zone: 'a', weight: 2, maxShards: 7 })).toMatchObject({
      type: 'register.ok',
      incarnation: 1,
      heartbeatMs: 1_000,
      leaseMs: 4_000,
      expiryMs: 6_000,
      marginMs: 500,
      lifecycle: 'live',
      revision: w.quorum.machine.view.revision,
    });
    expect(w.quorum.machine.view.brokers.get('b1')).toMatchObject({
      zone: 'a',
      weight: 2,
      maxShards: 7,
      addresses: { data: 'b1:1' },
    });
    expect(await b.request('heartbeat', { incarnation: 1 })).toMatchObject({ ...HEARTBEAT_OK, term: 1 });
  });

  it('resumes on another node without a log entry; the old connection is closed with 1013 when it speaks', async () => {
    const old = await open('n2');
    await old.register('b1');
    const entries = w.quorum.log.length;
    const young = await open('n3');
    expect(await young.register('b1', {}, 1)).toMatchObject({ type: 'register.ok', incarnation: 1 });
    expect(w.quorum.log).toHaveLength(entries);
    expect(await old.request('heartbeat', { incarnation: 1 })).toMatchObject({
      error: { code: 'broker_connected' },
    });
    await w.run(10);
    expect(old.closed?.code).toBe(1013);
    expect(await young.request('heartbeat', { incarnation: 1 })).toMatchObject(HEARTBEAT_OK);
  });

  it('after a change of leader the newer of two connections of one registration still wins', async () => {
    const old = await open('n2');
    await old.register('b1');
    const young = await open('n3');
    await young.register('b1', {}, 1);
    w.quorum.elect('n3');
    expect(await old.request('heartbeat', { incarnation: 1 })).toMatchObject(HEARTBEAT_OK);
    expect(await young.request('heartbeat', { incarnation: 1 })).toMatchObject(HEARTBEAT_OK);
    expect(await old.request('heartbeat', { incarnation: 1 })).toMatchObject({
      error: { code: 'broker_connected' },
    });
  });

  it('a new registration closes the old connection with 4003, wherever it is', async () => {
    const old = await open('n2');
    await old.register('b1');
    const young = await open('n3');
    expect(await young.register('b1')).toMatchObject({ type: 'register.ok', incarnation: 2 });
    await w.run(10);
    expect(old.closed?.code).toBe(4003);
    expect(young.closed).toBeNull();
    const late = await open('n1');
    expect(await late.register('b1', {}, 1)).toMatchObject({
      error: { code: 'stale_incarnation', retriable: false },
    });
  });

  it('a connection may register its broker again, and stays', async () => {
    const b = await open('n1');
    await b.register('b1');
    expect(await b.register('b1')).toMatchObject({ incarnation: 2 });
    expect(await b.request('heartbeat', { incarnation: 1 })).toMatchObject({
      error: { code: 'stale_incarnation' },
    });
    expect(await b.request('heartbeat', { incarnation: 2 })).toMatchObject(HEARTBEAT_OK);
    await w.run(100);
    expect(b.closed).toBeNull();
  });

  it('another store under a living id is broker_connected; at once allowed when its connection is gone', async () => {
    const old = await open('n2');
    await old.register('b1');
    const stranger = await open('n3');
    expect(await stranger.register('b1', { storeId: 'other' })).toMatchObject({
      error: { code: 'broker_connected', retriable: false, message: expect.stringContaining('is connected') },
    });
    expect(w.quorum.machine.view.brokers.get('b1')?.incarnation).toBe(1);
    w.network.breakConnections('raw', 'n2');
    await w.run(50);
    expect(await stranger.register('b1', { storeId: 'other' })).toMatchObject({ incarnation: 2 });
  });

  it('a heartbeat never revives: down answers must_register', async () => {
    const b = await open('n1');
    await b.register('b1');
    await w.until('it is down', () => w.quorum.machine.view.brokers.get('b1')?.lifecycle === 'down');
    expect(await b.request('heartbeat', { incarnation: 1 })).toMatchObject({
      error: { code: 'must_register' },
    });
    expect(await b.register('b1', {}, 1)).toMatchObject({ error: { code: 'must_register' } });
    expect(await b.register('b1')).toMatchObject({ incarnation: 2, lifecycle: 'live' });
  });

  it('from the moment down is proposed, no heartbeat gets a lease, though the entry takes its time', async () => {
    const b = await open('n1');
    await b.register('b1');
    w.quorum.writesHeld = true;
    await w.run(6_400);
    expect(await b.request('heartbeat', { incarnation: 1 })).toMatchObject(HEARTBEAT_OK);
    await w.run(6_900);
    expect(w.quorum.machine.view.brokers.get('b1')?.lifecycle).toBe('live');
    expect(await b.request('heartbeat', { incarnation: 1 })).toMatchObject({
      error: { code: 'unavailable', retriable: true },
    });
    w.quorum.release();
    await w.run(300);
    expect(w.quorum.machine.view.brokers.get('b1')?.lifecycle).toBe('down');
  });

  it('watch and resolve need no registration, all else does', async () => {
    const b = await open('n3');
    await createStream(w, 'orders', 2);
    for (const [type, fields] of [
      ['heartbeat', { incarnation: 1 }],
      ['report', { incarnation: 1, shards: [] }],
      ['confirm', { incarnation: 1, shards: [] }],
      ['leave', { incarnation: 1 }],
    ] as const) {
      expect(await b.request(type, fields), type).toMatchObject({ error: { code: 'must_register' } });
    }
    expect(await b.request('watch')).toMatchObject({ type: 'watch.ok', watchId: 1 });
    expect(await b.request('resolve', { resource: 'orders', shard: 0 })).toMatchObject({
      error: { code: 'unavailable', retriable: true },
    });
  });

  it('resolves by number and by key', async () => {
    const b = await open('n3');
    await b.register('b1');
    await createStream(w, 'orders', 2);
    await assign(w, 'stream:orders/0', ['b1']);
    await assign(w, 'stream:orders/1', ['b1']);
    expect(await b.request('resolve', { resource: 'stream:orders', shard: 1 })).toMatchObject({
      type: 'resolve.ok',
      shard: 'stream:orders/1',
      leader: 'b1',
      addresses: { data: 'b1:1' },
      revision: w.quorum.machine.view.revision,
    });
    const byKey = await b.request('resolve', { resource: 'orders', key: 'a', consistency: 'linearizable' });
    expect(byKey).toMatchObject({
      type: 'resolve.ok',
      shard: expect.stringMatching(/^stream:orders\/[01]$/),
    });
    expect(await b.request('resolve', { resource: 'orders', shard: 2 })).toMatchObject({
      error: { code: 'not_found' },
    });
    expect(await b.request('resolve', { resource: 'nope', shard: 0 })).toMatchObject({
      error: { code: 'not_found' },
    });
    expect(await b.request('resolve', { resource: 'a b', shard: 0 })).toMatchObject({
      error: { code: 'invalid_argument' },
    });
    expect(await b.request('resolve', { resource: 'orders' })).toMatchObject({
      error: { code: 'invalid_argument' },
    });
  });

  it('confirms and reports: each shard by itself, in request order', async () => {
    const b1 = await open('n2');
    await b1.register('b1');
    const b2 = await open('n3');
    await b2.register('b2');
    await createStream(w, 'orders', 3);
    for (const i of [0, 1]) await assign(w, `stream:orders/${i}`, ['b1', 'b2']);
    await assign(w, 'stream:orders/2', ['b2', 'b1']);
    const state = w.quorum.machine.view;
    const generation = (i: number) => state.assignments.get(`stream:orders/${i}`)?.generation ?? 0;
    const confirmed = await b1.request('confirm', {
      incarnation: 1,
      shards: [
        { shard: 'stream:orders/2', generation: generation(2) },
        { shard: 'stream:orders/1', generation: generation(1) },
        { shard: 'stream:orders/0', generation: generation(0) + 1 },
        { shard: 'stream:nope/0', generation: 1 },
      ],
    });
    expect(confirmed).toMatchObject({
      results: [
        { shard: 'stream:orders/2', result: 'not_leader' },
        { shard: 'stream:orders/1', result: 'accepted' },
        { shard: 'stream:orders/0', result: 'stale' },
        { shard: 'stream:nope/0', result: 'unknown_shard' },
      ],
    });
    expect(state.assignments.get('stream:orders/1')?.state).toBe('active');
    const shrunk = await b1.request('report', {
      incarnation: 1,
      shards: [
        {
          shard: 'stream:orders/1',
          generation: generation(1),
          inSync: ['b1'],
          leaderOffset: 5,
          followers: { b2: 1 },
        },
      ],
    });
    expect(shrunk).toMatchObject({ results: [{ result: 'accepted' }] });
    expect(state.assignments.get('stream:orders/1')?.inSync).toEqual(['b1']);
    const entries = w.quorum.log.length;
    const offsets = await b1.request('report', {
      incarnation: 1,
      shards: [
        { shard: 'stream:orders/1', generation: generation(1), leaderOffset: 9, followers: { b2: 3 } },
      ],
    });
    expect(offsets).toMatchObject({ results: [{ result: 'accepted' }] });
    expect(w.quorum.log).toHaveLength(entries);
    const stray = await b1.request('report', {
      incarnation: 1,
      shards: [
        {
          shard: 'stream:orders/1',
          generation: generation(1),
          inSync: ['b1', 'b9'],
          leaderOffset: 9,
          followers: {},
        },
      ],
    });
    expect(stray).toMatchObject({ results: [{ result: 'stale' }] });
  });

  it('refuses another cluster, a second broker on the connection, bad names and fields; the connection stays', async () => {
    const b = await open('n1');
    const broker = { id: 'b1', addresses: {} };
    const cases: [object, string][] = [
      [{ clusterId: 'else', broker }, 'wrong_cluster'],
      [{ clusterId: 'test', broker: { ...broker, id: 'a b' } }, 'invalid_argument'],
      [{ clusterId: 'test', broker: { ...broker, id: 7 } }, 'invalid_argument'],
      [{ clusterId: 'test', broker: { ...broker, weight: 0 } }, 'limit_exceeded'],
      [{ clusterId: 'test', broker: { ...broker, weight: 1.5 } }, 'invalid_argument'],
      [{ clusterId: 'test', broker: { ...broker, maxShards: -1 } }, 'invalid_argument'],
      [{ clusterId: 'test', broker: { ...broker, labels: { a: 'x'.repeat(5_000) } } }, 'limit_exceeded'],
      [{ clusterId: 'test', broker: { ...broker, addresses: [] } }, 'invalid_argument'],
      [{ clusterId: 'test' }, 'invalid_argument'],
      [{ clusterId: 'test', broker, incarnation: 2 ** 53 }, 'invalid_argument'],
      [{ clusterId: 'test', broker, incarnation: 1 }, 'must_register'],
    ];
    for (const [fields, code] of cases) {
      expect(await b.request('register', fields), JSON.stringify(fields)).toMatchObject({ error: { code } });
    }
    expect(w.quorum.machine.view.brokers.size).toBe(0);
    expect(await b.register('b1')).toMatchObject({ type: 'register.ok' });
    expect(await b.register('b2')).toMatchObject({ error: { code: 'protocol_error' } });
    expect(await b.request('dance')).toMatchObject({ error: { code: 'unknown_method' } });
    expect(await b.request('report', { incarnation: 1, shards: [7] })).toMatchObject({
      error: { code: 'invalid_argument' },
    });
    expect(b.closed).toBeNull();
  });

  it('closes with 4002 on what is no request of the protocol', async () => {
    const deep = `${'['.repeat(20_000)}${']'.repeat(20_000)}`;
    const bad: (string | Uint8Array)[] =
      encoding === 'json'
        ? [
            '{',
            '[]',
            'null',
            '{"type":"watch"}',
            '{"id":1.5,"type":"watch"}',
            '{"id":1}',
            '{"id":1,"id":2,"type":"watch"}',
            deep,
            Uint8Array.of(0x80),
          ]
        : [
            Uint8Array.of(0xc1),
            Uint8Array.of(0x90),
            Uint8Array.of(0x82, 0xa1, 0x61, 1, 0xa1, 0x61, 2),
            Uint8Array.of(0xdf, 0xff, 0xff, 0xff, 0xff),
            '{"id":1,"type":"watch"}',
          ];
    for (const frame of bad) {
      const b = await open('n1');
      b.sendFrame(frame);
      await w.until('it is closed', () => b.closed !== null);
      expect(b.closed?.code, String(frame).slice(0, 40)).toBe(4002);
    }
  });

  it('names the key of a frame that has it twice', async () => {
    const b = await open('n1');
    const packed = Uint8Array.of(0x82, 0xa2, 0x69, 0x64, 1, 0xa2, 0x69, 0x64, 2);
    b.sendFrame(encoding === 'json' ? '{"id":1,"id":2}' : packed);
    await w.until('it is closed', () => b.closed !== null);
    expect(b.closed?.reason).toMatch(/the key "id" twice/);
  });

  it('closes with 1009 on a frame over the limit', async () => {
    const b = await open('n1');
    b.send('resolve', { resource: 'x'.repeat(1024 * 1024), shard: 0 });
    await w.until('it is closed', () => b.closed !== null);
    expect(b.closed?.code).toBe(1009);
  });

  it('bounds the requests in flight, and never heartbeats by them', async () => {
    const b = await open('n2');
    await b.register('b1');
    w.quorum.held = true;
    const leaves = Array.from({ length: 65 }, () => b.send('leave', { incarnation: 1 }));
    const beat = b.send('heartbeat', { incarnation: 1 });
    expect(await b.answer(leaves[64] ?? 0)).toMatchObject({ error: { code: 'overloaded', retriable: true } });
    await w.run(10);
    w.quorum.release();
    expect(await b.answer(beat)).toMatchObject({ error: { code: expect.not.stringMatching('overloaded') } });
  });

  it('bounds the watches of a connection', async () => {
    const b = await open('n2');
    for (let i = 1; i <= 16; i++) expect(await b.request('watch')).toMatchObject({ watchId: i });
    expect(await b.request('watch')).toMatchObject({ error: { code: 'limit_exceeded' } });
    expect(await b.request('unwatch', { watchId: 3 })).toMatchObject({ type: 'unwatch.ok' });
    expect(await b.request('unwatch', { watchId: 3 })).toMatchObject({ error: { code: 'not_found' } });
    expect(await b.request('watch')).toMatchObject({ watchId: expect.any(Number) });
  });

  it('no leader: writes and heartbeats say so, retriable', async () => {
    const b = await open('n2');
    await b.register('b1');
    w.quorum.elect(null);
    expect(await b.request('heartbeat', { incarnation: 1 })).toMatchObject({
      error: { code: 'no_leader', retriable: true },
    });
  });

  it('a draining node closes with 1001 and takes no more', async () => {
    const b = await open('n2');
    await b.register('b1');
    w.nodes.get('n2')?.surface.drain();
    await w.run(10);
    expect(b.closed?.code).toBe(1001);
    const late = await open('n2');
    await w.run(10);
    expect(late.closed?.code).toBe(1001);
  });
});

it('hazard 37: a client that asks on and reads nothing is closed once its answers pile up', async () => {
  const w = new BrokerWorld({});
  const node = await w.node('n1');
  w.quorum.elect('n1');
  const sent: (string | Uint8Array)[] = [];
  const closed: number[] = [];
  const connection: Connection = {
    subprotocol: JSON_SUBPROTOCOL,
    remoteAddress: 'elsewhere:1',
    get bufferedBytes() {
      return sent.reduce((sum, frame) => sum + frame.length, 0);
    },
    send: (frame) => void sent.push(frame),
    close: (code) => void closed.push(code),
    terminate: () => undefined,
    onMessage: () => undefined,
    onClose: () => undefined,
  };
  node.surface.route.onConnection(connection);
  sent.push('x'.repeat(MAX_UNREAD_ANSWER_BYTES));
  connection.onMessage('{"id": 1, "type": "unwatch", "watchId": 1}');
  expect(closed).toEqual([]);
  await w.run(10);
  expect(sent).toHaveLength(2);
  connection.onMessage('{"id": 2, "type": "unwatch", "watchId": 1}');
  expect(closed).toEqual([1013]);
  await w.run(10);
  expect(sent).toHaveLength(2);
});
