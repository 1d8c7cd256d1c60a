import { expect, test } from 'vitest';
import type { Message } from '../../raft/index.ts';
import { createSystemClock } from '../../src/clock.ts';
import { EvenkeelError } from '../../src/errors.ts';
import { SILENT_LOGGER } from '../../src/logger.ts';
import { createWebSocketNet } from '../../src/net-ws.ts';
import { createSystemRandom } from '../../src/random.ts';
import {
  LANES,
  decodePeerFrame,
  encodeMessages,
  encodePeerFrame,
  type Lane,
} from '../../src/wire/peer-codec.ts';
import { PeerTransport } from '../../src/wire/peer-transport.ts';
import { Bell } from '../support/bell.ts';
import { Dice } from '../support/dice.ts';
import { bareLane, greetedLane, identityOf } from '../support/peer-client.ts';
import { spoilBytes } from '../support/spoil.ts';

/**
 * Hazard 38 against live peer sockets. `EVENKEEL_FUZZ_FRAMES=100000 EVENKEEL_FUZZ_SEED=7 npx vitest run tests/fuzz`
 * is the long run; each failure names its seed.
 */
const FRAMES = Number(process.env.EVENKEEL_FUZZ_FRAMES ?? 3_000);
const SEED = Number(process.env.EVENKEEL_FUZZ_SEED ?? 1);
const SENDERS = 8;
/** Beyond what the run itself holds: far less than one lying length would take. */
const MAX_GROWTH_BYTES = 200 * 1024 * 1024;

const envelope = { from: 'b', to: 'a', term: 3 };
const configuration = { voters: ['a', 'b'], outgoing: [], learners: ['c'], learnersNext: [] };
const entry = (index: number) =>
  ({ index, term: 3, kind: 'command', data: new Uint8Array(40).fill(index) }) as const;
const MESSAGES: readonly Message[] = [
  {
    ...envelope,
    type: 'append',
    prevIndex: 4,
    prevTerm: 2,
    commit: 3,
    entries: [entry(5), entry(6), entry(7)],
  },
  { ...envelope, type: 'vote', lastIndex: 9, lastTerm: 2, transfer: false },
  { ...envelope, type: 'appendReply', success: false, index: 5, hintIndex: 3, hintTerm: 1, lost: false },
  { ...envelope, type: 'heartbeat', commit: 2 ** 40, round: 70_000 },
  { ...envelope, type: 'readIndexReply', token: 7, index: null },
  {
    ...envelope,
    type: 'snapshot',
    snapshot: { meta: { index: 5, term: 3, configuration }, data: new Uint8Array(100) },
  },
];

/** Right frames, from which wrong ones are made. */
function seedFrames(): Uint8Array[] {
  const header = {
    clusterId: 'test',
    from: 'b',
    to: 'a',
    fromDirectory: 'directory of b',
    toDirectory: 'directory of a',
    bootId: 'boot 1 of b',
  };
  return [
    ...encodeMessages(header, MESSAGES),
    ...MESSAGES.flatMap((message) => encodeMessages(header, [message])),
    ...LANES.map((lane) =>
      encodePeerFrame({ kind: 'hello', ...identityOf('b'), protocol: 1, to: 'a', lane }),
    ),
    encodePeerFrame({ kind: 'request', id: 1, method: 'echo', deadlineMs: 50, params: new Uint8Array(30) }),
    encodePeerFrame({ kind: 'answer', id: 1, result: new Uint8Array(30) }),
    encodePeerFrame({ kind: 'failure', id: 1, code: 'stale', message: 'm', data: '{}' }),
    Uint8Array.from([0x81, 0xa9, ...Buffer.from('__proto__'), 0x81, 0xa1, 0x78, 1]),
    new Uint8Array(20_000).fill(0x91),
    Uint8Array.of(0xdd, 0xff, 0xff, 0xff, 0xff),
    Uint8Array.of(0xc6, 0xff, 0xff, 0xff, 0xff),
  ];
}

