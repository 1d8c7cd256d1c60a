import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { EvenkeelError } from '../../../src/errors.ts';
import { MAX_BATCH_BYTES } from '../../../src/wire/outbound.ts';
import { AdminNode } from '../../support/admin-node.ts';

let node: AdminNode;
beforeEach(async () => {
  node = await AdminNode.start();
});
afterEach(() => node.stop());

async function answer(body: string): Promise<unknown> {
  const response = await node.post(body);
  const text = await response.text();
  return text === '' ? response.status : JSON.parse(text);
}

const request = (extra: object): string => JSON.stringify({ jsonrpc: '2.0', ...extra });

describe('JSON-RPC 2.0', () => {
  it.each([
    ['no JSON', '{"jsonrpc": "2.0", "method": "a", "params": "b', -32700, null],
    ['a batch that is no JSON', '[{"jsonrpc": "2.0", "method": "a", "id": 1}, {"jsonrpc"', -32700, null],
    ['a key given twice', '{"jsonrpc": "2.0", "method": "raft.status", "id": 1, "id": 2}', -32700, null],
    ['a label named __proto__', '{"jsonrpc": "2.0", "params": {"labels": {"__proto__": "x"}}}', -32700, null],
    ['an empty batch', '[]', -32600, null],
    ['a number', '1', -32600, null],
    ['null', 'null', -32600, null],
    ['no version', '{"method": "raft.status", "id": 4}', -32600, 4],
    ['another version', '{"jsonrpc": "1.0", "method": "raft.status", "id": 4}', -32600, 4],
    ['a method that is a number', request({ method: 1, id: 'x' }), -32600, 'x'],
    ['an id that is an object', request({ method: 'raft.status', id: {} }), -32600, null],
    ['an id that is true', request({ method: 'raft.status', id: true }), -32600, null],
    ['params that are a list', request({ method: 'raft.status', params: [1], id: 1 }), -32602, 1],
    ['params that are null', request({ method: 'raft.status', params: null, id: 1 }), -32602, 1],
    ['params that are text', request({ method: 'raft.status', params: 'x', id: 1 }), -32602, 1],
    ['an unknown method', request({ method: 'foobar', id: '1' }), -32601, '1'],
    ['a method of every object', request({ method: 'toString', id: 1 }), -32601, 1],
  ])('refuses %s', async (_what, body, code, id) => {
    const refusal = (await answer(body)) as { error: { data: { retriable: boolean } } };
    expect(refusal).toMatchObject({ jsonrpc: '2.0', id, error: { code } });
    expect(refusal).not.toHaveProperty('result');
    expect(refusal.error.data.retriable).toBe(false);
  });

  it.each([1, 0, -1, 'a', '', null, 1.5])('gives the id %j back as it came', async (id) => {
    const got = (await answer(request({ method: 'raft.status', id }))) as Record<string, unknown>;
    expect(got['id']).toBe(id);
    expect(got['jsonrpc']).toBe('2.0');
    expect(got).not.toHaveProperty('error');
  });

  it('answers a batch, without its notifications', async () => {
    const batch = [
      { jsonrpc: '2.0', method: 'raft.status', id: 1 },
      { jsonrpc: '2.0', method: 'resource.create', params: { name: 'quiet', shards: 1 } },
      { foo: 'boo' },
      1,
      { jsonrpc: '2.0', method: 'nope', id: 5 },
    ];
    const got = (await answer(JSON.stringify(batch))) as { id: unknown; error?: { code: number } }[];
    expect(got.map(({ id, error }) => [id, error?.code])).toEqual([
      [1, undefined],
      [null, -32600],
      [null, -32600],
      [5, -32601],
    ]);
    expect(node.plane.state.resources.has('stream:quiet')).toBe(true);
  });

  it('says nothing where only notifications came, and runs them', async () => {
    const create = (name: string): object => ({
      jsonrpc: '2.0',
      method: 'resource.create',
      params: { name, shards: 1 },
    });
    expect(await answer(JSON.stringify(create('one')))).toBe(204);
    expect(await answer(JSON.stringify([create('two'), create('three')]))).toBe(204);
    expect([...node.plane.state.resources.keys()].sort()).toEqual([
      'stream:one',
      'stream:three',
      'stream:two',
    ]);
  });

  it('refuses a batch over its limit whole', async () => {
    const batch = Array.from({ length: 101 }, (_, id) => ({ jsonrpc: '2.0', method: 'session.open', id }));
    expect(await answer(JSON.stringify(batch))).toMatchObject({
      id: null,
      error: { code: -32006, data: { code: 'limit_exceeded' } },
    });
    expect(node.plane.proposed).toEqual([]);
    expect(await answer(JSON.stringify(batch.slice(1)))).toHaveLength(100);
  });
});

