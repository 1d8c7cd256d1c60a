import { beforeEach, describe, expect, it } from 'vitest';
import { plan } from '../../../placement/index.ts';
import type { Resource } from '../../../placement/index.ts';
import { BrokerWorld, type WorldBroker } from '../../support/broker-world.ts';
import { DataClient } from '../../support/data-client.ts';

const SHARD = 'stream:orders/0';
const stream = (shards: number, replicationFactor: number): Resource => ({
  kind: 'stream',
  name: 'orders',
  shards,
  replicationFactor,
  durable: true,
  zonePolicy: null,
  labels: {},
});

describe('which copies a leader waits for while its reports are lost', () => {
  let w: BrokerWorld;
  let brokers: Map<string, WorldBroker>;
  const row = (shard = SHARD) => {
    const found = w.quorum.machine.view.assignments.get(shard);
    if (found === undefined) throw new Error(`${shard} has no row`);
    return found;
  };
  const broker = (id: string): WorldBroker => {
    const found = brokers.get(id);
    if (found === undefined) throw new Error(`there is no ${id}`);
    return found;
  };
  const incarnation = (id: string) => w.quorum.machine.view.brokers.get(id)?.incarnation ?? 0;

  beforeEach(async () => {
    w = new BrokerWorld({ plan });
    for (const id of ['n1', 'n2', 'n3']) await w.node(id);
    w.quorum.elect('n1');
    brokers = new Map();
  });

  function add(id: string, endpoint?: string): void {
    brokers.set(id, w.broker(id, endpoint === undefined ? {} : { endpoints: [endpoint] }));
  }

  async function restart(id: string, endpoint?: string): Promise<void> {
    const before = incarnation(id);
    broker(id).process.kill();
    add(id, endpoint);
    await w.until(`${id} has registered again`, () => incarnation(id) > before);
  }

  function cut(a: string, b: string, isCut = true): void {
    w.network.setCut(a, b, isCut);
    w.network.setCut(b, a, isCut);
  }

  async function create(shards: number, copies: number): Promise<void> {
    await w.write({ type: 'createResource', resource: stream(shards, copies) });
    await w.until('every copy is in sync', () => {
      const rows = w.quorum.machine.view.assignments.list();
      return (
        rows.length === shards &&
        rows.every(({ inSync, state }) => state === 'active' && inSync.length === copies)
      );
    });
  }

  /** Answers to an append: how long it took in virtual time. */
  async function append(leader: string, shard = SHARD, withinMs = 60_000): Promise<number> {
    const client = new DataClient(w, `${leader}:1`);
    const beganMs = w.world.nowMs;
    const answer = await w.settled(client.request('append', { shard, records: ['a'] }), withinMs);
    expect(answer).toMatchObject({ type: 'append.ok' });
    return w.world.nowMs - beganMs;
  }

  it('a copy in sync never lacks an acknowledged record, though two reports of one generation are under way', async () => {
    for (const id of ['b1', 'b2', 'b3']) add(id, 'n2:1');
    await create(1, 3);
    const { leader, replicas } = row();
    const [x, y] = replicas.filter((id) => id !== leader) as [string, string];
    for (const id of [x, y]) broker(id).process.kill();
    await w.until('the leader is alone', () => row().inSync.length === 1);
    // One copy comes back and is reported on a log that stands still; then its broker and the leader's node are gone.
    w.world.afterStep = () => {
      if (incarnation(x) > 1) w.quorum.writesHeld = true;
    };
    cut(y, leader);
    add(y, 'n3:1');
    await w.until('the other has registered', () => incarnation(y) > 1);
    add(x, 'n3:1');
    await w.run(3_000);
    w.world.afterStep = () => {};
    expect(row().inSync).toEqual([leader]);
    broker(x).process.kill();
    await w.run(100);
    w.nodes.get('n2')?.process.kill();
    cut(y, leader, false);
    await w.node('n2');
    await w.run(3_000);
    const client = new DataClient(w, `${leader}:1`);
    let answer: unknown = null;
    void client.request('append', { shard: SHARD, records: ['a'] }).then((got) => (answer = got));
    await w.run(2_000);
    const whileLost = answer;
    w.quorum.release();
    await w.run(200);
    const acknowledged = broker(leader).broker.offsets(SHARD)?.acknowledged ?? 0;
    if (row().inSync.includes(x)) expect(acknowledged).toBe(0);
    expect(whileLost).toBeNull();
    // What is left of doubt is over within the lag limit.
    await w.run(15_000);
    expect(answer).toMatchObject({ type: 'append.ok' });
  });

  it('takes records though a copy died that a report without an answer may have added', async () => {
    for (const id of ['b1', 'b2']) add(id);
    await create(1, 2);
    const { leader, replicas } = row();
    const other = replicas.find((id) => id !== leader) ?? '';
    broker(other).process.kill();
    await w.until('the leader is alone', () => row().inSync.length === 1);
    w.world.afterStep = () => {
      if (incarnation(other) > 1) w.quorum.writesHeld = true;
    };
    add(other);
    await w.run(1_500);
    w.world.afterStep = () => {};
    broker(other).process.kill();
    await w.run(300);
    // The report under way is never answered.
    w.quorum.elect('n2');
    await w.run(5_000);
    expect(await append(leader)).toBeLessThan(25_000);
    expect(row().inSync).toEqual([leader]);
  });

  it('takes records though a copy in sync cannot reach it since its broker was restarted', async () => {
    for (const id of ['b1', 'b2']) add(id);
    await create(1, 2);
    const { leader, replicas } = row();
    const other = replicas.find((id) => id !== leader) ?? '';
    await append(leader);
    cut(leader, other);
    await restart(other);
    expect(row().inSync).toContain(other);
    expect(await append(leader)).toBeLessThan(13_000);
    expect(row().inSync).toEqual([leader]);
  });

  it('takes records though it is cut off from its only other copy, and takes that in once the cut is over', async () => {
    for (const id of ['b1', 'b2']) add(id);
    await create(1, 2);
    const { leader, replicas } = row();
    const other = replicas.find((id) => id !== leader) ?? '';
    await append(leader);
    cut(leader, other);
    expect(await append(leader)).toBeLessThan(13_000);
    expect(row().inSync).toEqual([leader]);
    cut(leader, other, false);
    await w.until('it is in sync again', () => row().inSync.length === 2, 20_000);
  });

  it('an idle shard writes nothing to the log, and its first append neither', async () => {
    for (const id of ['b1', 'b2', 'b3']) add(id);
    await create(1, 3);
    const { leader } = row();
    await append(leader);
    const before = w.quorum.log.length;
    // One copy is always before the other, and the leader looks at both then.
    for (let i = 0; i < 5; i++) {
      await w.run(15_000);
      await append(leader);
    }
    await w.run(15_000);
    const reports = w.quorum.log.slice(before).filter(({ command }) => command.type === 'report');
    expect(reports).toEqual([]);
  });
});
