import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { Cluster, freePorts, Process, rpc } from '../support/cluster.ts';
import { HandBroker } from '../support/hand-broker.ts';

/** Opens a socket, sends the frames, and answers the code it was closed with. */
async function closedWith(
  url: string,
  protocol: string | undefined,
  frames: readonly (string | Buffer)[],
): Promise<number> {
  const socket = new WebSocket(url, protocol, { perMessageDeflate: false });
  socket.on('error', () => undefined);
  return await new Promise((resolve) => {
    socket.on('open', () => {
      for (const frame of frames) socket.send(frame);
    });
    socket.on('unexpected-response', (_, response) => resolve(response.statusCode ?? 0));
    socket.on('close', (code) => resolve(code));
  });
}

describe('bad input at the edges of a running quorum', () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await Cluster.start();
  });
  afterAll(async () => {
    // Whatever was thrown at it, the same three processes still agree.
    await cluster.sameHash();
    expect(cluster.nodes.every((node) => node?.running)).toBe(true);
    await cluster.stop();
  });

  const resource = { name: 's', shards: 2 };
  const assignment = { shard: 'stream:s/0', leader: 'b1', replicas: ['b1'] };
  const good = { version: 1, brokers: [{ id: 'b1' }], resources: [resource], assignments: [assignment] };
  it.each([
    ['an unknown key', { ...good, colour: 'red' }, 'colour'],
    ['a broker twice', { ...good, brokers: [{ id: 'b1' }, { id: 'b1' }] }, 'b1'],
    [
      'a leader that holds no copy',
      { ...good, brokers: [{ id: 'b1' }, { id: 'b2' }], assignments: [{ ...assignment, leader: 'b2' }] },
      'b2',
    ],
    [
      'a shard past the count',
      { ...good, assignments: [{ ...assignment, shard: 'stream:s/2' }] },
      'stream:s/2',
    ],
    ['0 shards', { ...good, resources: [{ ...resource, shards: 0 }], assignments: [] }, 'shards'],
    ['a name with a space', { ...good, resources: [{ ...resource, name: 'a b' }], assignments: [] }, 'a b'],
    [
      'a replication factor above the limit',
      { ...good, resources: [{ ...resource, replicationFactor: 1_000_000 }] },
      'replicationFactor',
      'limit_exceeded',
    ],
    ['text that is not JSON', '{"version": 1,', 'JSON'],
  ])('import refuses %s and changes nothing', async (_, file, names, errorCode = 'invalid_argument') => {
    const path = join(cluster.directory, 'bad.json');
    writeFileSync(path, typeof file === 'string' ? file : JSON.stringify(file));
    const { code, stderr } = await cluster.cli('import', '-f', path);
    expect(code).toBe(3);
    expect(stderr).toContain(errorCode);
    expect(stderr).toContain(names);
    const { stdout } = await cluster.cli('export');
    expect(JSON.parse(stdout)).toMatchObject({ brokers: [], resources: [], assignments: [] });
  });

  it('a second node on the same data directory is refused, the first goes on', async () => {
    const ports = await freePorts(2);
    const args = cluster
      .serveArguments(0)
      .map((arg) => (arg === cluster.address(0) ? `127.0.0.1:${ports[0]}` : arg))
      .map((arg, n, all) => (all[n - 1] === '--peer-listen' ? `127.0.0.1:${ports[1]}` : arg));
    const second = new Process(args);
    expect((await second.exited).code).toBe(4);
    expect(second.stderr).toContain('directory_in_use');
    await rpc(cluster.address(0), 'cluster.status');
  });

  it('a busy port is refused by name', async () => {
    const args = cluster
      .serveArguments(0)
      .map((arg, n, all) => (all[n - 1] === '--data-dir' ? join(cluster.directory, 'busy') : arg));
    const second = new Process(args);
    expect((await second.exited).code).toBe(1);
    expect(second.stderr).toContain('address_in_use');
  });

  it('a data directory of another cluster is refused', async () => {
    await cluster.killNode(2);
    const args = cluster.serveArguments(2).map((arg) => (arg === cluster.clusterId ? 'another' : arg));
    const stranger = new Process(args);
    expect((await stranger.exited).code).toBe(4);
    expect(stranger.stderr).toContain('wrong_directory');
    await cluster.startNode(2);
  });

  it('a node that listens beyond loopback without --insecure is refused', async () => {
    const ports = await freePorts(2);
    const open = new Process([
      ...['serve', '--node-id', 'x1', '--cluster-id', 'x', '--members', `x1=127.0.0.1:${ports[1]}`],
      ...['--listen', `0.0.0.0:${ports[0]}`, '--peer-listen', `127.0.0.1:${ports[1]}`],
      ...['--data-dir', join(cluster.directory, 'open'), '--initial-cluster-state', 'new'],
    ]);
    expect((await open.exited).code).toBe(2);
    expect(open.stderr).toContain('insecure_listen');
  });

  it.each([
    [['serve'], 2, /--node-id \(EVENKEEL_NODE_ID\) is required/],
    [['serve', '--node-id', 'a/b'], 2, /--cluster-id .* is required/],
    [['serve', '--insecure=yes'], 2, /unknown option/],
    [['serve', 'n1'], 2, /too many arguments/],
  ])('%j is a slip of usage', async (args, code, says) => {
    const node = new Process(args);
    expect((await node.exited).code).toBe(code);
    expect(node.stderr).toMatch(says);
    expect(node.stdout).toBe('');
  });

  it.each([
    ['--members', 'n1', /--members .*"n1" is not id=host:port/],
    ['--members', 'n9=127.0.0.1:7501', /--members does not name this node, "n1"/],
    ['--election-timeout-ms', '1.5', /--election-timeout-ms .*whole number of milliseconds/],
    ['--election-timeout-ms', '50', /\(invalid_argument\)/],
    ['--lease-ms', '999999', /\(invalid_argument\)/],
    ['--log-level', 'loud', /--log-level/],
    ['--initial-cluster-state', 'maybe', /--initial-cluster-state/],
    ['--data-dir', '', /--data-dir .*must name a directory/],
  ])('serve %s %s is a slip of usage', async (flag, value, says) => {
    const node = new Process([...cluster.serveArguments(0), flag, value]);
    expect((await node.exited).code, node.stderr).toBe(2);
    expect(node.stderr).toMatch(says);
  });

  it.each([
    [['--id', 'b/1'], 3, /broker id "b\/1" must begin.*\(invalid_argument\)/],
    [['--weight', '0'], 3, /weight 0 must be 1 to 1000 \(limit_exceeded\)/],
    [['--zone', 'a/b'], 3, /zone "a\/b".*\(invalid_argument\)/],
    [['--cluster-id', 'another'], 4, /this is cluster test, not "another".*\(wrong_cluster\)/],
    [['--endpoints', 'localhost'], 3, /endpoint "localhost" is not host:port/],
  ])('broker run %j ends, and says why', async (options, code, says) => {
    const directory = join(cluster.directory, `broker-${options.join('').replaceAll('/', '')}`);
    const broker = cluster.run([
      ...['broker', 'run', '--id', 'bad', '--cluster-id', cluster.clusterId, '--data-dir', directory],
      ...['--log-level', 'error', ...options],
    ]);
    expect((await broker.exited).code, broker.stderr).toBe(code);
    expect(broker.stderr).toMatch(says);
  });

  it('a second broker under an id whose session lives gets a clear answer and one of them serves', async () => {
    const endpoints = [cluster.address(0), cluster.address(1)];
    const first = await new HandBroker({ id: 'twin', clusterId: cluster.clusterId, endpoints }).start();
    const other = new HandBroker({
      ...{ id: 'twin', clusterId: cluster.clusterId, endpoints: [cluster.address(1)], storeId: 'elsewhere' },
    });
    void other.start();
    await expect
      .poll(() => other.errors.map(({ code }) => code), { timeout: 20_000 })
      .toContain('broker_connected');
    expect(first.errors).toEqual([]);
    other.stop();
    first.stop();
  });

  const broker = 'evenkeel.broker.v1+json';
  it.each([
    ['/broker', broker, ['{"id": 1, "type": "watch"'], 4002],
    ['/broker', broker, [Buffer.from([0xff, 0x00])], 4002],
    ['/broker', broker, ['x'.repeat(64 * 1024 * 1024)], 1009],
    ['/broker', 'evenkeel.broker.v9+json', [], 400],
    ['/rpc', undefined, ['x'.repeat(64 * 1024 * 1024)], 1009],
    ['/nowhere', undefined, [], 404],
  ])('%s %s: a frame that lies ends its own connection only (%#)', async (path, protocol, frames, code) => {
    expect(await closedWith(`ws://${cluster.address(0)}${path}`, protocol, frames)).toBe(code);
  });

  it('a stranger on the peer port is turned away', async () => {
    const peer = cluster.serveArguments(0)[cluster.serveArguments(0).indexOf('--peer-listen') + 1];
    for (const frame of [
      Buffer.from([0x81]),
      Buffer.from([0xdf, 0xff, 0xff, 0xff, 0xff]),
      Buffer.alloc(1024),
    ]) {
      expect(await closedWith(`ws://${peer}/peer`, undefined, [frame])).toBeGreaterThanOrEqual(400);
    }
  });
});