describe('a batch whose answers are large', () => {
  it('is given as many of them as it may have bytes, and told of every other that it is not', async () => {
    for (let i = 0; i < 500; i += 1) {
      node.plane.harness.create(`r${i}`, { labels: { text: 'x'.repeat(4_000) } });
    }
    const batch = Array.from({ length: 99 }, (_, id) => ({ jsonrpc: '2.0', method: 'resource.list', id }));
    const create = { jsonrpc: '2.0', method: 'resource.create', params: { name: 'last', shards: 1 }, id: 99 };
    const response = await node.post(JSON.stringify([...batch, create]));
    const text = await response.text();
    expect(text.length).toBeLessThan(2 * MAX_BATCH_BYTES);
    const answers = JSON.parse(text) as {
      id: number;
      result?: unknown;
      error?: { data: { code: string } };
    }[];
    expect(answers.map(({ id }) => id)).toEqual(Array.from({ length: 100 }, (_, id) => id));
    const given = answers.filter(({ result }) => result !== undefined);
    expect(given.length).toBeGreaterThan(4);
    expect(given.length).toBeLessThan(20);
    // What a write did is told in any case.
    expect(given.at(-1)?.id).toBe(99);
    for (const { error } of answers.filter(({ result }) => result === undefined)) {
      expect(error?.data.code).toBe('limit_exceeded');
    }
    expect((await node.call('resource.list')).result?.['items']).toHaveLength(501);
  });
});

describe('errors', () => {
  it('carry the code, whether to retry, who leads and the revision', async () => {
    node.plane.leaderId = 'n2';
    const { error } = await node.call('broker.show', { id: 'b1' });
    expect(error).toEqual({
      code: -32001,
      message: 'no broker "b1"',
      data: { code: 'not_found', retriable: false, leader: 'n2', revision: 0 },
    });
  });

  it('of our own are told as internal, without their text, and reported', async () => {
    node.plane.onBarrier = async () => {
      throw new TypeError('secret');
    };
    const { error } = await node.call('broker.list');
    expect(error?.code).toBe(-32603);
    expect(error?.data['code']).toBe('internal');
    expect(error?.message).not.toContain('secret');
    expect(node.faults).toHaveLength(1);
  });

  it('say that the outcome of a write is unknown once its deadline has passed', async () => {
    node.plane.onPropose = () => new Promise(() => undefined);
    const params = { name: 'slow', shards: 1, deadlineMs: 20 };
    const { error } = await node.call('resource.create', params);
    expect(error?.data).toMatchObject({ code: 'deadline_exceeded', retriable: true, outcome: 'unknown' });
    node.plane.onPropose = async () => {
      throw new EvenkeelError('outcome_unknown', 'the leader went');
    };
    expect((await node.call('resource.create', params)).error?.data).toMatchObject({ outcome: 'unknown' });
  });

  it('leave what is asked of others the time to say more than that it was late', async () => {
    await node.call('resource.create', { name: 's', shards: 1, deadlineMs: 500 });
    expect(node.plane.proposed[0]?.options.deadlineMs).toBeLessThanOrEqual(490);
  });

  it('do not speak of an outcome where a read was late', async () => {
    node.plane.onBarrier = () => new Promise(() => undefined);
    const { error } = await node.call('broker.list', { deadlineMs: 20 });
    expect(error?.data['code']).toBe('deadline_exceeded');
    expect(error?.data).not.toHaveProperty('outcome');
  });
});

describe('reads', () => {
  it('wait for the read barrier unless a local one is asked for', async () => {
    let barriers = 0;
    node.plane.onBarrier = async () => {
      barriers += 1;
    };
    await node.call('broker.list', { consistency: 'local' });
    expect(barriers).toBe(0);
    await node.call('broker.list');
    await node.call('broker.list', { consistency: 'linearizable' });
    expect(barriers).toBe(2);
  });
});

