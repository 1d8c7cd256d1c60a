import { afterEach, expect, test } from 'vitest';
import type { Message } from '../../../raft/index.ts';
import { createSystemClock } from '../../../src/clock.ts';
import { EvenkeelError } from '../../../src/errors.ts';
import { SILENT_LOGGER, type Logger } from '../../../src/logger.ts';
import { createWebSocketNet } from '../../../src/net-ws.ts';
import { createSystemRandom } from '../../../src/random.ts';
import { MAX_PENDING_CALLS } from '../../../src/wire/peer-calls.ts';
import { PeerTransport } from '../../../src/wire/peer-transport.ts';
import { Bell } from '../../support/bell.ts';

/** A promise that stays open. */
const NEVER = new Promise<never>(() => {});
const net = createWebSocketNet();
const clock = createSystemClock();
const random = createSystemRandom();
const running: PeerTransport[] = [];

afterEach(async () => {
  await Promise.all(running.splice(0).map((transport) => transport.stop()));
});

interface Options {
  readonly listen?: string;
  readonly clusterId?: string;
  readonly boot?: number;
  readonly directoryId?: string;
  readonly logger?: Logger;
}

/** A member that writes down what its transport tells it. */
class Member {
  readonly transport: PeerTransport;
  readonly told: string[] = [];
  readonly received: Message[] = [];
  readonly #bell = new Bell();

  constructor(id: string, peers: Record<string, string>, options: Options = {}) {
    const boot = options.boot ?? 1;
    this.transport = new PeerTransport({
      net,
      clock,
      random,
      logger: options.logger ?? SILENT_LOGGER,
      self: {
        clusterId: options.clusterId ?? 'test',
        memberId: id,
        directoryId: options.directoryId ?? `directory of ${id}`,
        bootId: `boot ${boot} of ${id}`,
        bootCount: boot,
      },
      listen: options.listen ?? '127.0.0.1:0',
      peers: new Map(Object.entries(peers)),
    });
    running.push(this.transport);
    this.transport.bind({
      onMessages: (messages) => this.#note(() => this.received.push(...messages)),
      onPeerUp: (peer, bootId) => this.#note(() => this.told.push(`up ${peer} ${bootId}`)),
      onPeerDown: (peer) => this.#note(() => this.told.push(`down ${peer}`)),
    });
  }

  until(holds: () => boolean): Promise<void> {
    return this.#bell.until(holds);
  }

  #note(work: () => void): void {
    work();
    this.#bell.ring();
  }
}

/** Two members that are connected both ways. */
async function pair(options: Options = {}): Promise<[Member, Member]> {
  const b = new Member('b', { a: '127.0.0.1:1' });
  await b.transport.start();
  const a = new Member('a', { b: b.transport.address }, options);
  await a.transport.start();
  b.transport.setPeers(new Map([['a', a.transport.address]]));
  await Promise.all([a.until(() => a.told.length === 1), b.until(() => b.told.length === 1)]);
  return [a, b];
}

const heartbeat = (round: number): Message => ({
  type: 'heartbeat',
  from: 'a',
  to: 'b',
  term: 1,
  commit: 0,
  round,
});

test('peers are told of each other and messages of every lane arrive in order', async () => {
  const [a, b] = await pair();
  expect(a.told).toEqual(['up b boot 1 of b']);
  expect(b.told).toEqual(['up a boot 1 of a']);
  expect([a.transport.isConnected('b'), a.transport.isConnected('c')]).toEqual([true, false]);
  const data = Uint8Array.from({ length: 300 }, (_, at) => at % 256);
  const append: Message = {
    type: 'append',
    from: 'a',
    to: 'b',
    term: 2,
    prevIndex: 6,
    prevTerm: 1,
    commit: 5,
    entries: [
      { index: 7, term: 1, kind: 'noop', data: new Uint8Array(0) },
      { index: 8, term: 2, kind: 'command', data },
    ],
  };
  const sent = Array.from({ length: 10_000 }, (_, round) => heartbeat(round));
  a.transport.send([append]);
  a.transport.send(sent);
  await b.until(() => b.received.length === sent.length + 1);
  expect(b.received.filter((message) => message.type === 'append')).toEqual([append]);
  expect(b.received.filter((message) => message.type === 'heartbeat')).toEqual(sent);
});

