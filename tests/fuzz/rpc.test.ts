import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { Dice } from '../support/dice.ts';
import { FuzzNode } from '../support/fuzz-node.ts';
import { FuzzSocket } from '../support/fuzz-socket.ts';
import { spoilBytes, spoilJson } from '../support/spoil.ts';

/**
 * Hazard 38 against JSON-RPC over WebSocket, `POST /rpc` and HTTP that is none. The long run is
 * `EVENKEEL_FUZZ_FRAMES=100000 EVENKEEL_FUZZ_SEED=7 npx vitest run --project unit tests/fuzz`.
 */
const FRAMES = Number(process.env.EVENKEEL_FUZZ_FRAMES ?? 3_000);
const SEED = Number(process.env.EVENKEEL_FUZZ_SEED ?? 1);
const SENDERS = 6;
/** A deadline that is spoilt may be the longest there is: nobody waits for it. */
const POST_BOUND_MS = 5_000;

const call = (method: string, params: Readonly<Record<string, unknown>>) =>
  ({ jsonrpc: '2.0', id: 1, method, params: { deadlineMs: 500, ...params } }) as const;

const CALLS = [
  call('cluster.status', { consistency: 'local' }),
  call('resource.create', { kind: 'stream', name: 's', shards: 2, labels: { a: '1' }, zonePolicy: 'zone' }),
  call('resource.alter', {
    name: 's',
    expectedRevision: 3,
    shards: 3,
    labels: { a: null },
    requestId: '1:1',
  }),
  call('resource.show', { kind: 'stream', name: 's' }),
  call('resource.delete', { name: 's' }),
  call('broker.drain', { id: 'b1' }),
  call('shard.list', { resource: 's' }),
  call('shard.explain', { shard: 'stream:s/0' }),
  call('move.start', { shard: 's/0', role: 'leader', to: 'b2', expectedGeneration: 4 }),
  call('placement.policy.set', { patch: { maxConcurrentMoves: 2, settleMs: 5 } }),
  call('session.open', {}),
  call('import.begin', { overwrite: true }),
  call('import.part', { importId: 'i', part: 1, brokers: [{ id: 'b1' }], resources: [], assignments: [] }),
  call('import.commit', { importId: 'i', parts: 1, overwrite: false, policy: { paused: true } }),
  call('watch', { fromRevision: 1 }),
] as const;

function textOf(dice: Dice): string {
  const one = dice.below(8) === 0 ? JSON.stringify(dice.pick(CALLS)) : spoilJson(dice, dice.pick(CALLS));
  const text = dice.below(10) === 0 ? `[${one},${spoilJson(dice, dice.pick(CALLS))}]` : one;
  if (dice.below(4) > 0) return text;
  return Buffer.from(spoilBytes(dice, Buffer.from(text.slice(0, 2_000)))).toString('utf8');
}

/** HTTP as nobody should write it; the connection is dropped half-way. */
const HTTP_LIES = [
  'POST /rpc HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\ncontent-length: 99999999999999\r\n\r\n{"a"',
  'POST /rpc HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\ncontent-length: -1\r\n\r\n{}',
  'POST /rpc HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffff\r\n{',
  'GET /v1/%ff%00 HTTP/1.1\r\nhost: h\r\n\r\n',
  'GET /v1/__proto__/constructor HTTP/1.1\r\nhost: h\r\n\r\n',
  'PATCH /v1/resources/stream/__proto__ HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}',
  `GET /${'x'.repeat(60_000)} HTTP/1.1\r\nhost: h\r\n\r\n`,
  'GET /rpc HTTP/1.1\r\nhost: h\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-key: x\r\n\r\n',
  'GET //// HTTP/1.1\r\nhost: [\r\norigin: null\r\n\r\n',
] as const;

/** Resolves once the node has answered anything or dropped the connection, or the bytes are out. */
function raw(address: string, bytes: string): Promise<void> {
  const [host, port] = address.split(':');
  return new Promise((resolve) => {
    const socket = connect(Number(port), host);
    socket.on('error', () => undefined);
    socket.once('close', () => resolve());
    socket.once('data', () => socket.destroy());
    socket.write(bytes, () => setImmediate(() => socket.destroy()));
  });
}

test(
  `hazard 38: ${FRAMES} messages to live RPC sockets and POST /rpc, seed ${SEED}`,
  { timeout: 900_000 },
  async () => {
    const node = await FuzzNode.start();
    const url = `ws://${node.address}/rpc`;
    const bad: string[] = [];
    const read = (frame: Buffer): unknown => JSON.parse(frame.toString('utf8'));
    const honest = await FuzzSocket.open(url, undefined, bad, read);
    let sent = 0;
    let answers = 0;

    async function overSocket(dice: Dice): Promise<void> {
      const socket = await FuzzSocket.open(url, undefined, bad, read);
      for (let burst = 0; burst < 30 && socket.open && sent < FRAMES; burst += 1) {
        sent += 1;
        const text = textOf(dice);
        socket.send(dice.below(100) === 0 ? Buffer.from(text) : text);
        await new Promise((resolve) => setImmediate(resolve));
      }
      answers += socket.answers;
      await socket.end();
    }

    async function overPost(dice: Dice): Promise<void> {
      sent += 1;
      const type = dice.below(20) === 0 ? 'text/plain' : 'application/json';
      const request = { method: 'POST', headers: { 'content-type': type }, body: textOf(dice) };
      const signal = AbortSignal.timeout(POST_BOUND_MS);
      const response = await fetch(`http://${node.address}/rpc`, { ...request, signal });
      const text = await response.text();
      answers += 1;
      if (response.status >= 500 || text.includes('"code":"internal"'))
        bad.push(`${response.status} ${text.slice(0, 500)}`);
    }

    async function sender(seed: number): Promise<void> {
      const dice = new Dice(seed);
      while (sent < FRAMES) {
        const kind = dice.below(12);
        if (kind === 0) await raw(node.address, dice.pick(HTTP_LIES)).then(() => (sent += 1));
        else if (kind < 5) await overPost(dice);
        else await overSocket(dice);
      }
    }

    await Promise.all(Array.from({ length: SENDERS }, (_, at) => sender(SEED * 1_000 + at)));
    expect(node.damage()).toEqual([]);
    expect(bad).toEqual([]);
    expect(sent).toBeGreaterThanOrEqual(FRAMES);
    expect(answers).toBeGreaterThan(FRAMES / 50);
    // Who behaved was not disturbed.
    honest.send(JSON.stringify(call('cluster.status', {})));
    await honest.heard();
    expect(honest.open).toBe(true);
    await honest.end();
    await node.stop();
  },
);