describe('writes', () => {
  it('carry their request, so that a retry has one effect and the first answer', async () => {
    const session = (await node.call('session.open')).result?.['session'];
    const params = { name: 'once', shards: 1, requestId: `${String(session)}:1` };
    const first = await node.call('resource.create', params);
    const again = await node.call('resource.create', params);
    expect(first.error).toBeUndefined();
    expect(again.result?.['revision']).toBe(first.result?.['revision']);
    const { error } = await node.call('resource.create', { ...params, requestId: `${String(session)}:2` });
    expect(error?.data['code']).toBe('already_exists');
    const unknown = await node.call('resource.create', { ...params, name: 'never', requestId: '999:1' });
    expect(unknown.error?.data['code']).toBe('session_expired');
    expect(node.plane.state.resources.has('stream:never')).toBe(false);
  });

  it('are refused where what they change is no longer as expected', async () => {
    await node.call('resource.create', { name: 's', shards: 1 });
    const shown = (await node.call('resource.show', { name: 's' })).result?.['resource'] as {
      resourceRevision: number;
    };
    const alter = { name: 's', labels: { a: '1' }, expectedRevision: shown.resourceRevision };
    expect((await node.call('resource.alter', alter)).error).toBeUndefined();
    expect((await node.call('resource.alter', alter)).error?.data['code']).toBe('conflict');
  });
});

describe('load', () => {
  it('is shed past 2,048 calls under way', async () => {
    const waiters: (() => void)[] = [];
    node.plane.onBarrier = () => new Promise((resolve) => void waiters.push(resolve));
    const batch = Array.from({ length: 100 }, (_, id) => ({ jsonrpc: '2.0', method: 'broker.list', id }));
    const waiting = Array.from({ length: 20 }, () => answer(JSON.stringify(batch)));
    while (waiters.length < 2_000) await new Promise((resolve) => setImmediate(resolve));
    // 48 more fit.
    waiting.push(answer(JSON.stringify(batch)));
    while (waiters.length < 2_048) await new Promise((resolve) => setImmediate(resolve));
    for (const release of waiters) release();
    const answers = (await Promise.all(waiting)).flat() as {
      error?: { data: { code: string; retriable: boolean } };
    }[];
    const refused = answers.filter(({ error }) => error !== undefined);
    expect(refused).toHaveLength(52);
    for (const { error } of refused)
      expect(error?.data).toMatchObject({ code: 'overloaded', retriable: true });
    expect((await node.call('broker.list', { consistency: 'local' })).error).toBeUndefined();
  });
});

