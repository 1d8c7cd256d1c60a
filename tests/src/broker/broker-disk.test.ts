import { beforeEach, describe, expect, it } from 'vitest';
import { plan } from '../../../placement/index.ts';
import { BrokerWorld, type WorldBroker } from '../../support/broker-world.ts';
import { DataClient } from '../../support/data-client.ts';

const SHARD = 'stream:orders/0';

describe("a broker's disk", () => {
  let w: BrokerWorld;
  let brokers: Map<string, WorldBroker>;
  let stopped: { id: string; reason: Error }[];
  const row = () => w.quorum.machine.view.assignments.get(SHARD);
  const leader = () => row()?.leader ?? '';
  const follower = () => row()?.replicas.find((id) => id !== leader()) ?? '';

  beforeEach(async () => {
    w = new BrokerWorld({ plan });
    for (const id of ['n1', 'n2', 'n3']) await w.node(id);
    w.quorum.elect('n1');
    brokers = new Map();
    stopped = [];
  });

  /** A process that ends when its broker stops itself, as the command's does. */
  function add(id: string): void {
    const started = w.broker(id, {
      onStopped: (reason) => {
        stopped.push({ id, reason });
        started.process.kill();
      },
    });
    brokers.set(id, started);
  }

  async function serveOrders(ids: readonly string[] = ['b1', 'b2']): Promise<void> {
    for (const id of ids) add(id);
    await w.write({
      type: 'createResource',
      resource: {
        kind: 'stream',
        name: 'orders',
        shards: 1,
        replicationFactor: ids.length,
        durable: true,
        zonePolicy: null,
        labels: {},
      },
    });
    await allInSync();
  }

  /** Every copy. */
  const allInSync = () =>
    w.until(
      'all are in sync',
      () => row()?.state === 'active' && row()?.inSync.length === row()?.replicas.length,
    );

  const clientOf = (id: string) => new DataClient(w, `${id}:1`);
  const serving = () => [...brokers].find(([, { broker }]) => broker.serving.includes(SHARD))?.[0] ?? '';

  /** Appends through the broker that serves the shard, and insists on an acknowledgement. */
  async function append(...records: string[]): Promise<void> {
    await w.until('it is served', () => serving() !== '');
    const answer = await w.settled(clientOf(serving()).request('append', { shard: SHARD, records }));
    expect(answer).toMatchObject({ type: 'append.ok' });
  }

  it('a leader whose write failed acknowledges nothing more and stops; a copy in sync leads', async () => {
    await serveOrders();
    const failing = leader();
    const heir = follower();
    const client = clientOf(failing);
    await append('a');
    w.disk(failing).failNextWrite();
    const answers = ['b', 'c'].map((record) => {
      const answer: { value: unknown } = { value: null };
      void client.request('append', { shard: SHARD, records: [record] }).then((one) => (answer.value = one));
      return answer;
    });
    await w.until('it stops', () => stopped.length > 0, 1_000);
    expect(stopped.map(({ id }) => id)).toEqual([failing]);
    await w.until('the copy leads', () => leader() === heir && row()?.state === 'active');
    for (const { value } of answers) {
      if (value !== null) expect(value).toMatchObject({ error: { code: 'outcome_unknown' } });
    }
    const read = await w.settled(clientOf(heir).request('read', { shard: SHARD, from: 0 }));
    expect(read).toMatchObject({ records: [{ value: 'a' }] });
  });

  it('a follower whose write failed stops, though its epoch changed while it was written', async () => {
    await serveOrders();
    const failing = follower();
    w.disk(failing).faults.syncMinMs = w.disk(failing).faults.syncMaxMs = 200;
    w.disk(failing).failNextWrite();
    void clientOf(leader()).request('append', { shard: SHARD, records: ['a'] });
    await w.until('the leader has it', () => brokers.get(leader())?.broker.offsets(SHARD)?.end === 1);
    await w.run(50);
    // The leader registers again: a new epoch, seen by the follower before its disk answers.
    const led = leader();
    brokers.get(led)?.process.kill();
    w.disk(led).settle(false);
    add(led);
    await w.until('the failed disk is noticed', () => stopped.some(({ id }) => id === failing), 5_000);
  });

  function halt(id: string): void {
    brokers.get(id)?.process.kill();
    w.disk(id).settle(false);
  }

  const valuesAt = async (id: string) => {
    const read = await w.settled(clientOf(id).request('read', { shard: SHARD, from: 0 }));
    return (read['records'] as { value: string }[] | undefined)?.map(({ value }) => value);
  };

  it('a leader whose directory went back in time loses nothing: its copies count for nothing until made again', async () => {
    await serveOrders();
    const back = leader();
    const other = follower();
    await append('a');
    halt(back);
    const old = w.disk(back).copy();
    add(back);
    await allInSync();
    expect(leader()).toBe(back);
    await append('b', 'c');
    halt(back);
    w.disk(back).restore(old);
    add(back);
    await w.until('the other copy leads', () => leader() === other && row()?.state === 'active');
    await allInSync();
    expect(await valuesAt(other)).toEqual(['a', 'b', 'c']);
    expect(brokers.get(back)?.broker.offsets(SHARD)?.end).toBe(3);
    // It goes on as another store, which vouches for what it has been given since.
    halt(back);
    add(back);
    await w.until('it registered', () => w.quorum.machine.view.brokers.get(back)?.starts === 2);
    expect(row()?.inSync).toHaveLength(2);
  });

  it('twins of one directory take turns and lose nothing', async () => {
    await serveOrders();
    const twin = leader();
    const other = follower();
    await append('a');
    halt(twin);
    const disks = [w.disk(twin).copy(), w.disk(twin).copy()];
    const expected = ['a'];
    for (let turn = 0; turn < 6; turn++) {
      const disk = disks[turn % 2];
      if (disk !== undefined) w.disk(twin).restore(disk);
      add(twin);
      await allInSync();
      const value = `turn ${turn}`;
      await append(value);
      expected.push(value);
      halt(twin);
      disks[turn % 2] = w.disk(twin).copy();
    }
    await w.until('the other leads', () => leader() === other && row()?.state === 'active');
    expect(await valuesAt(other)).toEqual(expected);
  });

  describe('whatever the marks say', () => {
    /** As a disk does that went back in time though its count of starts rises: only the records are older. */
    async function restoreRecords(id: string, take: () => Promise<void>): Promise<void> {
      halt(id);
      const old = w.disk(id).copy();
      add(id);
      await allInSync();
      await take();
      halt(id);
      const disk = () => w.disk(id).diskOf(w.process(id));
      const identity = await w.settled(disk().readFile('data/broker.json'));
      w.disk(id).restore(old);
      await w.settled(disk().replaceFile('data/broker.json', identity ?? new Uint8Array()));
    }

    it('a leader behind a copy in sync has nothing cut off: that copy leads', async () => {
      await serveOrders();
      const back = leader();
      const other = follower();
      await append('a');
      await restoreRecords(back, () => append('b', 'c'));
      add(back);
      await w.until('the other copy leads', () => leader() === other && row()?.state === 'active', 20_000);
      await allInSync();
      expect(await valuesAt(other)).toEqual(['a', 'b', 'c']);
      expect(brokers.get(back)?.broker.offsets(SHARD)?.end).toBe(3);
      await append('d');
    });

    it('a failover with records on one follower that nobody acknowledged ends with one leader that serves', async () => {
      await serveOrders(['b1', 'b2', 'b3']);
      const dies = leader();
      const [ahead = '', other = ''] = row()?.replicas.filter((id) => id !== dies) ?? [];
      await append('a');
      w.network.setCut(dies, other, true);
      void clientOf(dies).request('append', { shard: SHARD, records: ['on two only'] });
      await w.until('one follower has it', () => brokers.get(ahead)?.broker.offsets(SHARD)?.end === 2);
      halt(dies);
      w.network.setCut(dies, other, false);
      await w.until('another leads', () => leader() !== dies && serving() === leader(), 30_000);
      await append('b');
      await w.until('both that live are in sync', () => row()?.inSync.length === 2);
      expect(['a,on two only,b', 'a,b']).toContain((await valuesAt(leader()))?.join());
      add(dies);
      await allInSync();
      const { epoch } = row() ?? {};
      await w.run(20_000);
      expect(row()?.epoch).toBe(epoch);
      for (const { broker } of brokers.values())
        expect(broker.offsets(SHARD)?.end).toBe(brokers.get(leader())?.broker.offsets(SHARD)?.end);
    });
  });
});
