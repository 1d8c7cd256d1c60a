import { describe, expect, it } from 'vitest';
import type { Connection } from '../../../src/net.ts';
import { SimNetwork, SimProcess, SimWorld } from '../../../src/sim/index.ts';

interface Pair {
  world: SimWorld;
  network: SimNetwork;
  a: SimProcess;
  b: SimProcess;
  near: Connection;
  far: Connection;
  heardFar: (string | Uint8Array)[];
  heardNear: (string | Uint8Array)[];
  closes: string[];
}

/** A connection from host a to host b, open. */
async function open(path = '/rpc', seed = 1): Promise<Pair> {
  const world = new SimWorld(seed);
  const network = new SimNetwork(world, { lossyPaths: ['/peer'] });
  const a = new SimProcess(world, 'a', { life: 1, driftPart: 0, wallOffsetMs: 0 });
  const b = new SimProcess(world, 'b', { life: 1, driftPart: 0, wallOffsetMs: 0 });
  const heardFar: (string | Uint8Array)[] = [];
  const heardNear: (string | Uint8Array)[] = [];
  const closes: string[] = [];
  let far: Connection | undefined;
  let near: Connection | undefined;
  await network.netOf(b).listen('b:1', {
    routes: {
      [path]: {
        subprotocols: ['p.v1'],
        maxPayloadBytes: 100_000,
        onConnection: (connection) => {
          far = connection;
          connection.onMessage = (data) => heardFar.push(data);
          connection.onClose = (code, reason) => closes.push(`far ${code} ${reason}`);
        },
      },
    },
  });
  void network
    .netOf(a)
    .connect('b:1', { path, subprotocol: 'p.v1', maxPayloadBytes: 100_000, timeoutMs: 1_000 })
    .then((connection) => {
      near = connection;
      connection.onMessage = (data) => heardNear.push(data);
      connection.onClose = (code, reason) => closes.push(`near ${code} ${reason}`);
    });
  await world.run({ untilMs: 20 });
  if (near === undefined || far === undefined) throw new Error('not connected');
  return { world, network, a, b, near, far, heardFar, heardNear, closes };
}

const numbers = (from: number, to: number): string[] =>
  Array.from({ length: to - from }, (_, i) => String(from + i));

