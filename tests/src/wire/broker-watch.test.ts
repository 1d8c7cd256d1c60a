import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BrokerClient, BrokerView } from '../../../src/client/index.ts';
import type { BrokerPush } from '../../../src/broker-protocol.ts';
import { MAX_WATCHES } from '../../../src/wire/broker-session.ts';
import { BrokerWorld } from '../../support/broker-world.ts';
import { assign, createStream } from '../../support/placed.ts';
import { RawBroker, type Frame } from '../../support/raw-broker.ts';

async function world(ring?: { maxSets: number; maxRows: number }): Promise<BrokerWorld> {
  const w = new BrokerWorld(ring === undefined ? {} : { ring });
  for (const id of ['n1', 'n2', 'n3']) await w.node(id);
  w.quorum.elect('n1');
  return w;
}

const types = (pushes: readonly Frame[]) => pushes.map(({ type }) => type);

describe('watching', () => {
  it('a snapshot, then one message a revision; heartbeats are never among them', async () => {
    const w = await world();
    const b = await RawBroker.open(w, 'n2');
    await b.register('b1');
    await createStream(w, 'orders', 1);
    const answer = await b.request('watch');
    expect(answer).toMatchObject({ type: 'watch.ok', watchId: 1, revision: w.quorum.machine.view.revision });
    await w.run(20);
    expect(b.pushes).toEqual([
      {
        type: 'watch.snapshot',
        watchId: 1,
        revision: answer['revision'],
        assignments: [],
        brokers: [
          expect.objectContaining({
            id: 'b1',
            lifecycle: 'live',
            incarnation: 1,
            addresses: { data: 'b1:1' },
          }),
        ],
        done: true,
      },
    ]);
    b.pushes.length = 0;
    await b.request('heartbeat', { incarnation: 1 });
    await assign(w, 'stream:orders/0', ['b1']);
    await w.run(20);
    expect(b.pushes).toEqual([
      {
        type: 'watch.changes',
        watchId: 1,
        revision: w.quorum.machine.view.revision,
        changes: [
          {
            kind: 'assignment',
            assignment: {
              shard: 'stream:orders/0',
              leader: 'b1',
              replicas: ['b1'],
              inSync: ['b1'],
              generation: 1,
              epoch: 1,
              state: 'assigning',
              failedMoves: 0,
              move: null,
              resourceRevision: w.quorum.machine.view.resources.get('stream:orders')?.createdRevision,
            },
          },
        ],
      },
    ]);
  });

  it('a snapshot comes in chunks of 1,000 rows, a big revision in parts', async () => {
    const w = await world();
    const b = await RawBroker.open(w, 'n2');
    await b.register('b1');
    await createStream(w, 'big', 2_500);
    for (let i = 0; i < 2_500; i++) await assign(w, `stream:big/${i}`, ['b1']);
    await b.request('watch');
    await w.run(200);
    expect(b.pushes.map(({ done, assignments }) => [done, (assignments as unknown[]).length])).toEqual([
      [false, 999],
      [false, 1_000],
      [true, 501],
    ]);
    b.pushes.length = 0;
    await w.write({ type: 'deleteResource', kind: 'stream', name: 'big', expectedRevision: null });
    await w.run(20);
    const { revision } = w.quorum.machine.view;
    expect(
      b.pushes.map(({ type, revision: at, more, changes }) => [
        type,
        at,
        more,
        (changes as unknown[]).length,
      ]),
    ).toEqual([
      ['watch.changes', revision, true, 1_000],
      ['watch.changes', revision, true, 1_000],
      ['watch.changes', revision, undefined, 500],
    ]);
  });

  it('fromRevision goes on without a snapshot inside the ring, with one outside it', async () => {
    const w = await world({ maxSets: 4, maxRows: 100 });
    const b = await RawBroker.open(w, 'n2');
    await b.register('b1');
    const from = w.quorum.machine.view.revision;
    await createStream(w, 'orders', 8);
    await assign(w, 'stream:orders/0', ['b1']);
    expect(await b.request('watch', { fromRevision: from })).toMatchObject({ revision: from });
    await w.run(20);
    expect(types(b.pushes)).toEqual(['watch.changes']);
    b.pushes.length = 0;
    for (let i = 1; i < 8; i++) await assign(w, `stream:orders/${i}`, ['b1']);
    await b.request('unwatch', { watchId: 1 });
    b.pushes.length = 0;
    await b.request('watch', { fromRevision: from });
    await w.run(20);
    expect(types(b.pushes)).toEqual(['watch.snapshot']);
  });

  it('a node that is behind waits, then says unavailable', async () => {
    const w = await world();
    const b = await RawBroker.open(w, 'n2');
    const { revision } = w.quorum.machine.view;
    const waiting = b.send('watch', { fromRevision: revision + 1 });
    await w.run(100);
    await createStream(w, 'orders', 1);
    expect(await b.answer(waiting)).toMatchObject({ type: 'watch.ok', revision: revision + 1 });
    const late = b.send('watch', { fromRevision: revision + 50 });
    expect(await b.answer(late)).toMatchObject({ error: { code: 'unavailable', retriable: true } });
  });

  it('a watch that was refused takes no place on the connection', async () => {
    const w = await world();
    const b = await RawBroker.open(w, 'n2');
    const fromRevision = w.quorum.machine.view.revision + 50;
    const late = Array.from({ length: MAX_WATCHES }, () => b.send('watch', { fromRevision }));
    for (const id of late) expect(await b.answer(id)).toMatchObject({ error: { code: 'unavailable' } });
    expect(await b.answer(b.send('watch'))).toMatchObject({ type: 'watch.ok' });
  });

  it('progress every 10 s keeps an idle watcher inside the ring', async () => {
    const w = await world({ maxSets: 4, maxRows: 100 });
    const b = await RawBroker.open(w, 'n2');
    await b.request('watch');
    await w.run(20);
    b.pushes.length = 0;
    // Policy changes are revisions that a broker is not told of.
    for (let i = 0; i < 12; i++) {
      await w.write({ type: 'setPolicy', expectedRevision: null, patch: { settleMs: 10_000 + i } });
      await w.run(5_000);
    }
    expect(new Set(types(b.pushes))).toEqual(new Set(['watch.progress']));
    expect(b.pushes.length).toBeGreaterThanOrEqual(5);
    expect(b.pushes.at(-1)?.['revision']).toBeGreaterThan(w.quorum.ring.floor);
  });

  it('a filter shows what names the broker, and once more what no longer does', async () => {
    const w = await world();
    const b1 = await RawBroker.open(w, 'n2');
    await b1.register('b1');
    const b2 = await RawBroker.open(w, 'n2');
    await b2.register('b2');
    await createStream(w, 'orders', 2);
    await assign(w, 'stream:orders/0', ['b1', 'b2']);
    await assign(w, 'stream:orders/1', ['b1']);
    await b2.request('watch', { filter: { broker: 'b2' } });
    await w.run(20);
    expect(((b2.pushes[0]?.['assignments'] ?? []) as { shard: string }[]).map(({ shard }) => shard)).toEqual([
      'stream:orders/0',
    ]);
    expect(((b2.pushes[0]?.['brokers'] ?? []) as { id: string }[]).map(({ id }) => id)).toEqual(['b1', 'b2']);
    b2.pushes.length = 0;
    await w.write({ type: 'deleteResource', kind: 'stream', name: 'orders', expectedRevision: null });
    await w.run(20);
    expect(b2.pushes[0]?.['changes']).toEqual([{ kind: 'removed', shard: 'stream:orders/0' }]);
  });

  it('a watcher that does not read is sent nothing more, and is let go after 30 s', async () => {
    const w = await world();
    const b = await RawBroker.open(w, 'n2');
    await b.register('b1');
    await createStream(w, 'big', 3_000);
    for (let i = 0; i < 3_000; i++) await assign(w, `stream:big/${i}`, ['b1']);
    w.network.link('n2', 'raw').bytesPerMs = 0.001;
    for (let i = 0; i < 6; i++) b.send('watch');
    await w.run(10_000);
    const buffered = Math.max(...[...w.network.sockets].map((socket) => socket.bufferedBytes));
    // The limit and, at most, a chunk of each watch on top of it.
    expect(buffered).toBeGreaterThan(1024 * 1024);
    expect(buffered).toBeLessThan(6 * 1024 * 1024);
    await w.run(40_000);
    expect(w.nodes.get('n2')?.surface.connections).toBe(0);
  });

  it('a few snapshots at a time; those that wait get theirs when a slow one ends or goes', async () => {
    const w = await world();
    const b = await RawBroker.open(w, 'n2');
    await b.register('b1');
    await createStream(w, 'big', 4_000);
    for (let i = 0; i < 4_000; i++) await assign(w, `stream:big/${i}`, ['b1']);
    w.network.link('n2', 'raw').bytesPerMs = 0.001;
    // The first is sent whole before its connection is full; the others wait for it to be read.
    for (let i = 0; i < 5; i++) b.send('watch');
    await w.run(500);
    const quick = new BrokerClient({
      ...w.clientOptions(w.process('b2')),
      endpoints: ['n2:1'],
      registration: { id: 'b2', addresses: {} },
      handlers: {},
    });
    quick.start();
    await w.run(5_000);
    expect(quick.hasLease()).toBe(true);
    expect(quick.view.revision).toBe(0);
    w.network.breakConnections('raw', 'n2');
    await w.until('its turn has come', () => quick.view.brokers.size === 2, 5_000);
  });

  it('one that has fallen behind the ring is resynced: a snapshot of now, then what follows', async () => {
    const w = await world({ maxSets: 8, maxRows: 100 });
    const beating = new BrokerClient({
      ...w.clientOptions(w.process('b1')),
      registration: { id: 'b1', addresses: {} },
      handlers: {},
    });
    beating.start();
    await w.until('b1 is registered', () => beating.isReady);
    const b = await RawBroker.open(w, 'n2');
    await createStream(w, 'big', 3_000);
    for (let i = 0; i < 2_900; i++) await assign(w, `stream:big/${i}`, ['b1']);
    w.network.link('n2', 'raw').bytesPerMs = 100;
    for (let i = 0; i < 4; i++) b.send('watch');
    await w.run(1_000);
    for (let i = 2_900; i < 2_950; i++) await assign(w, `stream:big/${i}`, ['b1']);
    w.network.link('n2', 'raw').bytesPerMs = 0;
    await w.run(20_000);
    for (let i = 2_950; i < 2_960; i++) await assign(w, `stream:big/${i}`, ['b1']);
    await w.run(1_000);
    expect(types(b.pushes)).toContain('watch.resync');
    for (const watchId of [1, 2, 3, 4]) {
      const view = new BrokerView('b1');
      const seen: number[] = [];
      for (const push of b.pushes.filter((one) => one['watchId'] === watchId)) {
        if (push['type'] === 'watch.changes') seen.push(push['revision'] as number);
        view.take(push as unknown as BrokerPush);
      }
      expect(view.assignments.size).toBe(2_960);
      expect(seen).toEqual([...new Set(seen)].sort((x, y) => x - y));
      // What the last snapshot holds is not told again.
      const last = b.pushes.findLast((one) => one['watchId'] === watchId && one['done'] === true);
      expect(seen.filter((revision) => revision > (last?.['revision'] as number)).length).toBeLessThanOrEqual(
        60,
      );
      expect(view.revision).toBe(w.quorum.machine.view.revision);
    }
  });

  it('whatever breaks, a client ends with the state of the log: no gap, no repeat, nothing goes back', async () => {
    const action = fc.oneof(
      { weight: 6, arbitrary: fc.record({ do: fc.constant('write' as const), n: fc.nat(19) }) },
      { weight: 2, arbitrary: fc.record({ do: fc.constant('break' as const), n: fc.nat(2) }) },
      { weight: 1, arbitrary: fc.record({ do: fc.constant('reset' as const), n: fc.nat(2) }) },
      { weight: 2, arbitrary: fc.record({ do: fc.constant('run' as const), n: fc.nat(300) }) },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(action, { minLength: 5, maxLength: 60 }), fc.nat(), async (actions, seed) => {
        await checkWatch(actions, seed);
      }),
      { numRuns: 60 },
    );
  });
});

