import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { WebSocket } from 'ws';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { BODY_TIMEOUT_MS, dropUnlessRead } from '../../../src/wire/http-respond.ts';
import { READ_WINDOW_MS } from '../../../src/wire/read-pace.ts';
import { AdminNode } from '../../support/admin-node.ts';

let node: AdminNode;
beforeEach(async () => {
  node = await AdminNode.start();
});
afterEach(() => node.stop());

async function fetchJson(
  path: string,
  init: RequestInit = {},
): Promise<{ status: number; body: Record<string, unknown> }> {
  const response = await fetch(`${node.url}${path}`, init);
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

const json = (method: string, body: unknown): RequestInit => ({
  method,
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(body),
});

describe('/v1', () => {
  it('runs the methods of the registry: path, query and body are their params', async () => {
    const created = await fetchJson(
      '/v1/resources',
      json('POST', { name: 'a/b', shards: 2, replicationFactor: 2 }),
    );
    expect(created).toMatchObject({ status: 200, body: { revision: 1, term: 3, leaderId: 'n1' } });
    const path = `/v1/resources/stream/${encodeURIComponent('a/b')}`;
    expect((await fetchJson(path)).body).toMatchObject({ resource: { name: 'a/b', shards: 2 } });
    await fetchJson(path, json('PATCH', { labels: { tier: '1' } }));
    expect((await fetchJson(`${path}?consistency=local&deadlineMs=500`)).body).toMatchObject({
      resource: { labels: { tier: '1' } },
    });
    expect((await fetchJson('/v1/resources?kind=cache')).body['items']).toEqual([]);
    expect((await fetchJson(`${path}?expectedRevision=1`, { method: 'DELETE' })).status).toBe(409);
    expect((await fetchJson(`${path}?expectedRevision=2`, { method: 'DELETE' })).status).toBe(200);
    expect(node.plane.state.resources.size).toBe(0);
  });

  it('drains, pauses and moves', async () => {
    node.plane.harness.register('b1');
    node.plane.serve('move.start', async (params) => params);
    node.plane.serve('move.cancel', async (params) => params);
    expect((await fetchJson('/v1/brokers/b1/drain', { method: 'POST' })).status).toBe(200);
    expect((await fetchJson('/v1/brokers/b1')).body).toMatchObject({
      broker: { lifecycle: 'draining', drain: true },
    });
    expect((await fetchJson('/v1/placement/pause', { method: 'POST' })).status).toBe(200);
    expect((await fetchJson('/v1/placement/policy')).body).toMatchObject({ policy: { paused: true } });
    expect(
      (await fetchJson('/v1/shard-moves', json('POST', { shard: 'stream:s/0', to: 'b1', dryRun: true })))
        .body,
    ).toMatchObject({
      shard: 'stream:s/0',
      role: 'leader',
      dryRun: true,
      from: null,
    });
    const path = `/v1/shard-moves/${encodeURIComponent('stream:s/0')}?expectedGeneration=7`;
    expect((await fetchJson(path, { method: 'DELETE' })).body).toMatchObject({
      shard: 'stream:s/0',
      expectedGeneration: 7,
    });
  });

  it.each([
    ['GET', '/v1/nothing', 404, 'not_found'],
    ['GET', '/v1/', 404, 'not_found'],
    ['GET', '/v1/brokers//drain', 404, 'not_found'],
    ['GET', '/v1/brokers/%ZZ', 404, 'not_found'],
    ['GET', '/v1/brokers/b9', 404, 'not_found'],
    ['GET', '/v1/brokers/a%20b', 400, 'invalid_argument'],
    ['GET', '/v1/shard-assignments?limit=many', 400, 'invalid_argument'],
    ['GET', '/v1/shard-assignments?limt=3', 400, 'invalid_argument'],
    ['GET', '/v1/shard-assignments?limit=1&limit=2', 400, 'invalid_argument'],
    ['GET', '/v1/brokers/b1?id=b2', 400, 'invalid_argument'],
    ['DELETE', '/v1/placement/pause', 405, 'unknown_method'],
    ['PUT', '/rpc', 405, 'unknown_method'],
    ['POST', '/livez', 405, 'unknown_method'],
    ['POST', '/metrics', 405, 'unknown_method'],
    ['GET', '/elsewhere', 404, 'not_found'],
    ['GET', '//', 400, 'invalid_argument'],
  ])('%s %s is %i %s', async (method, path, status, code) => {
    const got = await fetchJson(path, { method });
    expect(got.status).toBe(status);
    expect(got.body).toMatchObject({ error: { code, retriable: false } });
  });

  it('says with a 405 what the path takes', async () => {
    const response = await fetch(`${node.url}/v1/brokers/b1`, { method: 'POST' });
    expect(response.status).toBe(405);
    expect(response.headers.get('allow')).toBe('GET, DELETE');
  });

  it('refuses bodies that are none of its own', async () => {
    const post = (
      body: string,
      type = 'application/json',
    ): Promise<{ status: number; body: Record<string, unknown> }> =>
      fetchJson('/v1/resources', { method: 'POST', headers: { 'content-type': type }, body });
    expect((await post('{')).body).toMatchObject({ error: { code: 'invalid_argument' } });
    expect((await post('[1]')).body).toMatchObject({ error: { code: 'invalid_argument' } });
    expect((await post('{"name":"a","shards":1}', 'text/plain')).body).toMatchObject({
      error: { message: expect.stringContaining('application/json') },
    });
    expect((await post('{"__proto__":{"shards":1},"name":"a"}')).body).toMatchObject({
      error: { message: expect.stringContaining('__proto__') },
    });
    expect(await post(`{"name":"${'x'.repeat(1024 * 1024)}"}`)).toMatchObject({
      status: 413,
      body: { error: { code: 'limit_exceeded' } },
    });
    expect(node.plane.state.resources.size).toBe(0);
    expect(node.faults).toEqual([]);
  });

  it('turns errors into their status', async () => {
    node.plane.leaderId = null;
    expect((await fetchJson('/v1/placement/plan')).status).toBe(503);
    node.plane.onBarrier = () => new Promise(() => undefined);
    expect((await fetchJson('/v1/brokers?deadlineMs=10')).status).toBe(504);
  });
});

describe('health', () => {
  const text = async (path: string): Promise<[number, string]> => {
    const response = await fetch(`${node.url}${path}`);
    return [response.status, await response.text()];
  };

  it('/livez depends on the storage and never on a quorum', async () => {
    node.plane.leaderId = null;
    node.plane.ready = false;
    expect(await text('/livez')).toEqual([200, 'ok\n']);
    node.health.storageOpen = false;
    expect(await text('/livez?verbose')).toEqual([503, '[+] eventLoop\n[-] storage\nnot ok: storage\n']);
  });

  it('/readyz wants a leader, to have caught up, and not to be draining', async () => {
    expect(await text('/readyz')).toEqual([200, 'ok\n']);
    node.plane.ready = false;
    node.plane.leaderId = null;
    node.health.draining = true;
    expect(await text('/readyz')).toEqual([503, 'not ok: leaderKnown, caughtUp, notDraining\n']);
    const [, lines] = await text('/readyz?verbose');
    expect(lines.split('\n').slice(0, 5)).toEqual([
      '[+] eventLoop',
      '[+] storage',
      '[-] leaderKnown',
      '[-] caughtUp',
      '[-] notDraining',
    ]);
  });

  it('/version names the package, the node and the cluster', async () => {
    expect((await fetchJson('/version')).body).toEqual({
      version: '9.9.9',
      nodeId: 'n1',
      clusterId: 'test',
      node: process.version,
    });
  });
});

describe('/metrics', () => {
  it('shows consensus, state, placement and passes', async () => {
    node.plane.harness.register('b1');
    node.plane.harness.register('b2');
    node.plane.harness.create('s', { shards: 3 });
    // Led 1 and 0: as level as one shard can be.
    node.plane.harness.create('single', { replicationFactor: 1 });
    const alone = {
      leader: 'b1',
      replicas: ['b1'],
      inSync: ['b1'],
      state: 'active',
      failedMoves: 0,
      move: null,
    } as const;
    node.plane.harness.place({ shard: 'stream:single/0', next: alone });
    const replicas = ['b1', 'b2'];
    for (let i = 0; i < 2; i += 1) {
      const next = {
        leader: 'b1',
        replicas,
        inSync: replicas,
        state: 'active',
        failedMoves: 0,
        move: null,
      } as const;
      node.plane.harness.place({ shard: `stream:s/${i}`, next });
    }
    const response = await fetch(`${node.url}/metrics`);
    expect(response.headers.get('content-type')).toContain('text/plain');
    const lines = (await response.text()).split('\n');
    const value = (name: string): string | undefined =>
      lines
        .find((line) => line.startsWith(`evenkeel_${name}`))
        ?.split(' ')
        .at(-1);
    expect(value('raft_term')).toBe('3');
    expect(value('raft_is_leader')).toBe('1');
    expect(value('state_brokers{lifecycle="live"')).toBe('2');
    expect(value('state_assignments')).toBe('3');
    expect(value('placement_max_leader_spread_per_resource')).toBe('2');
    expect(value('placement_resources_out_of_level')).toBe('1');
    expect(value('placement_leaderless')).toBe('1');
    expect(value('placement_under_replicated')).toBe('1');
    expect(value('placement_steps_total{step="stage",reason="balance"')).toBe('4');
    expect(value('placement_refused_total{code="stale"')).toBe('3');
    expect(value('placement_last_pass_seconds')).toBe('0.005');
    expect(lines.some((line) => line.startsWith('evenkeel_event_loop_delay_seconds{quantile="0.99"'))).toBe(
      true,
    );
    expect(lines.some((line) => line.startsWith('evenkeel_event_loop_delay_seconds{quantile="0.999"'))).toBe(
      true,
    );
    expect(value('placement_waiting')).toBeUndefined();
    expect(value('placement_minimum_leader_moves')?.toLowerCase()).toBe('nan');
  });

  it('what the last plan lists is counted by reason on the leader', async () => {
    const rows = (counts: Readonly<Record<string, number>>) => {
      const first = { shard: 'stream:s/0', reason: '', detail: '' };
      return new Map(Object.entries(counts).map(([reason, count]) => [reason, { count, first }]));
    };
    const plan = {
      steps: 0,
      waiting: rows({ no_destination: 2, settling: 1 }),
      unplaceable: rows({ only_copy_unavailable: 3 }),
      unspread: rows({ zone_full: 1 }),
      minimumLeaderMoves: 7,
      nextDeadlineMs: null,
    };
    node.lastPlan = { plan, revision: 1 };
    const text = await (await fetch(`${node.url}/metrics`)).text();
    const values = text
      .split('\n')
      .filter((line) => /^evenkeel_placement_(waiting|unplaceable|unspread|minimum)/.test(line))
      .map((line) => line.replace(/,?node="n\d"/, '').replace('evenkeel_placement_', ''));
    expect(values.sort()).toEqual([
      'minimum_leader_moves{} 7',
      'unplaceable{reason="only_copy_unavailable"} 3',
      'unspread{reason="zone_full"} 1',
      'waiting{reason="no_destination"} 2',
      'waiting{reason="settling"} 1',
    ]);
  });
});

describe('a web page', () => {
  const pause = async (origin: string): Promise<number> => {
    const init = { method: 'POST', headers: { origin } };
    return (await fetch(`${node.url}/v1/placement/pause`, init)).status;
  };
  const upgrade = (origin: string): Promise<string> =>
    new Promise((resolve) => {
      const socket = new WebSocket(`ws://${node.address}/rpc`, { origin });
      socket.once('open', () => {
        socket.close();
        resolve('open');
      });
      socket.once('error', (error) => resolve(error.message));
    });

  it.each(['http://evil.example', 'null', 'http://127.0.0.1:1'])(
    'from %s cannot do anything',
    async (origin) => {
      expect(await pause(origin)).toBe(403);
      expect(await upgrade(origin)).toContain('403');
      expect(node.plane.proposed).toEqual([]);
    },
  );

  it('of the node itself can', async () => {
    expect(await pause(node.url)).toBe(200);
    expect(await upgrade(node.url)).toBe('open');
  });
});

describe('a client that sends slowly', () => {
  const begin =
    'POST /rpc HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"json';

  async function dial(to: AdminNode): Promise<Socket> {
    const socket = connect(Number(new URL(to.url).port), '127.0.0.1');
    await new Promise((resolve) => socket.once('connect', resolve));
    socket.write(begin);
    return socket;
  }

  it('is answered and let go once its time is over', async () => {
    const slow = new AdminNode();
    const system = slow.clock;
    const armed = new Promise<() => void>((resolve) => {
      slow.clock = {
        ...system,
        setTimeout(callback, delayMs) {
          if (delayMs === BODY_TIMEOUT_MS) resolve(callback);
          return {};
        },
      };
    });
    await slow.listen('127.0.0.1:0');
    const socket = await dial(slow);
    let answer = '';
    socket.setEncoding('utf8').on('data', (text: string) => (answer += text));
    const ended = new Promise((resolve) => socket.once('end', resolve));
    (await armed)();
    await ended;
    expect(answer).toMatch(/^HTTP\/1.1 400 /);
    expect(answer).toContain('connection: close');
    expect(answer).toContain('"code":"protocol_error"');
    socket.destroy();
    await slow.stop();
  });

  it('and goes away half-way leaves nothing behind', async () => {
    const socket = await dial(node);
    await new Promise((resolve) => setImmediate(resolve));
    socket.destroy();
    expect((await fetchJson('/version')).status).toBe(200);
    expect(node.faults).toEqual([]);
  });
});

describe('a client that does not read its answer', () => {
  const LOOK_MS = 1_000;

  it('loses its connection where an answer that is written whole is not taken in time', () => {
    const armed = new Map<object, { callback: () => void; delayMs: number }>();
    const clock = {
      ...node.clock,
      setTimeout(callback: () => void, delayMs: number) {
        const timer = {};
        armed.set(timer, { callback, delayMs });
        return timer;
      },
      clearTimeout: (timer: object) => void armed.delete(timer),
    };
    const answered = () => {
      const response = Object.assign(new EventEmitter(), { destroy: vi.fn() });
      dropUnlessRead(response as unknown as ServerResponse, clock);
      expect(armed.size).toBe(0);
      response.emit('prefinish');
      expect([...armed.values()]).toMatchObject([{ delayMs: READ_WINDOW_MS }]);
      return response;
    };
    answered().emit('close');
    expect(armed.size).toBe(0);
    const unread = answered();
    for (const { callback } of armed.values()) callback();
    expect(unread.destroy).toHaveBeenCalledOnce();
  });

  it('loses its connection', async () => {
    const unread = new AdminNode();
    const system = unread.clock;
    const timers = new Set<{ callback: () => void }>();
    let skippedMs = 0;
    unread.clock = {
      ...system,
      now: () => system.now() + skippedMs,
      setTimeout(callback, delayMs) {
        if (delayMs !== LOOK_MS) return system.setTimeout(callback, delayMs);
        const timer = { callback };
        timers.add(timer);
        return timer;
      },
      clearTimeout: (timer) => {
        if (!timers.delete(timer as { callback: () => void })) system.clearTimeout(timer);
      },
    };
    for (let i = 0; i < 3_000; i += 1) {
      unread.plane.harness.create(`r${i}`, { labels: { text: 'x'.repeat(4_000) } });
    }
    await unread.listen('127.0.0.1:0');
    const socket = connect({ port: Number(new URL(unread.url).port), host: '127.0.0.1' });
    let length = 0;
    const closed = new Promise((resolve) => socket.once('close', resolve).once('error', () => undefined));
    socket.write('GET /v1/resources HTTP/1.1\r\nHost: x\r\n\r\n');
    while (timers.size === 0) await new Promise((resolve) => setImmediate(resolve));
    let quietTurns = 0;
    for (; quietTurns < 100; quietTurns = timers.size === 0 ? quietTurns + 1 : 0) {
      skippedMs += LOOK_MS;
      for (const timer of [...timers]) {
        timers.delete(timer);
        timer.callback();
      }
      await new Promise((resolve) => setImmediate(resolve));
    }
    socket.on('data', (data: Buffer) => (length += data.length));
    await closed;
    expect(length).toBeLessThan(3_000 * 4_000);
    await unread.stop();
  });
});
