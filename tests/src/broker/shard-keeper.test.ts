import { expect, it } from 'vitest';
import type { WatchedAssignment } from '../../../src/broker-protocol.ts';
import { RecordStore } from '../../../src/broker/record-store.ts';
import { ShardKeeper } from '../../../src/broker/shard-keeper.ts';
import { BrokerView } from '../../../src/client/index.ts';
import { BrokerWorld } from '../../support/broker-world.ts';

const ROW: WatchedAssignment = {
  shard: 'stream:orders/0',
  leader: 'b1',
  replicas: ['b1'],
  inSync: ['b1'],
  generation: 5,
  epoch: 5,
  state: 'active',
  failedMoves: 0,
  move: null,
  resourceRevision: 1,
};

it('a broker that registered again while it opened a shard leads nothing by the row of before', async () => {
  const w = new BrokerWorld({});
  const process = w.process('b1');
  const disk = w.disk('b1').diskOf(process);
  const records = await w.settled(
    RecordStore.open(await w.settled(disk.openStore('records', { createIfMissing: true }))),
  );
  const view = new BrokerView('b1');
  let incarnation: number | null = 1;
  const keeper = new ShardKeeper({
    self: 'b1',
    clusterId: 'test',
    net: w.network.netOf(process),
    clock: process.clock,
    records,
    view,
    copyRate: 1_000,
    seedRecords: 0,
    incarnation: () => incarnation,
    onChange: () => {},
    onOpened: () => {},
    onFailure: (error) => w.world.fail(error as Error),
  });
  const show = (revision: number, row: WatchedAssignment): void => {
    const update = view.take({
      type: 'watch.snapshot',
      watchId: 1,
      revision,
      assignments: [row],
      brokers: [],
      done: true,
    });
    if (update !== null) keeper.update(update);
  };
  show(1, ROW);
  // The shard is being opened. The new registration is newer than what the watch has shown.
  incarnation = null;
  keeper.startOver();
  await w.run(100);
  expect([...keeper.led.keys()]).toEqual([]);
  incarnation = 2;
  show(2, { ...ROW, generation: 6, epoch: 6, state: 'assigning' });
  await w.run(100);
  expect(keeper.led.get(ROW.shard)?.epoch).toBe(6);
  keeper.close();
});
