import { createConnection, createServer } from 'node:net';
import { afterEach, expect, test, vi } from 'vitest';
import { WebSocket } from 'ws';
import { createWebSocketNet } from '../../src/net-ws.ts';
import type { Connection, Listener, ListenOptions } from '../../src/net.ts';

/** A client that does no more than this. */
const UPGRADE =
  'GET /echo HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n' +
  'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: v1\r\n\r\n';

const net = createWebSocketNet();
const listeners: Listener[] = [];
afterEach(async () => {
  vi.useRealTimers();
  await Promise.all(listeners.splice(0).map((listener) => listener.close()));
});

async function listen(options: Partial<ListenOptions> & { onConnection?: (connection: Connection) => void }) {
  const route = {
    subprotocols: ['v1'],
    maxPayloadBytes: 1_000,
    onConnection: options.onConnection ?? (() => {}),
  };
  const listener = await net.listen('127.0.0.1:0', { routes: { '/echo': route }, ...options });
  listeners.push(listener);
  return listener.address;
}

const dial = (address: string, change: object = {}) =>
  net.connect(address, {
    path: '/echo',
    subprotocol: 'v1',
    maxPayloadBytes: 1_000,
    timeoutMs: 2_000,
    ...change,
  });

const closed = (connection: Connection) =>
  new Promise<[number, string]>((resolve) => (connection.onClose = (...told) => resolve(told)));

const echo = (connection: Connection) => {
  connection.onMessage = (data) => connection.send(data);
};

test('text and bytes pass whole, and what is received is its own', async () => {
  const address = await listen({ onConnection: echo });
  const connection = await dial(address);
  expect(connection.subprotocol).toBe('v1');
  const received: (string | Uint8Array)[] = [];
  const all = new Promise<void>((resolve) => {
    connection.onMessage = (data) => {
      received.push(data);
      if (received.length === 4) resolve();
    };
  });
  connection.send('héllo');
  for (const byte of [1, 2, 3]) connection.send(new Uint8Array(10).fill(byte));
  await all;
  expect(received[0]).toBe('héllo');
  const buffers = received.slice(1).map((data) => {
    if (typeof data === 'string') throw new Error('bytes came as text');
    expect(data.byteLength).toBe(data.buffer.byteLength);
    return [...data];
  });
  expect(buffers).toEqual([1, 2, 3].map((byte) => Array.from({ length: 10 }, () => byte)));
  connection.terminate();
});

test('a message sent in parts arrives as one', async () => {
  const connection = await dial(await listen({ onConnection: echo }));
  const got = new Promise((resolve) => (connection.onMessage = resolve));
  connection.send('hé', true);
  connection.send('llo', true);
  connection.send('!');
  expect(await got).toBe('héllo!');
  connection.terminate();
});

test('what arrives with the handshake waits for the handlers', async () => {
  const address = await listen({
    onConnection: (connection) => {
      connection.send('first');
      connection.close(4_001, 'and out');
    },
  });
  const connection = await dial(address);
  const told: unknown[] = [];
  connection.onMessage = (data) => told.push(data);
  told.push(await closed(connection));
  expect(told).toEqual(['first', [4_001, 'and out']]);
});

test('an oversized message closes its connection with 1009, others stay', async () => {
  const address = await listen({ onConnection: echo });
  const [large, small] = await Promise.all([dial(address), dial(address)]);
  const gone = closed(large);
  large.send(new Uint8Array(1_001));
  expect((await gone)[0]).toBe(1_009);
  const answer = new Promise((resolve) => (small.onMessage = resolve));
  small.send('still here');
  expect(await answer).toBe('still here');
  large.send('a no-op');
  large.close(1_000, 'twice');
  small.terminate();
});

test('unknown paths, missing subprotocols and closed ports are refused', async () => {
  const address = await listen({});
  await expect(dial(address, { path: '/other' })).rejects.toMatchObject({
    code: 'unreachable',
    message: expect.stringMatching(/404/),
  });
  await expect(dial(address, { subprotocol: 'v2' })).rejects.toThrow(/400/);
  await expect(dial(address, { subprotocol: undefined })).rejects.toThrow(/400/);
  await expect(dial('127.0.0.1:1')).rejects.toMatchObject({
    code: 'unreachable',
    data: { address: '127.0.0.1:1' },
  });
});

test('a server that never answers the upgrade is given up after the time-out', async () => {
  const server = createServer((socket) => socket.resume());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const bound = server.address();
  const port = typeof bound === 'object' && bound !== null ? bound.port : 0;
  await expect(dial(`127.0.0.1:${port}`, { timeoutMs: 50 })).rejects.toThrow(/timed out/);
  await new Promise((resolve) => server.close(resolve));
});

test('plain HTTP is served on the same port, and is 404 where nobody does', async () => {
  const address = await listen({ http: (request, response) => response.end(`you asked ${request.url}`) });
  expect(await (await fetch(`http://${address}/livez`)).text()).toBe('you asked /livez');
  const bare = await listen({});
  expect((await fetch(`http://${bare}/livez`)).status).toBe(404);
});

