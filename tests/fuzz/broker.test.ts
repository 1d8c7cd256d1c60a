import { expect, test } from 'vitest';
import {
  brokerCodec,
  BROKER_PATH,
  JSON_SUBPROTOCOL,
  MSGPACK_SUBPROTOCOL,
} from '../../src/broker-protocol.ts';
import { Dice } from '../support/dice.ts';
import { FuzzNode } from '../support/fuzz-node.ts';
import { FuzzSocket } from '../support/fuzz-socket.ts';
import { spoilBytes, spoilJson } from '../support/spoil.ts';

/**
 * Hazard 38 against `/broker` in both encodings. The long run is
 * `EVENKEEL_FUZZ_FRAMES=100000 EVENKEEL_FUZZ_SEED=7 npx vitest run --project unit tests/fuzz`.
 */
const FRAMES = Number(process.env.EVENKEEL_FUZZ_FRAMES ?? 3_000);
const SEED = Number(process.env.EVENKEEL_FUZZ_SEED ?? 1);
const SENDERS = 6;

const shard = 'stream:s/0';
const REQUESTS = [
  {
    id: 1,
    type: 'register',
    clusterId: 'test',
    broker: {
      id: 'b1',
      zone: 'a',
      addresses: { data: 'h:1' },
      maxShards: 9,
      weight: 2,
      labels: { a: '1' },
      storeId: 'x',
      starts: 2,
    },
  },
  { id: 2, type: 'heartbeat', incarnation: 1 },
  { id: 3, type: 'watch', fromRevision: 1, filter: { broker: 'b1' } },
  {
    id: 4,
    type: 'report',
    incarnation: 1,
    shards: [
      { shard, generation: 1, inSync: ['b1', 'b2'], leaderOffset: 7, followers: { b2: 7 }, drained: true },
    ],
  },
  { id: 5, type: 'confirm', incarnation: 1, shards: [{ shard, generation: 1 }] },
  { id: 6, type: 'resolve', resource: 'stream:s', key: 'k', consistency: 'linearizable' },
  { id: 7, type: 'leave', incarnation: 1, drain: true },
  { id: 8, type: 'unwatch', watchId: 1 },
] as const;

const LIES = [
  Uint8Array.of(0xdd, 0xff, 0xff, 0xff, 0xff),
  Uint8Array.of(0xdf, 0xff, 0xff, 0xff, 0xff),
  Uint8Array.of(0xc6, 0xff, 0xff, 0xff, 0xff),
  new Uint8Array(20_000).fill(0x91),
  Uint8Array.from({ length: 40_000 }, (_, at) => [0x81, 0xa0][at % 2] as number),
  // A million lists, each of which claims all that is left.
  Uint8Array.from({ length: 1_000_000 }, (_, at) => [0xdd, 0, 0x01, 0, 0][at % 5] as number),
  Uint8Array.from([0x81, 0xa9, ...Buffer.from('__proto__'), 0x81, 0xa8, ...Buffer.from('polluted'), 1]),
  Uint8Array.of(0xd4, 0x72, 0x40, 0x91, 0xa1, 0x61, 1),
];

function frameOf(dice: Dice, subprotocol: string): string | Uint8Array {
  const request = dice.pick(REQUESTS);
  if (subprotocol === JSON_SUBPROTOCOL) {
    const text = dice.below(8) === 0 ? JSON.stringify(request) : spoilJson(dice, request);
    return dice.below(4) === 0
      ? Buffer.from(spoilBytes(dice, Buffer.from(text.slice(0, 2_000)))).toString('utf8')
      : text;
  }
  if (dice.below(20) === 0) return dice.pick(LIES);
  const packed = brokerCodec(subprotocol).encode(request) as Uint8Array;
  // Not every frame is spoilt: a lie is worth most where a registered broker tells it.
  return dice.below(8) === 0 ? packed : spoilBytes(dice, packed);
}

test(`hazard 38: ${FRAMES} frames to live broker sockets, seed ${SEED}`, { timeout: 900_000 }, async () => {
  const node = await FuzzNode.start();
  const url = `ws://${node.address}${BROKER_PATH}`;
  const bad: string[] = [];
  const reader = (subprotocol: string) => (frame: Buffer, isBinary: boolean) =>
    brokerCodec(subprotocol).decode(isBinary ? frame : frame.toString('utf8'));
  const honest = await FuzzSocket.open(url, JSON_SUBPROTOCOL, bad, reader(JSON_SUBPROTOCOL));
  let sent = 0;
  let answers = 0;
  let drops = 0;

  async function sender(seed: number): Promise<void> {
    const dice = new Dice(seed);
    while (sent < FRAMES) {
      const subprotocol = dice.pick([JSON_SUBPROTOCOL, MSGPACK_SUBPROTOCOL]);
      const socket = await FuzzSocket.open(url, subprotocol, bad, reader(subprotocol));
      if (dice.below(3) > 0) socket.send(brokerCodec(subprotocol).encode(REQUESTS[0]));
      for (let burst = 0; burst < 20 && socket.open && sent < FRAMES; burst += 1) {
        sent += 1;
        const frame = frameOf(dice, subprotocol);
        // Now and then of the wrong kind: text where bytes are due, bytes where text is.
        const swap = dice.below(100) === 0;
        if (!swap) socket.send(frame);
        else
          socket.send(typeof frame === 'string' ? Buffer.from(frame) : Buffer.from(frame).toString('latin1'));
        await new Promise((resolve) => setImmediate(resolve));
      }
      answers += socket.answers;
      if (!socket.open) drops += 1;
      await socket.end();
    }
  }

  await Promise.all(Array.from({ length: SENDERS }, (_, at) => sender(SEED * 1_000 + at)));
  expect(node.damage()).toEqual([]);
  expect(bad).toEqual([]);
  expect(sent).toBeGreaterThanOrEqual(FRAMES);
  expect(drops).toBeGreaterThan(FRAMES / 200);
  expect(answers).toBeGreaterThan(FRAMES / 200);
  // Who behaved was not disturbed.
  honest.send('{"id": 1, "type": "resolve", "resource": "none", "shard": 0, "consistency": "linearizable"}');
  await honest.heard();
  expect(honest.answers).toBe(1);
  expect(honest.open).toBe(true);
  await honest.end();
  await node.stop();
});
