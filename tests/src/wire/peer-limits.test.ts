import { afterEach, expect, test } from 'vitest';
import type { Message } from '../../../raft/index.ts';
import { createSystemClock } from '../../../src/clock.ts';
import { SILENT_LOGGER } from '../../../src/logger.ts';
import { createWebSocketNet } from '../../../src/net-ws.ts';
import { createSystemRandom } from '../../../src/random.ts';
import { HELLO_TIMEOUT_MS, MAX_RUNNING_REQUESTS, MAX_UNGREETED } from '../../../src/wire/peer-acceptor.ts';
import {
  MAX_CALL_BYTES,
  decodePeerFrame,
  encodeMessages,
  encodePeerFrame,
} from '../../../src/wire/peer-codec.ts';
import { MAX_ENTRIES_PER_APPEND, MAX_ENTRY_BYTES, MAX_MEMBERS } from '../../../src/wire/peer-messages.ts';
import { PeerTransport } from '../../../src/wire/peer-transport.ts';
import { Bell } from '../../support/bell.ts';
import { bareLane, frameOf, greetedLane, identityOf } from '../../support/peer-client.ts';

const clock = createSystemClock();
let transport: PeerTransport | null = null;
afterEach(() => transport?.stop());

/** Time-outs of hellos, which the test lets pass when it likes. */
const helloTimeouts: (() => void)[] = [];

/** Member a, which knows of a b that is dialed in vain. */
async function listening(): Promise<PeerTransport> {
  transport = new PeerTransport({
    net: createWebSocketNet(),
    clock: {
      ...clock,
      setTimeout: (callback, delayMs) => {
        if (delayMs < HELLO_TIMEOUT_MS) return clock.setTimeout(callback, delayMs);
        helloTimeouts.push(callback);
        return {};
      },
    },
    random: createSystemRandom(),
    logger: SILENT_LOGGER,
    self: identityOf('a'),
    listen: '127.0.0.1:0',
    peers: new Map([['b', '127.0.0.1:1']]),
  });
  await transport.start();
  return transport;
}

const codeOf = (socket: { once(event: 'close', listener: (code: number) => void): unknown }) =>
  new Promise<number>((resolve) => socket.once('close', resolve));

test('connections without a hello are bounded in number and in time', async () => {
  const { address } = await listening();
  const sockets = await Promise.all(
    Array.from({ length: MAX_UNGREETED }, () => bareLane(address, 'control')),
  );
  const kept = sockets.map(codeOf);
  expect(await codeOf(await bareLane(address, 'log'))).toBe(1013);
  for (const pass of helloTimeouts.splice(0)) pass();
  expect(new Set(await Promise.all(kept))).toEqual(new Set([4002]));
  const late = await greetedLane(address, identityOf('b'), 'a', 'control');
  late.terminate();
});

test('a newer connection of the same member and lane takes the place of the older one', async () => {
  const { address } = await listening();
  const first = await greetedLane(address, identityOf('b'), 'a', 'control');
  const other = await greetedLane(address, identityOf('b'), 'a', 'log');
  const replaced = codeOf(first);
  const second = await greetedLane(address, identityOf('b'), 'a', 'control');
  expect(await replaced).toBe(4003);
  expect([other.readyState, second.readyState]).toEqual([other.OPEN, second.OPEN]);
  for (const socket of [other, second]) socket.terminate();
});

test('requests of one peer that run at once are bounded', async () => {
  const member = await listening();
  const release: (() => void)[] = [];
  member.serve('hold', () => new Promise((resolve) => release.push(() => resolve(new Uint8Array()))));
  const socket = await greetedLane(member.address, identityOf('b'), 'a', 'calls');
  const bell = new Bell();
  const answers: string[] = [];
  socket.on('message', (data) => {
    const frame = frameOf(data);
    answers.push(frame.kind === 'failure' ? `${frame.id} ${frame.code}` : frame.kind);
    bell.ring();
  });
  const request = (id: number) =>
    socket.send(
      encodePeerFrame({ kind: 'request', id, method: 'hold', deadlineMs: 1, params: new Uint8Array() }),
    );
  for (let id = 1; id <= MAX_RUNNING_REQUESTS + 1; id += 1) request(id);
  await bell.until(() => answers.length === 1);
  expect(answers).toEqual([`${MAX_RUNNING_REQUESTS + 1} overloaded`]);
  for (const each of release.splice(0)) each();
  await bell.until(() => answers.length === MAX_RUNNING_REQUESTS + 1);
  socket.terminate();
});