test('a whole snapshot passes, and heartbeats sent after it do not wait for it', async () => {
  const [a, b] = await pair();
  const data = new Uint8Array(24 * 1024 * 1024).fill(7);
  const configuration = { voters: ['a', 'b'], outgoing: [], learners: [], learnersNext: [] };
  const snapshot = { meta: { index: 9, term: 1, configuration }, data };
  a.transport.send([{ type: 'snapshot', from: 'a', to: 'b', term: 1, snapshot }, heartbeat(1)]);
  await b.until(() => b.received.length === 2);
  expect(b.received.map((message) => message.type)).toEqual(['heartbeat', 'snapshot']);
  const arrived = b.received[1];
  expect(arrived?.type === 'snapshot' && Buffer.compare(arrived.snapshot.data, data) === 0).toBe(true);
});

test('a peer that stops is told down after one failed reconnect, and up again under its new boot id', async () => {
  const [a, b] = await pair();
  const { address } = b.transport;
  await b.transport.stop();
  await a.until(() => a.told.length === 2);
  expect(a.told[1]).toBe('down b');
  expect(a.transport.isConnected('b')).toBe(false);
  const again = new Member('b', { a: a.transport.address }, { listen: address, boot: 2 });
  await again.transport.start();
  await a.until(() => a.told.length === 3);
  expect(a.told[2]).toBe('up b boot 2 of b');
});

test('a broken connection that comes back at once is no loss', async () => {
  const [a, b] = await pair();
  // The same member again: its hello takes the place of the older connections.
  b.transport.setPeers(new Map());
  await a.until(() => a.told.includes('down b'));
  b.transport.setPeers(new Map([['a', a.transport.address]]));
  await a.until(() => a.told.length === 3);
  expect(a.told).toEqual(['up b boot 1 of b', 'down b', 'up b boot 1 of b']);
});

test('calls are answered, errors keep their code and data', async () => {
  const [a, b] = await pair();
  b.transport.serve('echo', (params, { from }) =>
    Promise.resolve(Buffer.concat([Buffer.from(from), params])),
  );
  b.transport.serve('refuse', () => Promise.reject(new EvenkeelError('stale', 'too old', { generation: 4 })));
  b.transport.serve('break', () => Promise.reject(new TypeError('a bug')));
  const answer = await a.transport.call('b', 'echo', Buffer.from('!'), 5_000);
  expect(Buffer.from(answer).toString()).toBe('a!');
  const none = new Uint8Array();
  await expect(a.transport.call('b', 'refuse', none, 5_000)).rejects.toMatchObject({
    code: 'stale',
    message: 'too old',
    data: { generation: 4 },
  });
  await expect(a.transport.call('b', 'break', none, 5_000)).rejects.toMatchObject({ code: 'internal' });
  await expect(a.transport.call('b', 'nothing', none, 5_000)).rejects.toMatchObject({
    code: 'unknown_method',
  });
  await expect(a.transport.call('c', 'echo', none, 5_000)).rejects.toMatchObject({ code: 'unavailable' });
  await expect(a.transport.call('b', 'echo', new Uint8Array(9 << 20), 5_000)).rejects.toMatchObject({
    code: 'limit_exceeded',
  });
});

test('a call ends with its deadline or with the connection, its outcome unknown', async () => {
  const [a, b] = await pair();
  let called = 0;
  const bell = new Bell();
  b.transport.serve('never', () => {
    called += 1;
    bell.ring();
    return NEVER;
  });
  await expect(a.transport.call('b', 'never', new Uint8Array(), 20)).rejects.toMatchObject({
    code: 'deadline_exceeded',
    data: { outcome: 'unknown' },
  });
  const lost = a.transport.call('b', 'never', new Uint8Array(), 60_000);
  const outcome = expect(lost).rejects.toMatchObject({ code: 'outcome_unknown' });
  await bell.until(() => called === 2);
  await b.transport.stop();
  await outcome;
  await a.until(() => a.told.includes('down b'));
  await expect(a.transport.call('b', 'never', new Uint8Array(), 1_000)).rejects.toMatchObject({
    code: 'unavailable',
  });
});

