import { beforeEach, describe, expect, it } from 'vitest';
import type { Assignment, Resource } from '../../../placement/index.ts';
import { DEFAULT_POLICY, plan } from '../../../placement/index.ts';
import { BrokerWorld, type WorldBroker } from '../../support/broker-world.ts';
import { DataClient } from '../../support/data-client.ts';

const stream = (name: string, shards: number, replicationFactor: number): Resource => ({
  kind: 'stream',
  name,
  shards,
  replicationFactor,
  durable: true,
  zonePolicy: null,
  labels: {},
});

describe('reference brokers under a planner', () => {
  let w: BrokerWorld;
  let brokers: Map<string, WorldBroker>;
  const state = () => w.quorum.machine.view;
  const rows = () => state().assignments.list();
  const serving = (shard: string) =>
    [...brokers]
      .filter(([, { broker, process }]) => process.alive && broker.serving.includes(shard))
      .map(([id]) => id);

  beforeEach(async () => {
    w = new BrokerWorld({ plan });
    for (const id of ['n1', 'n2', 'n3']) await w.node(id);
    w.quorum.elect('n1');
    brokers = new Map();
    // Never two at once, whatever happens: the promise that leases and epochs make together.
    w.world.afterStep = () => {
      for (const { shard } of rows()) {
        const by = serving(shard);
        if (by.length > 1) throw new Error(`${shard} is served by ${by.join(' and ')} at ${w.world.nowMs}`);
      }
    };
  });

  function add(id: string, options: Parameters<BrokerWorld['broker']>[1] = {}): void {
    brokers.set(id, w.broker(id, options));
  }

  async function allServed(): Promise<void> {
    await w.until(
      'every shard is served',
      () => rows().length > 0 && rows().every(({ shard, leader }) => serving(shard)[0] === leader),
    );
  }

  it('places, serves, and acknowledges what every in-sync copy holds', async () => {
    for (const id of ['b1', 'b2', 'b3']) add(id);
    await w.write({ type: 'createResource', resource: stream('orders', 3, 3) });
    await allServed();
    const leader = state().assignments.get('stream:orders/0')?.leader ?? '';
    const client = new DataClient(w, `${leader}:1`);
    const answer = await w.settled(
      client.request('append', { shard: 'stream:orders/0', records: ['a', 'b'] }),
    );
    expect(answer).toMatchObject({ type: 'append.ok', offset: 0 });
    for (const { broker } of brokers.values()) expect(broker.offsets('stream:orders/0')?.end).toBe(2);
    const read = await w.settled(client.request('read', { shard: 'stream:orders/0', from: 1 }));
    expect(read).toMatchObject({ type: 'read.ok', end: 2, records: [{ offset: 1, value: 'b' }] });
  });

  /** Imports rows whose named brokers have never registered. */
  async function importRows(
    ids: readonly string[],
    resources: readonly Resource[],
    assignments: readonly Assignment[],
  ): Promise<void> {
    const all = ids.map((id) => ({
      id,
      zone: null,
      lifecycle: 'live' as const,
      drain: false,
      maxShards: null,
      weight: 1,
      incarnation: 0,
      registeredAtMs: 0,
      downSinceMs: null,
    }));
    await w.write({ type: 'importPart', importId: 'i', part: 0, brokers: all, resources, assignments });
    await w.write({
      type: 'importCommit',
      importId: 'i',
      parts: 1,
      timeMs: null,
      policy: DEFAULT_POLICY,
      overwrite: false,
    });
  }

  const led = (name: string, number: number, leader: string, replicas: readonly string[]): Assignment => ({
    shard: `stream:${name}/${number}`,
    leader,
    replicas,
    inSync: replicas,
    generation: 1,
    epoch: 1,
    state: 'active',
    failedMoves: 0,
    move: null,
  });

  const moves = () =>
    w.quorum.log.flatMap(({ command }) =>
      command.type === 'placement' ? command.rows.map(({ step, shard, to }) => ({ step, shard, to })) : [],
    );

  it('levels a lopsided cluster by stage, fence and cut-over, in the fewest moves, copying nothing', async () => {
    const ids = ['b1', 'b2', 'b3'];
    const rowsOf = Array.from({ length: 12 }, (_, i) =>
      led('perf', i, i === 0 ? 'b1' : i === 1 ? 'b2' : 'b3', ids),
    );
    await importRows(ids, [stream('perf', 12, 3)], rowsOf);
    for (const id of ids) add(id, { seedRecords: 20 });
    await w.until('it is level', () => counts('perf').join() === '4,4,4' && idle());
    await allServed();
    expect(moves().filter(({ step }) => step === 'cutOver')).toHaveLength(6);
    // A fence whose destination registered meanwhile is taken back and made again.
    expect(moves().filter(({ step }) => step === 'fence').length).toBeGreaterThanOrEqual(6);
    for (const { shard, inSync } of rows()) {
      expect([...inSync].sort()).toEqual(ids);
      for (const { broker } of brokers.values()) expect(broker.offsets(shard)?.end, shard).toBe(20);
    }
  });

  it('moves leaderships to brokers that hold nothing: copies at the set rate, fences, hands over, drops', async () => {
    const ids = ['b1', 'b2', 'b3', 'b4'];
    const rowsOf = Array.from({ length: 4 }, (_, i) => led('data', i, 'b1', ['b1', 'b2']));
    await importRows(ids, [stream('data', 4, 2)], rowsOf);
    for (const id of ids) add(id, { seedRecords: 500, copyRate: 100 });
    const beganMs = w.world.nowMs;
    await w.until('it is level', () => counts('data', ids).join() === '1,1,1,1' && idle(), 120_000);
    // Two leaderships go where a copy must be made first, at 100 records a second.
    expect(w.world.nowMs - beganMs).toBeGreaterThan(5_000);
    await allServed();
    // Once the leaders are level a follower may still move, so that copies are too.
    await w.until('every copy is whole, and no other is kept', () =>
      rows().every(({ shard, leader, replicas }) => {
        if (replicas.length !== 2) return false;
        const whole = brokers.get(leader)?.broker.offsets(shard)?.acknowledged ?? 0;
        return [...brokers].every(
          ([id, { broker }]) =>
            (broker.offsets(shard)?.end ?? null) === (replicas.includes(id) ? whole : null),
        );
      }),
    );
  });

  it('goes on where it was when the Raft leader changes at every step', async () => {
    const ids = ['b1', 'b2', 'b3'];
    const rowsOf = Array.from({ length: 9 }, (_, i) => led('perf', i, 'b1', ids));
    await importRows(ids, [stream('perf', 9, 3)], rowsOf);
    for (const id of ids) add(id, { seedRecords: 10 });
    let written = 0;
    let next = 0;
    for (let i = 0; i < 200 && !(counts('perf').join() === '3,3,3' && idle()); i++) {
      await w.until(
        'another step, or the end',
        () => moves().length > written || counts('perf').join() === '3,3,3',
      );
      written = moves().length;
      w.quorum.elect(['n1', 'n2', 'n3'][next++ % 3] ?? null);
      await w.run(50);
    }
    await w.until('it is level', () => counts('perf').join() === '3,3,3' && idle());
    expect(moves().filter(({ step }) => step === 'cutOver')).toHaveLength(6);
    await allServed();
  });

  it('a killed leader of shards: others take them after lease, expiry and margin; back, it has lost nothing', async () => {
    for (const id of ['b1', 'b2', 'b3']) add(id);
    await w.write({ type: 'createResource', resource: stream('orders', 3, 3) });
    await allServed();
    const shard = 'stream:orders/0';
    const leader = state().assignments.get(shard)?.leader ?? '';
    const client = new DataClient(w, `${leader}:1`);
    await w.settled(client.request('append', { shard, records: ['kept'] }));
    const killedMs = w.world.nowMs;
    brokers.get(leader)?.process.kill();
    w.disk(leader).settle(false);
    await w.until('another leads', () => state().assignments.get(shard)?.leader !== leader);
    expect(w.world.nowMs - killedMs).toBeGreaterThan(5_500);
    await w.until('it is served', () => serving(shard).length === 1);
    const heir = state().assignments.get(shard)?.leader ?? '';
    const read = await w.settled(new DataClient(w, `${heir}:1`).request('read', { shard, from: 0 }));
    expect(read).toMatchObject({ records: [{ value: 'kept' }] });
    add(leader);
    await w.until('all are in sync again', () => rows().every(({ inSync }) => inSync.length === 3));
    expect(state().brokers.get(leader)).toMatchObject({ incarnation: 2, lifecycle: 'live' });
    await allServed();
  });

  it('a broker back with an empty disk inherits nothing and leads nothing that others hold', async () => {
    for (const id of ['b1', 'b2']) add(id);
    await w.write({ type: 'createResource', resource: stream('orders', 2, 2) });
    await allServed();
    const shard = rows().find(({ leader }) => leader === 'b1')?.shard ?? '';
    await w.settled(new DataClient(w, 'b1:1').request('append', { shard, records: ['kept'] }));
    brokers.get('b1')?.process.kill();
    w.disk('b1').wipe();
    add('b1');
    await w.until('b2 leads', () => state().assignments.get(shard)?.leader === 'b2');
    await w.until('b1 holds it again', () => state().assignments.get(shard)?.inSync.length === 2);
    expect(brokers.get('b1')?.broker.offsets(shard)?.end).toBe(1);
  });

  it('a paused leader wakes up deposed: it serves nothing, and what nobody acknowledged is cut off', async () => {
    for (const id of ['b1', 'b2', 'b3']) add(id);
    await w.write({ type: 'createResource', resource: stream('orders', 3, 3) });
    await allServed();
    const shard = 'stream:orders/0';
    const leader = state().assignments.get(shard)?.leader ?? '';
    const others = ['b1', 'b2', 'b3'].filter((id) => id !== leader);
    // Nothing leaves it any more, so that one record stays with it alone.
    for (const id of others) w.network.setCut(leader, id, true);
    const lonely = new DataClient(w, `${leader}:1`).request('append', { shard, records: ['lonely'] });
    lonely.catch(() => {});
    await w.until('it is written there', () => brokers.get(leader)?.broker.offsets(shard)?.end === 1);
    brokers.get(leader)?.process.stall();
    for (const id of others) w.network.setCut(leader, id, false);
    await w.until('another serves it', () => serving(shard).some((id) => id !== leader));
    const heir = state().assignments.get(shard)?.leader ?? '';
    await w.settled(new DataClient(w, `${heir}:1`).request('append', { shard, records: ['x', 'y'] }));
    brokers.get(leader)?.process.resume(true);
    await w.until('it is in sync again', () => state().assignments.get(shard)?.inSync.length === 3);
    expect(brokers.get(leader)?.broker.offsets(shard)?.end).toBe(2);
    // Left alone it must lead, and shows what it holds.
    for (const id of others) brokers.get(id)?.process.kill();
    await w.until('it leads again', () => serving(shard).join() === leader);
    const read = await w.settled(new DataClient(w, `${leader}:1`).request('read', { shard, from: 0 }));
    expect(read).toMatchObject({ records: [{ value: 'x' }, { value: 'y' }] });
  });

  it('a name deleted and created again starts empty', async () => {
    for (const id of ['b1', 'b2']) add(id);
    await w.write({ type: 'createResource', resource: stream('orders', 1, 2) });
    await allServed();
    const shard = 'stream:orders/0';
    const leader = state().assignments.get(shard)?.leader ?? '';
    await w.settled(new DataClient(w, `${leader}:1`).request('append', { shard, records: ['old'] }));
    await w.write({ type: 'deleteResource', kind: 'stream', name: 'orders', expectedRevision: null });
    await w.write({ type: 'createResource', resource: stream('orders', 1, 2) });
    await allServed();
    await w.until('the old records are gone', () =>
      [...brokers.values()].every(({ broker }) => broker.offsets(shard)?.end === 0),
    );
  });

  it('a name deleted and created again while a broker did not look starts empty there too', async () => {
    for (const id of ['b1', 'b2']) add(id);
    await w.write({ type: 'createResource', resource: stream('orders', 1, 2) });
    await allServed();
    const shard = 'stream:orders/0';
    const leader = state().assignments.get(shard)?.leader ?? '';
    await w.settled(new DataClient(w, `${leader}:1`).request('append', { shard, records: ['old'] }));
    // A follower: what nobody leads is given to no broker whose connection is closed.
    const blind = leader === 'b1' ? 'b2' : 'b1';
    // Not only cut off, which TCP would make good: what was under way is lost.
    for (const node of ['n1', 'n2', 'n3']) {
      w.network.setCut(node, blind, true);
      w.network.breakConnections(node, blind);
    }
    await w.write({ type: 'deleteResource', kind: 'stream', name: 'orders', expectedRevision: null });
    await w.write({ type: 'createResource', resource: stream('orders', 1, 2) });
    await w.until('it is placed again', () => state().assignments.has(shard), 5_000);
    expect(state().assignments.get(shard)?.leader).toBe(leader);
    w.quorum.ring.reset(state().revision);
    for (const node of ['n1', 'n2', 'n3']) w.network.setCut(node, blind, false);
    await allServed();
    await w.until('both are in sync', () => state().assignments.get(shard)?.inSync.length === 2);
    await w.run(2_000);
    for (const { broker } of brokers.values()) expect(broker.offsets(shard)?.end).toBe(0);
  });

  it('one that wakes up with an old view serves nothing of it, though it has a lease again', async () => {
    for (const id of ['b1', 'b2', 'b3']) add(id);
    await w.write({ type: 'createResource', resource: stream('orders', 12, 3) });
    await allServed();
    brokers.get('b1')?.process.stall();
    for (const node of ['n1', 'n2', 'n3']) w.network.breakConnections(node, 'b1');
    await w.until('others lead all', () => rows().every(({ leader }) => leader !== 'b1'));
    await allServed();
    // News reaches it slowly, revision by revision, long after its first heartbeat is answered.
    for (const node of ['n1', 'n2', 'n3']) w.network.link(node, 'b1').bytesPerMs = 1;
    brokers.get('b1')?.process.resume(true);
    await w.until('it is back', () => state().brokers.get('b1')?.incarnation === 2);
    await w.run(30_000);
    await allServed();
  });

  it('leaves after it has been emptied', async () => {
    for (const id of ['b1', 'b2', 'b3']) add(id, { seedRecords: 50 });
    await w.write({ type: 'createResource', resource: stream('orders', 6, 2) });
    await allServed();
    await w.settled(brokers.get('b2')?.broker.leave({ drain: true }) ?? Promise.resolve(), 120_000);
    expect(state().brokers.get('b2')).toMatchObject({ lifecycle: 'left' });
    expect(rows().every(({ replicas }) => !replicas.includes('b2') && replicas.length === 2)).toBe(true);
  });

  const counts = (name: string, ids = ['b1', 'b2', 'b3']) =>
    ids.map(
      (id) =>
        rows().filter(({ shard, leader }) => shard.startsWith(`stream:${name}/`) && leader === id).length,
    );
  const idle = () => rows().every(({ move }) => move === null);
});
