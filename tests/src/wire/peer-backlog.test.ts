import { afterEach, expect, test } from 'vitest';
import type { Message } from '../../../raft/index.ts';
import { createSystemClock } from '../../../src/clock.ts';
import { SILENT_LOGGER } from '../../../src/logger.ts';
import { createWebSocketNet } from '../../../src/net-ws.ts';
import { createSystemRandom } from '../../../src/random.ts';
import { PeerTransport } from '../../../src/wire/peer-transport.ts';
import { Bell } from '../../support/bell.ts';
import { bareMember, frameOf, identityOf } from '../../support/peer-client.ts';

const MIB = 1024 * 1024;
const cleanUps: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

/** Dials every peer; resolves once all are up. */
async function dialing(peers: Record<string, string>): Promise<PeerTransport> {
  const transport = new PeerTransport({
    net: createWebSocketNet(),
    clock: createSystemClock(),
    random: createSystemRandom(),
    logger: SILENT_LOGGER,
    self: identityOf('a'),
    listen: '127.0.0.1:0',
    peers: new Map(Object.entries(peers)),
  });
  cleanUps.push(() => transport.stop());
  const bell = new Bell();
  transport.bind({ onMessages() {}, onPeerDown() {}, onPeerUp: () => bell.ring() });
  await transport.start();
  await bell.until(() => Object.keys(peers).every((peer) => transport.isConnected(peer)));
  return transport;
}

const append = (to: string, at: number, bytes: number): Message => ({
  type: 'append',
  from: 'a',
  to,
  term: 1,
  prevIndex: at,
  prevTerm: 1,
  commit: 0,
  entries: [{ index: at + 1, term: 1, kind: 'command', data: new Uint8Array(bytes) }],
});
const heartbeat = (to: string, round: number): Message => ({
  type: 'heartbeat',
  from: 'a',
  to,
  term: 1,
  commit: 0,
  round,
});
const turn = () => new Promise((resolve) => setImmediate(resolve));

test('hazard 37: a peer that stops reading is held in bounds, and the others go on', async () => {
  const bell = new Bell();
  let heard = 0;
  const stopped = await bareMember(identityOf('b'), (_, socket) => socket.pause());
  const healthy = await bareMember(identityOf('c'), (_, socket) => {
    socket.on('message', (data) => {
      const frame = frameOf(data);
      if (frame.kind === 'messages') heard += frame.messages.length;
      bell.ring();
    });
  });
  cleanUps.push(stopped.stop, healthy.stop);
  const transport = await dialing({ b: stopped.address, c: healthy.address });
  let most = 0;
  for (let at = 0; at < 400; at += 1) {
    transport.send([append('b', at, MIB), heartbeat('b', at), heartbeat('c', at)]);
    await turn();
    most = Math.max(most, transport.bufferedBytes('b'));
  }
  await bell.until(() => heard === 400);
  // The log lane's bound and one turn's frame past it.
  expect(most).toBeGreaterThan(16 * MIB);
  expect(most).toBeLessThan(34 * MIB);
  expect(transport.bufferedBytes('c')).toBeLessThan(MIB);
  await expect(transport.call('b', 'any', new Uint8Array(1), 20)).rejects.toMatchObject({
    code: 'deadline_exceeded',
  });
});

test('hazard 37: calls to a peer that stops reading are refused once their bound is reached', async () => {
  const stopped = await bareMember(identityOf('b'), (_, socket) => socket.pause());
  cleanUps.push(stopped.stop);
  const transport = await dialing({ b: stopped.address });
  const codes = new Map<string, number>();
  const calls = Array.from({ length: 60 }, () =>
    transport.call('b', 'any', new Uint8Array(MIB), 500).catch((error: { code: string }) => {
      codes.set(error.code, (codes.get(error.code) ?? 0) + 1);
    }),
  );
  expect(transport.bufferedBytes('b')).toBeLessThan(18 * MIB);
  await Promise.all(calls);
  expect([...codes.keys()].sort()).toEqual(['deadline_exceeded', 'overloaded']);
  expect(codes.get('overloaded')).toBeGreaterThan(30);
});

test('hazard 37: a 90 MiB backlog of the log does not delay heartbeats', async () => {
  const bell = new Bell();
  const rounds: number[] = [];
  const member = await bareMember(identityOf('b'), (lane, socket) => {
    if (lane === 'log') socket.pause();
    socket.on('message', (data) => {
      const frame = frameOf(data);
      if (frame.kind !== 'messages') return;
      for (const message of frame.messages) if (message.type === 'heartbeat') rounds.push(message.round);
      bell.ring();
    });
  });
  cleanUps.push(member.stop);
  const transport = await dialing({ b: member.address });
  const configuration = { voters: ['a', 'b'], outgoing: [], learners: [], learnersNext: [] };
  const snapshot = { meta: { index: 9, term: 1, configuration }, data: new Uint8Array(90 * MIB) };
  transport.send([{ type: 'snapshot', from: 'a', to: 'b', term: 1, snapshot }]);
  await turn();
  expect(transport.bufferedBytes('b')).toBeGreaterThan(80 * MIB);
  for (let round = 1; round <= 5; round += 1) {
    transport.send([heartbeat('b', round), append('b', round, MIB)]);
    await bell.until(() => rounds.length === round);
  }
  expect(rounds).toEqual([1, 2, 3, 4, 5]);
  // Appends behind the backlog were dropped, not queued.
  expect(transport.bufferedBytes('b')).toBeLessThan(91 * MIB);
});