describe('over WebSocket', () => {
  async function open(): Promise<{
    socket: WebSocket;
    messages: unknown[];
    readonly next: (count: number) => Promise<unknown[]>;
  }> {
    const socket = new WebSocket(`ws://${node.address}/rpc`);
    const messages: unknown[] = [];
    let wake = (): void => undefined;
    socket.on('message', (data: Buffer) => {
      messages.push(JSON.parse(data.toString()));
      wake();
    });
    await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
    return {
      socket,
      messages,
      async next(count) {
        while (messages.length < count) await new Promise<void>((resolve) => (wake = resolve));
        return messages;
      },
    };
  }
  const closed = (socket: WebSocket): Promise<number> =>
    new Promise((resolve) => socket.once('close', (code) => resolve(code)));

  it('answers requests, batches and faults', async () => {
    const { socket, next } = await open();
    socket.send(request({ method: 'raft.status', id: 1 }));
    await next(1);
    socket.send('nonsense');
    const messages = await next(2);
    expect(messages).toMatchObject([
      { id: 1, result: { nodeId: 'n1' } },
      { id: null, error: { code: -32700 } },
    ]);
    socket.close();
  });

  it('closes on a binary frame with 4002 and on a frame over 1 MiB with 1009', async () => {
    const binary = await open();
    binary.socket.send(Buffer.from(request({ method: 'raft.status', id: 1 })));
    expect(await closed(binary.socket)).toBe(4002);
    const large = await open();
    large.socket.send(request({ method: 'raft.status', id: 'x'.repeat(1024 * 1024) }));
    expect(await closed(large.socket)).toBe(1009);
  });

  it('closes with 1001 when the node stops', async () => {
    const { socket } = await open();
    const code = closed(socket);
    node.surface.close();
    expect(await code).toBe(1001);
  });

  it('answers overloaded past 1,024 messages that wait, runs none of those, and goes on', async () => {
    const waiters: (() => void)[] = [];
    node.plane.onBarrier = () => new Promise((resolve) => void waiters.push(resolve));
    const { socket, next } = await open();
    for (let id = 0; id < 1_024; id += 1) socket.send(request({ method: 'broker.list', id }));
    for (const id of [1_024, 1_025]) {
      socket.send(request({ method: 'resource.create', params: { name: `late-${id}`, shards: 1 }, id }));
    }
    expect(await next(2)).toMatchObject(
      [1_024, 1_025].map((id) => ({ id, error: { data: { code: 'overloaded', retriable: true } } })),
    );
    expect(waiters).toHaveLength(1_024);
    expect(node.plane.proposed).toEqual([]);
    for (const release of waiters) release();
    expect(await next(1_026)).toHaveLength(1_026);
    socket.send(request({ method: 'resource.create', params: { name: 'again', shards: 1 }, id: 'again' }));
    expect((await next(1_027)).at(-1)).toMatchObject({ id: 'again', result: {} });
    socket.close();
  });

  it('watches: one notification a revision, after the answer, in order', async () => {
    const { socket, next } = await open();
    socket.send(request({ method: 'watch', id: 1 }));
    await next(1);
    node.plane.harness.create('a');
    node.plane.harness.register('b1');
    const [answered, ...pushed] = await next(3);
    expect(answered).toMatchObject({ id: 1, result: { watchId: 1, revision: 0 } });
    expect(pushed).toMatchObject([
      {
        method: 'watch.changes',
        params: { watchId: 1, revision: 1, changes: [{ kind: 'resource', resource: { name: 'a' } }] },
      },
      {
        method: 'watch.changes',
        params: { watchId: 1, revision: 2, changes: [{ kind: 'broker', broker: { id: 'b1' } }] },
      },
    ]);
    socket.send(request({ method: 'unwatch', params: { watchId: 1 }, id: 2 }));
    await next(4);
    node.plane.harness.create('b');
    socket.send(request({ method: 'raft.status', id: 3 }));
    expect((await next(5))[4]).toMatchObject({ id: 3 });
    socket.close();
  });

  it('watches from a revision inside the ring without a snapshot', async () => {
    for (const name of ['a', 'b', 'c']) node.plane.harness.create(name);
    const { socket, next } = await open();
    socket.send(request({ method: 'watch', params: { fromRevision: 1 }, id: 1 }));
    const [, ...pushed] = await next(3);
    expect(pushed).toMatchObject([{ params: { revision: 2 } }, { params: { revision: 3 } }]);
    socket.close();
  });

  it('sends who fell out of the ring a snapshot, and goes on from it', async () => {
    node.plane.harness.create('a');
    node.plane.harness.machine.restore(node.plane.harness.machine.snapshot(), 1);
    const { socket, next } = await open();
    socket.send(request({ method: 'watch', params: { fromRevision: 0 }, id: 1 }));
    const [, resync, snapshot] = await next(3);
    expect(resync).toMatchObject({ method: 'watch.resync', params: { watchId: 1 } });
    expect(snapshot).toMatchObject({ method: 'watch.snapshot', params: { revision: 1, done: true } });
    const { rows } = (snapshot as { params: { rows: { kind: string }[] } }).params;
    expect(rows.map(({ kind }) => kind)).toEqual(['policy', 'resource']);
    node.plane.harness.create('b');
    expect((await next(4))[3]).toMatchObject({ method: 'watch.changes', params: { revision: 2 } });
    socket.close();
  });

  it('has limits to watches, and no watch over POST', async () => {
    expect((await node.call('watch')).error?.data['code']).toBe('refused');
    const { socket, next } = await open();
    for (let id = 1; id <= 17; id += 1) socket.send(request({ method: 'watch', id }));
    expect(await next(17)).toContainEqual(
      expect.objectContaining({ id: 17, error: expect.objectContaining({ code: -32006 }) }),
    );
    socket.send(request({ method: 'unwatch', params: { watchId: 99 }, id: 18 }));
    expect((await next(18))[17]).toMatchObject({ error: { data: { code: 'not_found' } } });
    socket.send(request({ method: 'watch', params: { fromRevision: 50 }, id: 19 }));
    socket.close();
  });

  it('tells a watcher that is ahead of this node to try again', async () => {
    const { socket, next } = await open();
    socket.send(request({ method: 'watch', params: { fromRevision: 50 }, id: 1 }));
    expect((await next(1))[0]).toMatchObject({ error: { data: { code: 'unavailable', retriable: true } } });
    socket.close();
  });
});