describe('SimNetwork', () => {
  it('carries frames whole, in order and copied', async () => {
    const { world, near, far, heardFar, heardNear } = await open();
    for (const n of numbers(0, 50)) near.send(n);
    const bytes = new Uint8Array([1, 2, 3]);
    far.send(bytes);
    bytes[0] = 9;
    await world.run({ untilMs: 100 });
    expect(heardFar).toEqual(numbers(0, 50));
    expect(heardNear).toEqual([new Uint8Array([1, 2, 3])]);
  });

  it('holds frames at a cut link, one way, and delivers them in order when it heals', async () => {
    const { world, network, near, far, heardFar, heardNear, closes } = await open();
    near.send('0');
    network.setCut('a', 'b', true);
    for (const n of numbers(1, 10)) near.send(n);
    far.send('back');
    await world.run({ untilMs: 5_000 });
    expect(heardFar).toEqual(['0']);
    expect(heardNear).toEqual(['back']);
    network.setCut('a', 'b', false);
    near.send('10');
    await world.run({ untilMs: 5_100 });
    expect(heardFar).toEqual(numbers(0, 11));
    expect(closes).toEqual([]);
  });

  it("gives a connection up when a cut outlasts the kernel's patience; the other end learns when it sends", async () => {
    const { world, network, near, far, heardFar, closes } = await open();
    network.setCut('a', 'b', true);
    near.send('lost');
    await world.run({ untilMs: 30_000 });
    expect(closes).toEqual(['near 1006 ']);
    network.setCut('a', 'b', false);
    far.send('into the void');
    await world.run({ untilMs: 31_000 });
    expect(closes).toEqual(['near 1006 ', 'far 1006 ']);
    expect(heardFar).toEqual([]);
  });

  it('tells the end that has nothing to send of a dead connection too, as pings would', async () => {
    const { world, network, near, closes } = await open();
    network.setCut('a', 'b', true);
    near.send('lost');
    await world.run({ untilMs: 60_000, until: () => closes.length > 0 });
    expect(closes).toEqual(['near 1006 ']);
    network.setCut('a', 'b', false);
    await world.run({ untilMs: world.nowMs + 9_000 });
    expect(closes).toHaveLength(1);
    await world.run({ untilMs: world.nowMs + 1_100 });
    expect(closes).toEqual(['near 1006 ', 'far 1006 ']);
  });

  it('closes with code and reason at both ends, after what was sent before', async () => {
    const { world, near, heardFar, closes } = await open();
    near.send('last words');
    near.close(4003, 'replaced');
    near.send('too late');
    await world.run({ untilMs: 100 });
    expect(heardFar).toEqual(['last words']);
    expect(closes).toEqual(['far 4003 replaced', 'near 4003 replaced']);
  });

  it('ends the connections of a killed process after what it had sent; those of a machine without power do not end', async () => {
    const killed = await open();
    killed.near.send('sent');
    killed.a.kill();
    await killed.world.run({ untilMs: 100 });
    expect(killed.heardFar).toEqual(['sent']);
    expect(killed.closes).toEqual(['far 1006 ']);

    const dark = await open();
    dark.network.setPower('a', false);
    dark.a.kill();
    await dark.world.run({ untilMs: 60_000 });
    expect(dark.closes).toEqual([]);
    dark.far.send('anyone there?');
    await dark.world.run({ untilMs: 100_000 });
    expect(dark.closes).toEqual(['far 1006 ']);
  });

  it('a stopped process takes nothing in, and what waits for it counts as buffered', async () => {
    const { world, b, near, heardFar } = await open();
    b.stall();
    for (let i = 0; i < 10; i++) near.send(new Uint8Array(90_000));
    await world.run({ untilMs: 1_000 });
    expect(heardFar).toEqual([]);
    expect(near.bufferedBytes).toBe(900_000 - 256 * 1024);
    b.resume(true);
    await world.run({ untilMs: 1_100 });
    expect(heardFar.length).toBe(10);
    expect(near.bufferedBytes).toBe(0);
  });

  it('a clogged link delivers at its rate', async () => {
    const { world, network, near, heardFar } = await open();
    network.link('a', 'b').bytesPerMs = 10;
    for (let i = 0; i < 10; i++) near.send(new Uint8Array(1_000));
    await world.run({ untilMs: 20 + 550 });
    expect(heardFar.length).toBe(5);
    await world.run({ untilMs: 20 + 1_050 });
    expect(heardFar.length).toBe(10);
  });

  it('loses, doubles and reorders only on lossy paths', async () => {
    const strict = await open('/rpc', 5);
    const loose = await open('/peer', 5);
    for (const { network, near, world } of [strict, loose]) {
      Object.assign(network.link('a', 'b'), { lossPart: 0.2, duplicatePart: 0.2, reorderPart: 0.5 });
      for (const n of numbers(0, 200)) near.send(n);
      await world.run({ untilMs: 1_000 });
    }
    expect(strict.heardFar).toEqual(numbers(0, 200));
    const heard = loose.heardFar.map(Number);
    const distinct = new Set(heard);
    expect(distinct.size).toBeLessThan(200);
    expect(heard.length).toBeGreaterThan(distinct.size);
    expect(heard).not.toEqual([...heard].sort((x, y) => x - y));
  });

  it('a reset breaks the connection at both ends', async () => {
    const { world, network, near, closes } = await open();
    network.breakConnections('a', 'b');
    near.send('lost');
    await world.run({ untilMs: 100 });
    expect(closes.sort()).toEqual(['far 1006 ', 'near 1006 ']);
    expect(network.sockets.size).toBe(0);
  });

  it('refuses frames over the limit with 1009', async () => {
    const { world, near, heardFar, closes } = await open();
    near.send(new Uint8Array(100_001));
    await world.run({ untilMs: 100 });
    expect(heardFar).toEqual([]);
    expect(closes).toEqual(['far 1009 message too large', 'near 1009 message too large']);
  });

  it('connecting fails where nobody listens, for another path or protocol, and by time where packets vanish', async () => {
    const { world, network, a, b } = await open();
    const outcomes: string[] = [];
    const attempt = (address: string, path: string, subprotocol: string): void => {
      void network
        .netOf(a)
        .connect(address, { path, subprotocol, maxPayloadBytes: 1, timeoutMs: 500 })
        .then(
          () => outcomes.push('open'),
          (error: Error) => outcomes.push(error.message),
        );
    };
    attempt('b:2', '/rpc', 'p.v1');
    await world.run({ untilMs: 100 });
    attempt('b:1', '/other', 'p.v1');
    await world.run({ untilMs: 200 });
    attempt('b:1', '/rpc', 'p.v2');
    await world.run({ untilMs: 300 });
    b.stall();
    attempt('b:1', '/rpc', 'p.v1');
    await world.run({ untilMs: 1_000 });
    expect(outcomes).toEqual([
      'b:2 refused the connection',
      'b:1 answered 404 for /other',
      'b:1 answered 400: subprotocol p.v2',
      'b:1 did not answer within 500 ms',
    ]);
  });
});
