import { beforeEach, describe, expect, it } from 'vitest';
import type { BrokerAnswers, ShardReportMessage, WatchedAssignment } from '../../../src/broker-protocol.ts';
import { Confirmer } from '../../../src/broker/confirmer.ts';
import { LedShard } from '../../../src/broker/led-shard.ts';
import { RecordStore } from '../../../src/broker/record-store.ts';
import { Reporter } from '../../../src/broker/reporter.ts';
import type { BrokerClient } from '../../../src/client/index.ts';
import { BrokerWorld } from '../../support/broker-world.ts';

type Results = BrokerAnswers['report']['results'];
type Asked = { readonly shard: string; readonly generation: number };

/** A connection to the control plane whose answers the test gives. */
class HeldClient {
  isReady = true;
  readonly requests: {
    readonly shards: readonly Asked[];
    readonly accept: () => void;
    readonly refuse: () => void;
    readonly fail: () => void;
  }[] = [];

  report(shards: readonly Asked[]): Promise<Results> {
    return new Promise((resolve, reject) =>
      this.requests.push({
        shards,
        accept: () => resolve(shards.map(({ shard }) => ({ shard, result: 'accepted' as const }))),
        refuse: () => resolve(shards.map(({ shard }) => ({ shard, result: 'stale' as const, detail: '' }))),
        fail: () => reject(new Error('not answered')),
      }),
    );
  }

  confirm(shards: readonly Asked[]): Promise<Results> {
    return this.report(shards);
  }

  /** The shards of each request so far. */
  get asked(): string[] {
    return this.requests.map(({ shards }) => shards.map(({ shard }) => shard).join(' '));
  }

  get client(): BrokerClient {
    return this as unknown as BrokerClient;
  }
}

const rowOf = (shard: string, patch: Partial<WatchedAssignment> = {}): WatchedAssignment => ({
  shard,
  leader: 'b1',
  replicas: ['b1', 'b2'],
  inSync: ['b1'],
  generation: 5,
  epoch: 5,
  state: 'active',
  failedMoves: 0,
  move: null,
  resourceRevision: 1,
  ...patch,
});

describe('what a broker tells the control plane about the shards it leads', () => {
  let w: BrokerWorld;
  let client: HeldClient;
  let store: RecordStore;
  let led: Map<string, LedShard>;
  let reporter: Reporter;

  beforeEach(async () => {
    w = new BrokerWorld({});
    client = new HeldClient();
    led = new Map();
    const process = w.process('b1');
    reporter = new Reporter(client.client, process.clock, led);
    const disk = w.disk('b1').diskOf(process);
    store = await w.settled(
      RecordStore.open(await w.settled(disk.openStore('records', { createIfMissing: true }))),
    );
  });

  async function lead(shard: string, patch: Partial<WatchedAssignment> = {}): Promise<LedShard> {
    const one = new LedShard({
      self: 'b1',
      row: rowOf(shard, patch),
      log: await w.settled(store.openShard(shard, 1)),
      clock: w.process('b1').clock,
      copyRate: 1_000,
      onChange: () => reporter.changed(shard),
      onFailure: (error) => w.world.fail(error as Error),
    });
    led.set(shard, one);
    return one;
  }

  const follow = (one: LedShard): void => one.follow('b2', 1, 0, 0, () => {});

  it('reports a change of one shard while the report of another is not answered', async () => {
    const [first, second] = [await lead('s/0'), await lead('s/1')];
    follow(first);
    await w.run(10);
    follow(second);
    await w.run(10);
    expect(client.asked).toEqual(['s/0', 's/1']);
  });

  it('reports a shard again with the next heartbeat after its report failed, and not before', async () => {
    follow(await lead('s/0'));
    await w.run(10);
    reporter.beat(false);
    await w.run(10);
    client.requests[0]?.fail();
    await w.run(10);
    const changes = () =>
      client.requests.flatMap(({ shards }) => (shards as ShardReportMessage[]).filter((one) => one.inSync));
    expect(changes()).toHaveLength(1);
    reporter.beat(false);
    await w.run(10);
    expect(changes()).toHaveLength(2);
  });

  it('prepares no change while it is not connected', async () => {
    const one = await lead('s/0');
    client.isReady = false;
    follow(one);
    await w.run(10);
    expect(client.requests).toEqual([]);
    // Nothing was prepared: the copy is not waited for.
    expect(one.change()).not.toBeNull();
  });

  it('looks at every led shard with each heartbeat: a copy that says nothing causes no event', async () => {
    const one = await lead('s/0', { inSync: ['b1', 'b2'] });
    void one.append([Buffer.from('a')]).catch(() => {});
    await w.run(10_100);
    expect(client.requests).toEqual([]);
    reporter.beat(false);
    await w.run(10);
    expect(client.requests[0]?.shards).toMatchObject([{ shard: 's/0', inSync: ['b1'] }]);
  });

  it('goes on waiting for a copy whose removal was refused', async () => {
    const one = await lead('s/0', { inSync: ['b1', 'b2'] });
    const append = one.append([Buffer.from('a')]);
    await w.run(10_100);
    reporter.beat(false);
    await w.run(10);
    client.requests[0]?.refuse();
    await w.run(10);
    expect(one.acknowledged).toBe(0);
    reporter.beat(false);
    await w.run(10);
    client.requests[1]?.accept();
    expect(await w.settled(append)).toBe(0);
  });

  it('tells a new Raft leader the offsets of every shard, again if that was not answered', async () => {
    await lead('s/0', { inSync: ['b1', 'b2'] });
    await lead('s/1', { inSync: ['b1', 'b2'] });
    reporter.beat(true);
    await w.run(10);
    client.requests[0]?.fail();
    await w.run(10);
    reporter.beat(false);
    await w.run(10);
    client.requests[1]?.accept();
    await w.run(10);
    reporter.beat(false);
    await w.run(10);
    expect(client.asked).toEqual(['s/0 s/1', 's/0 s/1']);
  });

  it('has a bounded number of requests under way, and gathers what comes meanwhile', async () => {
    for (let i = 0; i < 12; i++) {
      follow(await lead(`s/${i}`));
      await w.run(10);
    }
    expect(client.asked).toEqual(Array.from({ length: 8 }, (_, i) => `s/${i}`));
    client.requests[3]?.accept();
    await w.run(10);
    expect(client.asked.slice(8)).toEqual(['s/8 s/9 s/10 s/11']);
  });

  it('confirms a shard while the confirmation of another is not answered, and each generation once at a time', async () => {
    const confirmer = new Confirmer(client.client, w.process('b1').clock, led);
    const first = await lead('s/0', { state: 'assigning' });
    confirmer.opened('s/0');
    await w.run(10);
    await lead('s/1', { state: 'assigning' });
    confirmer.opened('s/1');
    await w.run(10);
    confirmer.beat();
    await w.run(10);
    expect(client.asked).toEqual(['s/0', 's/1']);
    first.update(rowOf('s/0', { state: 'assigning', generation: 6 }));
    confirmer.opened('s/0');
    await w.run(10);
    expect(client.requests[2]?.shards).toEqual([{ shard: 's/0', generation: 6 }]);
    for (const { fail } of client.requests) fail();
    await w.run(10);
    confirmer.beat();
    await w.run(10);
    expect(client.asked.slice(3)).toEqual(['s/0 s/1']);
  });
});