test('calls above the limit are refused as overloaded', async () => {
  const [a, b] = await pair();
  const release: (() => void)[] = [];
  b.transport.serve('hold', () => new Promise((resolve) => release.push(() => resolve(new Uint8Array()))));
  const calls = Array.from({ length: MAX_PENDING_CALLS }, () =>
    a.transport.call('b', 'hold', new Uint8Array(), 30_000),
  );
  await expect(a.transport.call('b', 'hold', new Uint8Array(), 30_000)).rejects.toMatchObject({
    code: 'overloaded',
  });
  while (release.length < calls.length) await new Promise((resolve) => setImmediate(resolve));
  for (const each of release) each();
  await Promise.all(calls);
});

test.each([
  ['another cluster', 'a', { clusterId: 'other' }, /b is of cluster test|a is of cluster other/],
  ['a member nobody knows', 'x', {}, /x is no member this node knows of/],
  ['the wrong member behind an address', 'a', {}, /this is member b, not c/],
])('%s is refused on both sides, and said so', async (_, id, options, reason) => {
  const complaints: string[] = [];
  const bell = new Bell();
  const logger: Logger = {
    ...SILENT_LOGGER,
    warn: (fields) => {
      complaints.push('reason' in fields ? String(fields.reason) : '');
      bell.ring();
    },
  };
  const b = new Member('b', { a: '127.0.0.1:1' });
  await b.transport.start();
  const intruder = new Member(id, { c: b.transport.address, b: b.transport.address }, { ...options, logger });
  await intruder.transport.start();
  await bell.until(() => complaints.some((complaint) => reason.test(complaint)));
  expect(intruder.told).toEqual([]);
  expect(b.told).toEqual([]);
});

test('a second node that goes by the name of a connected one is refused and disturbs nothing', async () => {
  const [a, b] = await pair();
  const complaint = new Promise<string>((resolve) => {
    const logger: Logger = {
      ...SILENT_LOGGER,
      warn: (fields) => resolve('reason' in fields ? String(fields.reason) : ''),
    };
    const options = { logger, directoryId: 'another', boot: 7 };
    void new Member('b', { a: a.transport.address }, options).transport.start();
  });
  expect(await complaint).toMatch(/b is connected with another data directory/);
  expect(a.told).toEqual(['up b boot 1 of b']);
  a.transport.send([heartbeat(1)]);
  await b.until(() => b.received.length === 1);
});

test('once the directories are known, a member with another one is let go and not let in again', async () => {
  const [a, b] = await pair();
  a.transport.setDirectories(new Map([['b', 'directory of b']]));
  expect(a.transport.isConnected('b')).toBe(true);
  a.transport.setDirectories(new Map([['b', 'the one it lost']]));
  await Promise.all([a.until(() => a.told.includes('down b')), b.until(() => b.told.includes('down a'))]);
  expect([a.transport.isConnected('b'), b.transport.isConnected('a')]).toEqual([false, false]);
  a.transport.setDirectories(new Map([['b', 'directory of b']]));
  await Promise.all([a.until(() => a.told.length === 3), b.until(() => b.told.length === 3)]);
});

test('a busy port is address_in_use', async () => {
  const b = new Member('b', {});
  await b.transport.start();
  const second = new Member('a', {}, { listen: b.transport.address });
  await expect(second.transport.start()).rejects.toMatchObject({ code: 'address_in_use' });
});

test('a handler bound after the start is told of the peers that are there', async () => {
  const b = new Member('b', { a: '127.0.0.1:1' });
  await b.transport.start();
  const transport = new PeerTransport({
    net,
    clock,
    random,
    logger: SILENT_LOGGER,
    self: { clusterId: 'test', memberId: 'a', directoryId: 'd', bootId: 'x', bootCount: 1 },
    listen: '127.0.0.1:0',
    peers: new Map([['b', b.transport.address]]),
  });
  running.push(transport);
  await transport.start();
  while (!transport.isConnected('b')) await new Promise((resolve) => setImmediate(resolve));
  const up = new Promise<string>((resolve) => {
    transport.bind({ onMessages() {}, onPeerDown() {}, onPeerUp: resolve });
  });
  expect(await up).toBe('b');
});
