import { expect, it } from 'vitest';
import {
  brokerCodec,
  MSGPACK_SUBPROTOCOL,
  type WatchedAssignment,
  type WatchedBroker,
} from '../../../src/broker-protocol.ts';
import { COPY_PATH, COPY_SUBPROTOCOL, type FollowMessage } from '../../../src/broker/copy-protocol.ts';
import { RecordStore } from '../../../src/broker/record-store.ts';
import { ShardKeeper } from '../../../src/broker/shard-keeper.ts';
import { BrokerView } from '../../../src/client/index.ts';
import type { Connection } from '../../../src/net.ts';
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

/** One broker's keeper on a disk of its own. `show` is what the watch sends. */
async function keeperOf(w: BrokerWorld, brokers: readonly WatchedBroker[] = []) {
  const process = w.process('b1');
  const disk = w.disk('b1').diskOf(process);
  const records = await w.settled(
    RecordStore.open(await w.settled(disk.openStore('records', { createIfMissing: true }))),
  );
  const view = new BrokerView('b1');
  const state = { incarnation: 1 as number | null };
  const opened: string[] = [];
  const keeper = new ShardKeeper({
    self: 'b1',
    clusterId: 'test',
    net: w.network.netOf(process),
    clock: process.clock,
    records,
    view,
    copyRate: 1_000,
    seedRecords: 0,
    incarnation: () => state.incarnation,
    onChange: () => {},
    onOpened: (shard) => void opened.push(shard),
    onFailure: (error) => w.world.fail(error as Error),
  });
  let revision = 0;
  const show = (row: WatchedAssignment): void => {
    const update = view.take({
      type: 'watch.snapshot',
      watchId: 1,
      revision: ++revision,
      assignments: [row],
      brokers,
      done: true,
    });
    if (update !== null) keeper.update(update);
  };
  return { keeper, records, show, state, opened };
}

/** A leader that says what the test wants; `asked` is what its last connection was sent. */
async function leaderOf(w: BrokerWorld) {
  const codec = brokerCodec(MSGPACK_SUBPROTOCOL);
  const leader = { asked: [] as FollowMessage[], send: (_message: object): void => {} };
  const onConnection = (connection: Connection): void => {
    leader.asked = [];
    leader.send = (message) => connection.send(codec.encode(message));
    connection.onMessage = (frame) => leader.asked.push(codec.decode(frame) as FollowMessage);
  };
  const route = { subprotocols: [COPY_SUBPROTOCOL], maxPayloadBytes: 1_000_000, onConnection };
  const net = w.network.netOf(w.process('b2'));
  await w.settled(net.listen('b2:1', { routes: { [COPY_PATH]: route } }));
  return leader;
}

it('a broker that registered again while it opened a shard leads nothing by the row of before', async () => {
  const w = new BrokerWorld({});
  const { keeper, show, state } = await keeperOf(w);
  show(ROW);
  // The shard is being opened. The new registration is newer than what the watch has shown.
  state.incarnation = null;
  keeper.startOver();
  await w.run(100);
  expect([...keeper.led.keys()]).toEqual([]);
  state.incarnation = 2;
  show({ ...ROW, generation: 6, epoch: 6, state: 'assigning' });
  await w.run(100);
  expect(keeper.led.get(ROW.shard)?.epoch).toBe(6);
  keeper.close();
});

it('a broker that is shown another leader while it opens a shard never leads it', async () => {
  const w = new BrokerWorld({});
  const { keeper, show, opened } = await keeperOf(w);
  show({ ...ROW, state: 'assigning' });
  show({ ...ROW, generation: 6, epoch: 6, leader: 'b2', replicas: ['b2', 'b1'], inSync: ['b2'] });
  await w.run(100);
  expect(opened).toEqual([]);
  expect([...keeper.led.keys()]).toEqual([]);
  keeper.close();
});

const LEADER: WatchedBroker = {
  id: 'b2',
  incarnation: 1,
  lifecycle: 'live',
  drain: false,
  registeredAtMs: 0,
  downSinceMs: null,
  zone: null,
  weight: 100,
  maxShards: null,
  addresses: { copy: 'b2:1' },
  labels: {},
  storeId: null,
};
const FOLLOWED: WatchedAssignment = { ...ROW, leader: 'b2', replicas: ['b2', 'b1'], inSync: ['b2', 'b1'] };
const records = (epoch: number, from: number, of: number): object => ({
  type: 'records',
  shard: ROW.shard,
  epoch,
  from,
  records: [[of, Buffer.from('x')]],
});

it('a copy whose resource was deleted and created again is dropped while its old leader still sends', async () => {
  const w = new BrokerWorld({});
  const leader = await leaderOf(w);
  const { keeper, records: store, show } = await keeperOf(w, [LEADER]);
  show(FOLLOWED);
  await w.until('the copy is asked for', () => leader.asked.some(({ type }) => type === 'follow'));
  leader.send(records(5, 0, 5));
  await w.until('a record is copied', () => store.get(ROW.shard)?.end === 1);

  const again = { ...FOLLOWED, resourceRevision: 2, generation: 6, epoch: 6 };
  show(again);
  // The row changes once more while the log of before is dropped.
  show({ ...again, resourceRevision: null });
  for (let i = 0; i < 10; i++) {
    leader.send(records(5, 1, 5));
    await w.run(1);
  }
  expect(store.get(ROW.shard)?.resourceRevision).toBe(2);
  show({ ...again, generation: 7 });
  await w.until('the new copy is asked for', () =>
    leader.asked.some((message) => message.type === 'follow' && message.epoch === 6),
  );
  expect(store.get(ROW.shard)).toMatchObject({ resourceRevision: 2, end: 0 });
  keeper.close();
});

it('a resource deleted and created again ends what was led, though its epoch is the same', async () => {
  const w = new BrokerWorld({});
  const { keeper, records: store, show } = await keeperOf(w);
  show(ROW);
  await w.until('it leads', () => keeper.led.has(ROW.shard));
  const before = keeper.led.get(ROW.shard);
  show({ ...ROW, resourceRevision: 2 });
  await w.until('it leads the new one', () => store.get(ROW.shard)?.resourceRevision === 2);
  await w.until('with its log', () => keeper.led.get(ROW.shard)?.log === store.get(ROW.shard));
  await expect(before?.append([Buffer.from('x')])).rejects.toMatchObject({ code: 'unavailable' });
  keeper.close();
});

it('records that do not fit the log end the connection to their leader, not the broker', async () => {
  const w = new BrokerWorld({});
  const leader = await leaderOf(w);
  const { keeper, records: store, show } = await keeperOf(w, [LEADER]);
  show(FOLLOWED);
  await w.until('the copy is asked for', () => leader.asked.some(({ type }) => type === 'follow'));
  leader.send(records(5, 0, 5));
  await w.until('a record is copied', () => store.get(ROW.shard)?.end === 1);
  leader.send(records(5, 1, 4));
  await w.until('it asks again on another connection', () =>
    leader.asked.some((message) => message.type === 'follow' && message.end === 1),
  );
  expect(store.get(ROW.shard)?.end).toBe(1);
  keeper.close();
});