test(`hazard 38: ${FRAMES} frames to live peer sockets, seed ${SEED}`, { timeout: 900_000 }, async () => {
  const delivered: Message[] = [];
  const bell = new Bell();
  const transport = new PeerTransport({
    net: createWebSocketNet(),
    clock: createSystemClock(),
    random: createSystemRandom(),
    logger: SILENT_LOGGER,
    self: identityOf('a'),
    listen: '127.0.0.1:0',
    // Nobody listens there: what is tried here is what comes in.
    peers: new Map([
      ['b', '127.0.0.1:1'],
      ['c', '127.0.0.1:1'],
    ]),
  });
  transport.bind({
    onMessages: (messages) => {
      delivered.push(...messages.filter((message) => message.from === 'c'));
      bell.ring();
    },
    onPeerUp() {},
    onPeerDown() {},
  });
  transport.serve('echo', (params) => Promise.resolve(params));
  await transport.start();
  const { address } = transport;
  const honest = await greetedLane(address, identityOf('c'), 'a', 'control');
  const before = process.memoryUsage();
  let sent = 0;
  let drops = 0;

  async function sender(seed: number): Promise<void> {
    const dice = new Dice(seed);
    const frames = seedFrames();
    while (sent < FRAMES) {
      const lane: Lane = dice.pick(LANES);
      const greet = dice.below(10) > 0;
      // Another sender may take the lane's place while this one says hello.
      const socket = await (
        greet ? greetedLane(address, identityOf('b'), 'a', lane) : bareLane(address, lane)
      ).catch(() => null);
      if (socket === null) continue;
      const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
      for (let burst = 0; burst < 20 && socket.readyState === socket.OPEN && sent < FRAMES; burst += 1) {
        sent += 1;
        const frame = spoilBytes(dice, dice.pick(frames));
        socket.send(dice.below(50) === 0 ? Buffer.from(frame).toString('latin1') : frame);
        await new Promise((resolve) => setImmediate(resolve));
      }
      if (socket.readyState !== socket.OPEN) drops += 1;
      socket.terminate();
      await closed;
    }
  }

  await Promise.all(Array.from({ length: SENDERS }, (_, at) => sender(SEED * 1_000 + at)));
  const { rss, heapUsed } = process.memoryUsage();
  expect(sent).toBeGreaterThanOrEqual(FRAMES);
  expect(drops).toBeGreaterThan(FRAMES / 200);
  expect(heapUsed - before.heapUsed).toBeLessThan(MAX_GROWTH_BYTES);
  expect(rss - before.rss).toBeLessThan(MAX_GROWTH_BYTES);
  expect(({} as Record<string, unknown>).x).toBeUndefined();
  // Who behaved was not disturbed.
  const header = {
    clusterId: 'test',
    from: 'c',
    to: 'a',
    fromDirectory: 'directory of c',
    toDirectory: 'directory of a',
    bootId: 'boot 1 of c',
  };
  const message: Message = { type: 'heartbeat', from: 'c', to: 'a', term: 1, commit: 0, round: 1 };
  for (const frame of encodeMessages(header, [message])) honest.send(frame);
  await bell.until(() => delivered.length > 0);
  expect(delivered).toEqual([message]);
  honest.terminate();
  await transport.stop();
});

test(`hazard 38: ${FRAMES * 20} frames to the codec, seed ${SEED}`, { timeout: 900_000 }, () => {
  const dice = new Dice(SEED);
  const frames = seedFrames();
  let taken = 0;
  for (let left = FRAMES * 20; left > 0; left -= 1) {
    const frame = spoilBytes(dice, dice.pick(frames));
    try {
      decodePeerFrame(frame);
      taken += 1;
    } catch (error) {
      if (!(error instanceof EvenkeelError) || error.code !== 'protocol_error') throw error;
    }
  }
  // Some spoiling lands in data and spoils nothing.
  expect(taken).toBeGreaterThan(0);
  expect(taken).toBeLessThan(FRAMES * 10);
});