test('a busy port is address_in_use, a bad address invalid_argument', async () => {
  const address = await listen({});
  await expect(net.listen(address, { routes: {} })).rejects.toMatchObject({ code: 'address_in_use' });
  await expect(net.listen('nowhere', { routes: {} })).rejects.toMatchObject({ code: 'invalid_argument' });
  await expect(net.listen('192.0.2.1:1', { routes: {} })).rejects.toMatchObject({ code: 'invalid_argument' });
});

test('bytes that are no HTTP and frames that are no frames end their socket only', async () => {
  const address = await listen({ onConnection: echo });
  const [host = '', port = ''] = address.split(':');
  const ended = (bytes: string | Buffer) =>
    new Promise<void>((resolve) => {
      const socket = createConnection({ host, port: Number(port) }, () => socket.write(bytes));
      socket.on('error', () => {});
      socket.resume();
      socket.on('close', () => resolve());
    });
  await ended('\u0000\u0001nonsense\r\n\r\n');
  await ended(Buffer.concat([Buffer.from(UPGRADE), Buffer.from([0xff, 0xff, 0xff, 0xff, 0xff, 0xff])]));
  // A claim of 2^62 bytes.
  await ended(
    Buffer.concat([Buffer.from(UPGRADE), Buffer.from([0x82, 0xff, 0x40, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4])]),
  );
  const connection = await dial(address);
  const answer = new Promise((resolve) => (connection.onMessage = resolve));
  connection.send('alive');
  expect(await answer).toBe('alive');
  connection.terminate();
});

test('a connection that answers no ping is dropped, one that does stays', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  const accepted: Connection[] = [];
  const address = await listen({ onConnection: (connection) => accepted.push(connection) });
  const [host = '', port = ''] = address.split(':');
  const mute = createConnection({ host, port: Number(port) }, () => mute.write(UPGRADE));
  mute.on('error', () => {});
  const gone = new Promise<void>((resolve) => mute.once('close', () => resolve()));
  const answered = new Promise((resolve) => mute.once('data', resolve));
  await answered;
  const socket = new WebSocket(`ws://${address}/echo`, ['v1']);
  await new Promise((resolve) => socket.once('open', resolve));
  for (let round = 0; round < 4; round += 1) {
    const pinged = new Promise((resolve) => socket.once('ping', resolve));
    vi.advanceTimersByTime(5_000);
    await pinged;
    // Its pong is behind the ping; this one's way back is the same.
    const ponged = new Promise((resolve) => socket.once('pong', resolve));
    socket.ping();
    await ponged;
  }
  await gone;
  expect(socket.readyState).toBe(WebSocket.OPEN);
  socket.terminate();
});

test('a message that takes longer to arrive than the silence allowed is received', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  const received: unknown[] = [];
  const address = await listen({
    onConnection: (connection) => (connection.onMessage = (data) => received.push(data)),
  });
  const [host = '', port = ''] = address.split(':');
  const slow = createConnection({ host, port: Number(port) }, () => slow.write(UPGRADE));
  const ended = vi.fn();
  slow.on('error', ended);
  slow.once('close', ended);
  await new Promise((resolve) => slow.once('data', resolve));
  // One text frame of six bytes, masked with zeros, a byte from one ping to the next; it answers none.
  const frame = Buffer.from([0x81, 0x86, 0, 0, 0, 0, ...Buffer.from('slowly')]);
  for (const byte of frame) {
    const pinged = new Promise((resolve) => slow.once('data', resolve));
    slow.write(Uint8Array.of(byte));
    // Whether the byte was read is not seen from here: the listener's next connection is accepted after it.
    (await dial(address)).terminate();
    vi.advanceTimersByTime(5_000);
    await Promise.race([pinged, new Promise((resolve) => slow.once('close', resolve))]);
    expect(ended).not.toHaveBeenCalled();
  }
  await vi.waitFor(() => expect(received).toEqual(['slowly']));
  slow.destroy();
});

test('compression is not taken up', async () => {
  const address = await listen({ onConnection: echo });
  const socket = new WebSocket(`ws://${address}/echo`, ['v1'], { perMessageDeflate: true });
  await new Promise((resolve) => socket.once('open', resolve));
  expect(socket.extensions).toBe('');
  socket.terminate();
});

test('closing a listener tells every connection 1001 and leaves nothing behind', async () => {
  let server: Connection | null = null;
  const listener = await net.listen('127.0.0.1:0', {
    routes: {
      '/echo': { subprotocols: [], maxPayloadBytes: 10, onConnection: (connection) => (server = connection) },
    },
  });
  const connection = await net.connect(listener.address, {
    path: '/echo',
    maxPayloadBytes: 10,
    timeoutMs: 2_000,
  });
  const gone = closed(connection);
  await listener.close();
  expect(await gone).toEqual([1_001, 'shutting down']);
  expect(server).not.toBeNull();
  const again = await net.listen(listener.address, { routes: {} });
  await again.close();
});
