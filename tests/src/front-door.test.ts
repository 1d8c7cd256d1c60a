import { afterEach, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { FrontDoor } from '../../src/front-door.ts';
import { createWebSocketNet } from '../../src/net-ws.ts';

const doors: FrontDoor[] = [];
afterEach(async () => {
  for (const door of doors.splice(0)) await door.close();
});
async function open(address = '127.0.0.1:0'): Promise<FrontDoor> {
  const door = await FrontDoor.open(createWebSocketNet(), address);
  doors.push(door);
  return door;
}
const closeOf = (url: string, protocol?: string): Promise<number> =>
  new Promise((resolve) => {
    const socket = new WebSocket(url, protocol);
    socket.once('close', (code) => resolve(code));
    socket.once('error', () => {});
  });

describe('FrontDoor', () => {
  it('while the node waits for its group it is alive and not ready, and sends clients elsewhere', async () => {
    const { address } = await open();
    const get = (path: string): Promise<Response> => fetch(`http://${address}${path}`);
    expect((await get('/livez')).status).toBe(200);
    for (const path of ['/readyz', '/metrics', '/v1/brokers', '/'])
      expect((await get(path)).status).toBe(503);
    expect(await (await get('/readyz')).text()).toBe('not ok: starting\n');
    expect(await closeOf(`ws://${address}/rpc`)).toBe(1013);
    expect(await closeOf(`ws://${address}/broker`, 'evenkeel.broker.v1+json')).toBe(1013);
  });

  it('serves what is behind it from the moment it is told', async () => {
    const door = await open();
    const seen: string[] = [];
    door.serve({
      broker: { onConnection: (connection) => (seen.push('broker'), connection.close(1000, '')) },
      rpc: { onConnection: (connection) => (seen.push('rpc'), connection.close(1000, '')) },
      http: (_request, response) => void response.end('behind'),
    });
    expect(await (await fetch(`http://${door.address}/livez`)).text()).toBe('behind');
    expect(await closeOf(`ws://${door.address}/broker`, 'evenkeel.broker.v1+json')).toBe(1000);
    expect(await closeOf(`ws://${door.address}/rpc`)).toBe(1000);
    expect(seen).toEqual(['broker', 'rpc']);
  });

  it('finds a busy port before anything else happens', async () => {
    const { address } = await open();
    await expect(FrontDoor.open(createWebSocketNet(), address)).rejects.toMatchObject({
      code: 'address_in_use',
    });
  });
});
