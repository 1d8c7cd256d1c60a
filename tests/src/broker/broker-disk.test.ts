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

  async function serveOrders(): Promise<void> {
    for (const id of ['b1', 'b2']) add(id);
    await w.write({
      type: 'createResource',
      resource: {
        kind: 'stream',
        name: 'orders',
        shards: 1,
        replicationFactor: 2,
        durable: true,
        zonePolicy: null,
        labels: {},
      },
    });
    await bothInSync();
  }

  const bothInSync = () =>
    w.until('both are in sync', () => row()?.state === 'active' && row()?.inSync.length === 2);

  const clientOf = (id: string) => new DataClient(w, `${id}:1`);
  const append = (client: DataClient, ...records: string[]) =>
    w.settled(client.request('append', { shard: SHARD, records }));

  it('a leader whose write failed acknowledges nothing more and stops; a copy in sync leads', async () => {
    await serveOrders();
    const failing = leader();
    const heir = follower();
    const client = clientOf(failing);
    expect(await append(client, 'a')).toMatchObject({ type: 'append.ok' });
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
});