interface Action {
  readonly do: 'write' | 'break' | 'reset' | 'run';
  readonly n: number;
}

/** One client that watches through breaks, resumptions on other nodes and rings that are emptied (a snapshot was installed). */
async function checkWatch(actions: readonly Action[], seed: number): Promise<void> {
  const w = await world({ maxSets: 6, maxRows: 60 });
  await createStream(w, 'x', 20);
  const registrar = await RawBroker.open(w, 'n1');
  await registrar.register('b1');
  await registrar.register('b2').catch(() => {});
  const other = await RawBroker.open(w, 'n1');
  await other.register('b2');
  const watcher = new ResumingWatcher(w);
  for (const { do: what, n } of actions) {
    if (what === 'write') await toggle(w, n);
    else if (what === 'break') await watcher.move(`n${n + 1}`);
    else if (what === 'reset') w.quorum.ring.reset(w.quorum.machine.view.revision);
    else await w.run(n);
  }
  await watcher.move(`n${(seed % 3) + 1}`);
  await w.run(200);
  const state = w.quorum.machine.view;
  const expected = state.assignments.list().filter(({ replicas }) => replicas.includes('b2'));
  expect([...watcher.view.assignments.keys()].sort()).toEqual(expected.map(({ shard }) => shard).sort());
  for (const row of expected) {
    expect(watcher.view.assignments.get(row.shard)?.generation).toBe(row.generation);
  }
  expect(watcher.faults).toEqual([]);
}

