import { expect, it } from 'vitest';
import { plan } from '../../../placement/index.ts';
import type { SimClock } from '../../../src/sim/clock.ts';
import { BrokerWorld } from '../../support/broker-world.ts';
import { DataClient } from '../../support/data-client.ts';
import { resource } from '../apply/harness.ts';

/** From now on both clocks of the machine are behind by what the function was told. */
function setBack(clock: SimClock): (ms: number) => void {
  let stoodMs = 0;
  const [now, wallNow] = [clock.now.bind(clock), clock.wallNow.bind(clock)];
  clock.now = () => now() - stoodMs;
  clock.wallNow = () => wallNow() - stoodMs;
  return (ms) => void (stoodMs = ms);
}

it('a leader on a machine whose clocks all stood still acknowledges nothing once another leads, and soon follows it', async () => {
  const w = new BrokerWorld({ plan });
  for (const id of ['n1', 'n2', 'n3']) await w.node(id);
  w.quorum.elect('n1');
  const brokers = new Map(['b1', 'b2', 'b3'].map((id) => [id, w.broker(id)]));
  await w.write({ type: 'createResource', resource: resource('s', { replicationFactor: 3 }) });
  const shard = 'stream:s/0';
  const row = () => w.quorum.machine.view.assignments.get(shard);
  const of = (id: string) => {
    const found = brokers.get(id);
    if (found === undefined) throw new Error(`no broker ${id}`);
    return found;
  };
  await w.until('it is served', () => brokers.get(row()?.leader ?? '')?.broker.serving.length === 1);
  await w.until('all are in sync', () => row()?.inSync.length === 3);
  const old = row()?.leader ?? '';
  const [client, other] = [new DataClient(w, `${old}:1`), new DataClient(w, `${old}:1`)];
  await w.settled(client.request('append', { shard, records: ['before'] }));

  const { process, broker } = of(old);
  const cut = (isCut: boolean): void => {
    for (const node of ['n1', 'n2', 'n3']) {
      w.network.setCut(old, node, isCut);
      w.network.setCut(node, old, isCut);
    }
  };
  const stand = setBack(process.clock);
  process.stall();
  // Nor does the control plane reach it for a while when it goes on.
  cut(true);
  const stalledAtMs = w.world.nowMs;
  await w.until('another serves', () => {
    const heir = row()?.leader ?? '';
    return heir !== old && of(heir).broker.serving.includes(shard);
  });
  const heir = new DataClient(w, `${row()?.leader}:1`);
  await w.settled(heir.request('append', { shard, records: ['by the heir'] }));
  // These are what it finds first.
  const read = other.request('read', { shard, from: 0 });
  const append = client.request('append', { shard, records: ['too late'] });
  await w.run(10);
  stand(w.world.nowMs - stalledAtMs);
  expect(broker.serving).toContain(shard);
  process.resume(false);

  // What it reads is old, but was acknowledged.
  expect(await w.settled(read)).toMatchObject({ type: 'read.ok', records: [{ value: 'before' }] });
  await w.until('it serves no more', () => !broker.serving.includes(shard), 4_000);
  cut(false);
  expect(await w.settled(append)).toMatchObject({ type: 'error' });
  await w.until('it is in sync again', () => row()?.inSync.length === 3);
  const all = await w.settled(heir.request('read', { shard, from: 0 }));
  expect(all).toMatchObject({ records: [{ value: 'before' }, { value: 'by the heir' }], end: 2 });
  expect(broker.offsets(shard)?.end).toBe(2);
});
