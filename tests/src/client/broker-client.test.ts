import { expect, it } from 'vitest';
import { JSON_SUBPROTOCOL } from '../../../src/broker-protocol.ts';
import { BrokerClient } from '../../../src/client/index.ts';
import type { Connection, Net } from '../../../src/net.ts';
import { VirtualClock } from '../../raft/support/virtual-clock.ts';

interface Request {
  readonly id: number;
  readonly type: string;
}

/** A node at the other end of the one connection there is: it registers the broker, and beats are the test's to answer. */
function connected(marginMs = 500) {
  const clock = new VirtualClock();
  const beats: Request[] = [];
  const answer = ({ id, type }: Request, fields: object): void =>
    connection.onMessage(JSON.stringify({ id, type: `${type}.ok`, ...fields }));
  const timings = { heartbeatMs: 1_000, leaseMs: 4_000, expiryMs: 6_000, marginMs };
  const connection: Connection = {
    ...{ subprotocol: JSON_SUBPROTOCOL, remoteAddress: 'n1:1', bufferedBytes: 0 },
    send: (frame) => {
      const request = JSON.parse(String(frame)) as Request;
      if (request.type === 'heartbeat') beats.push(request);
      else clock.defer(() => answer(request, { incarnation: 1, lifecycle: 'live', revision: 1, ...timings }));
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
  return { clock, client, answerBeat };
}

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
