import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { freePorts, Process, rpc, until } from '../support/cluster.ts';
import { localCommandLines, readCompose } from '../support/compose.ts';

const directory = mkdtempSync(join(tmpdir(), 'evenkeel-compose-'));
let running: Process[] = [];

afterEach(async () => {
  await Promise.all(running.map((node) => node.kill()));
  rmSync(directory, { recursive: true, force: true });
});

it("the compose file's constant command lines form a quorum once, and bring it back as it was", async () => {
  const compose = readCompose();
  const names = Object.keys(compose.services);
  const ports = await freePorts(2 * names.length);
  const port = (n: number): number => ports[n] ?? 0;
  const places = Object.fromEntries(
    names.map((name, n) => [
      name,
      { clientPort: port(2 * n), peerPort: port(2 * n + 1), directory: join(directory, name) },
    ]),
  );
  const lines = Object.values(localCommandLines(compose, places));
  const addresses = names.map((_, n) => `127.0.0.1:${port(2 * n)}`);
  const start = async (): Promise<void> => {
    running = lines.map((line) => new Process(line));
    await Promise.all(running.map((node) => node.line(/^ready /)));
    for (const address of addresses) {
      expect((await fetch(`http://${address}/livez`)).status).toBe(200);
      await until(`${address} to be ready`, async () => (await fetch(`http://${address}/readyz`)).ok);
    }
  };

  await start();
  await rpc(addresses[0] ?? '', 'resource.create', { kind: 'stream', name: 'orders', shards: 12 });
  await Promise.all(running.map((node) => node.kill()));
  await start();
  for (const address of addresses) {
    const { items } = await rpc<{ items: { name: string }[] }>(address, 'resource.list');
    expect(items.map(({ name }) => name)).toEqual(['orders']);
  }
});