/** Places a shard on b2 and deletes all when it is placed already. */
async function toggle(w: BrokerWorld, n: number): Promise<void> {
  const state = w.quorum.machine.view;
  const shard = `stream:x/${n}`;
  const row = state.assignments.get(shard);
  if (row === undefined) {
    await assign(w, shard, n % 3 === 0 ? ['b1'] : ['b1', 'b2']);
  } else if (n === 7) {
    await w.write({ type: 'deleteResource', kind: 'stream', name: 'x', expectedRevision: null });
    await createStream(w, 'x', 20);
  } else {
    const inSync = row.inSync.length === row.replicas.length ? ['b1'] : row.replicas;
    const shards = [{ shard, generation: row.generation, inSync, drained: false }];
    await w.write({ type: 'report', broker: 'b1', incarnation: 1, shards });
  }
}

class ResumingWatcher {
  readonly view = new BrokerView('b2');
  readonly faults: string[] = [];
  readonly #world: BrokerWorld;
  #raw: RawBroker | null = null;
  #taken = 0;
  #seen = 0;
  /** In the midst of a revision that comes in parts. */
  #more = false;

  constructor(world: BrokerWorld) {
    this.#world = world;
  }

  async move(node: string): Promise<void> {
    this.#takeIn();
    this.view.interrupt();
    this.#raw = await RawBroker.open(this.#world, node, 'msgpack');
    this.#taken = 0;
    const { revision } = this.view;
    this.#raw.send('watch', {
      filter: { broker: 'b2' },
      ...(revision > 0 ? { fromRevision: revision } : {}),
    });
    await this.#world.run(50);
    this.#takeIn();
  }

  #takeIn(): void {
    for (const push of this.#raw?.pushes.slice(this.#taken) ?? []) {
      this.#taken++;
      const revision = (push['revision'] as number | undefined) ?? this.#seen;
      if (revision < this.#seen) this.faults.push(`${String(push['type'])} ${revision} after ${this.#seen}`);
      if (push['type'] === 'watch.changes' && revision === this.#seen && !this.#more) {
        this.faults.push(`revision ${revision} twice`);
      }
      this.#more = push['more'] === true;
      this.#seen = revision;
      this.view.take(push as unknown as BrokerPush);
    }
  }
}
