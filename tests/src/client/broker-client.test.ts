import { expect, it } from 'vitest';
import { JSON_SUBPROTOCOL } from '../../../src/broker-protocol.ts';
import { BrokerClient } from '../../../src/client/index.ts';
import type { Connection, Net } from '../../../src/net.ts';
import { VirtualClock } from '../../raft/support/virtual-clock.ts';

interface Request {
  readonly id: number;
  readonly type: string;
  readonly fromRevision?: number;
}

/** A node at the other end of the one connection there is: it registers the broker, and beats are the test's to answer. */
function connected(marginMs = 500) {
  const clock = new VirtualClock();
  const beats: Request[] = [];
  const asked: Request[] = [];
  const row = { incarnation: 1, lifecycle: 'live', revision: 1 };
  const answer = ({ id, type }: Request, fields: object): void =>
    connection.onMessage(JSON.stringify({ id, type: `${type}.ok`, ...fields }));
  const timings = { heartbeatMs: 1_000, leaseMs: 4_000, expiryMs: 6_000, marginMs };
  const connection: Connection = {
    ...{ subprotocol: JSON_SUBPROTOCOL, remoteAddress: 'n1:1', bufferedBytes: 0 },
    send: (frame) => {
      const request = JSON.parse(String(frame)) as Request;
      asked.push(request);
      if (request.type === 'heartbeat') beats.push(request);
      else clock.defer(() => answer(request, { ...row, ...timings }));
    },
    close: () => {},
    terminate: () => {},
    onMessage: () => {},
    onClose: () => {},
  };
  const net: Net = { connect: async () => connection, listen: () => Promise.reject(new Error('no')) };
  const client = new BrokerClient({
    ...{ net, clock, random: { nextUint32: () => 0 }, endpoints: ['n1:1'], clusterId: 'test' },
    ...{ registration: { id: 'b1', addresses: {} }, handlers: {} },
  });
  const answerBeat = (): void => {
    const beat = beats.shift();
    if (beat === undefined) throw new Error('no heartbeat waits');
    answer(beat, { lifecycle: 'live', leaseMs: timings.leaseMs, term: 1 });
  };
  const push = (fields: object): void => connection.onMessage(JSON.stringify(fields));
  const lose = (): void => connection.onClose(1006, '');
  return { clock, client, row, asked, answerBeat, push, lose };
}

it('half a snapshot of a connection that is lost is no part of what the next one brings', async () => {
  const { clock, client, asked, push, lose } = connected();
  const part = (shard: string, done: boolean) =>
    push({
      ...{ type: 'watch.snapshot', watchId: 1, revision: 5, brokers: [], done },
      assignments: [{ shard, leader: 'b1', replicas: ['b1'], inSync: ['b1'], move: null }],
    });
  client.start();
  await clock.settle();
  part('stream:orders/0', false);
  lose();
  await clock.advance(1_000);
  expect(client.isReady).toBe(true);
  part('stream:orders/1', true);
  expect([...client.view.assignments.keys()]).toEqual(['stream:orders/1']);
  lose();
  await clock.advance(1_000);
  // Only what is whole is resumed from, and from its very revision.
  const watches = asked.filter(({ type }) => type === 'watch');
  expect(watches.map(({ fromRevision }) => fromRevision)).toEqual([undefined, undefined, 5]);
  client.stop();
});

it('a broker whose heartbeats are all answered stays on one connection, under its lease', async () => {
  const { clock, client, asked, answerBeat } = connected();
  client.start();
  await clock.settle();
  for (let beats = 0; beats < 20; beats++) {
    answerBeat();
    await clock.advance(1_000);
    expect(client.hasLease()).toBe(true);
  }
  expect(asked.filter(({ type }) => type === 'register')).toHaveLength(1);
  client.stop();
});

it('a broker that has left serves nothing on the rest of its lease', async () => {
  const { clock, client, row, answerBeat } = connected();
  client.start();
  await clock.settle();
  answerBeat();
  await clock.settle();
  expect(client.hasLease()).toBe(true);
  row.lifecycle = 'left';
  const leaving = client.leave(false);
  await clock.settle();
  expect(await leaving).toBe('left');
  expect(client.hasLease()).toBe(false);
  client.stop();
});

it('a heartbeat that is answered late gives a lease until leaseMs after it was sent, no longer', async () => {
  const { clock, client, answerBeat } = connected();
  client.start();
  await clock.settle();
  await clock.advance(1_900);
  answerBeat();
  await clock.settle();
  expect(client.hasLease()).toBe(true);
  await clock.advance(2_099);
  expect(client.hasLease()).toBe(true);
  await clock.advance(1);
  expect(client.hasLease()).toBe(false);
  client.stop();
});

it.each([100, 900])(
  'lets a machine sleep for the margin that its registration named: %d ms',
  async (marginMs) => {
    const { clock, client, answerBeat } = connected(marginMs);
    const wallNow = clock.wallNow.bind(clock);
    let sleptMs = 0;
    clock.wallNow = () => wallNow() + sleptMs;
    client.start();
    await clock.settle();
    answerBeat();
    await clock.settle();
    sleptMs = marginMs;
    expect(client.hasLease()).toBe(true);
    sleptMs = marginMs + 1;
    expect(client.hasLease()).toBe(false);
    client.stop();
  },
);