test('an answer above the limit is refused by name, not sent', async () => {
  const member = await listening();
  member.serve('large', () => Promise.resolve(new Uint8Array(MAX_CALL_BYTES + 1)));
  const socket = await greetedLane(member.address, identityOf('b'), 'a', 'calls');
  const answer = new Promise((resolve) => socket.once('message', resolve));
  socket.send(
    encodePeerFrame({ kind: 'request', id: 1, method: 'large', deadlineMs: 1, params: new Uint8Array() }),
  );
  expect(frameOf(await answer)).toMatchObject({ kind: 'failure', id: 1, code: 'limit_exceeded' });
  socket.terminate();
});

test('frames on the wrong lane end it, those of an older start or directory are dropped', async () => {
  const member = await listening();
  const received: Message[] = [];
  const bell = new Bell();
  member.bind({
    onMessages: (messages) => {
      received.push(...messages);
      bell.ring();
    },
    onPeerUp() {},
    onPeerDown() {},
  });
  const header = {
    clusterId: 'test',
    from: 'b',
    to: 'a',
    fromDirectory: 'directory of b',
    toDirectory: 'directory of a',
    bootId: 'boot 1 of b',
  };
  const beat = (round: number): Message => ({ type: 'heartbeatReply', from: 'b', to: 'a', term: 1, round });
  const socket = await greetedLane(member.address, identityOf('b'), 'a', 'control');
  let round = 0;
  for (const key of ['clusterId', 'fromDirectory', 'toDirectory', 'bootId', 'to'] as const) {
    for (const frame of encodeMessages({ ...header, [key]: 'another' }, [beat((round += 1))]))
      socket.send(frame);
  }
  for (const frame of encodeMessages(header, [beat(99)])) socket.send(frame);
  await bell.until(() => received.length > 0);
  expect(received).toEqual([beat(99)]);
  const closed = codeOf(socket);
  socket.send(
    encodePeerFrame({ kind: 'request', id: 1, method: 'x', deadlineMs: 1, params: new Uint8Array() }),
  );
  expect(await closed).toBe(4002);
});

test('entries, their number and configurations are bounded', () => {
  const header = { clusterId: 't', from: 'b', to: 'a', fromDirectory: 'd', toDirectory: 'd', bootId: 'x' };
  const decoded = (message: Message) => () => encodeMessages(header, [message]).map(decodePeerFrame);
  const append = (count: number, bytes: number): Message => ({
    type: 'append',
    from: 'b',
    to: 'a',
    term: 1,
    prevIndex: 0,
    prevTerm: 0,
    commit: 0,
    entries: Array.from({ length: count }, (_, at) => ({
      index: at + 1,
      term: 1,
      kind: 'command',
      data: new Uint8Array(bytes),
    })),
  });
  const snapshot = (count: number): Message => {
    const voters = Array.from({ length: count }, (_, at) => `n${at}`);
    const meta = {
      index: 1,
      term: 1,
      configuration: { voters, outgoing: [], learners: [], learnersNext: [] },
    };
    return { type: 'snapshot', from: 'b', to: 'a', term: 1, snapshot: { meta, data: new Uint8Array() } };
  };
  const refused = expect.objectContaining({ code: 'protocol_error' });
  expect(decoded(append(1, MAX_ENTRY_BYTES))).not.toThrow();
  expect(decoded(append(1, MAX_ENTRY_BYTES + 1))).toThrow(refused);
  expect(decoded(append(MAX_ENTRIES_PER_APPEND, 0))).not.toThrow();
  expect(decoded(append(MAX_ENTRIES_PER_APPEND + 1, 0))).toThrow(refused);
  expect(decoded(snapshot(MAX_MEMBERS))).not.toThrow();
  expect(decoded(snapshot(MAX_MEMBERS + 1))).toThrow(refused);
});
