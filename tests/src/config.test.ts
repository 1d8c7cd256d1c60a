import { expect, test } from 'vitest';
import { SERVE_OPTIONS, readServeConfig } from '../../src/config.ts';

const MEMBERS = 'n1=127.0.0.1:7501,n2=127.0.0.1:7502,n3=[::1]:7503';
const FLAGS = { nodeId: 'n1', clusterId: 'demo', members: MEMBERS, dataDir: '/data' };

test('flags, then defaults', () => {
  const config = readServeConfig(FLAGS, {});
  expect(config).toMatchObject({
    nodeId: 'n1',
    clusterId: 'demo',
    listen: '127.0.0.1:7401',
    peerListen: '127.0.0.1:7501',
    dataDir: '/data',
    initialClusterState: 'existing',
    logLevel: 'info',
    raft: { heartbeatMs: 100, electionTimeoutMs: 1_000 },
    broker: { heartbeatMs: 1_000, leaseMs: 4_000, expiryMs: 6_000, marginMs: 500 },
  });
  expect([...config.members.keys()]).toEqual(['n1', 'n2', 'n3']);
});

test('each option is also an environment variable, and its flag wins', () => {
  const environment = Object.fromEntries(
    Object.entries({ ...FLAGS, listen: '127.0.0.1:1', leaseMs: '5000' }).map(([key, value]) => [
      SERVE_OPTIONS.find((option) => option.key === key)?.environment ?? '',
      value,
    ]),
  );
  expect(environment).toMatchObject({ EVENKEEL_NODE_ID: 'n1', EVENKEEL_LEASE_MS: '5000' });
  const config = readServeConfig({ listen: '127.0.0.1:2' }, environment);
  expect(config).toMatchObject({ nodeId: 'n1', listen: '127.0.0.1:2', broker: { leaseMs: 5_000 } });
});

test.each([
  [{ nodeId: undefined }, /--node-id \(EVENKEEL_NODE_ID\) is required/],
  [{ nodeId: 'a b' }, /--node-id .*"a b"/],
  [{ nodeId: 'n9' }, /--members does not name this node, "n9"/],
  [{ clusterId: '' }, /--cluster-id/],
  [{ members: 'n1' }, /--members .*"n1" is not id=host:port/],
  [{ members: 'n1=127.0.0.1:0' }, /is not id=host:port/],
  [{ members: 'n1=h:1=2' }, /is not id=host:port/],
  [{ members: 'n1=h:99999' }, /is not id=host:port/],
  [{ members: 'n1=127.0.0.1:1,n1=127.0.0.1:2' }, /"n1" is named twice/],
  [{ members: 'n1=127.0.0.1:1,n2=127.0.0.1:1' }, /given to two nodes/],
  [{ members: Array.from({ length: 16 }, (_, at) => `n${at}=h:${at + 1}`).join(',') }, /at most 15/],
  [{ dataDir: '' }, /--data-dir/],
  [{ listen: '7401' }, /--listen .*"7401" is not host:port/],
  [{ initialClusterState: 'old' }, /--initial-cluster-state/],
  [{ logLevel: 'loud' }, /--log-level/],
  [{ leaseMs: '1.5' }, /--lease-ms .*whole number/],
  [{ leaseMs: '-1' }, /--lease-ms .*whole number/],
  [{ leaseMs: '9999999' }, /--lease-ms .*at most/],
  [{ leaseMs: '6500' }, /leaseMs 6500 .*expiryMs 6000/],
  [{ heartbeatMs: '3000' }, /heartbeatMs 3000/],
  [{ raftHeartbeatMs: '500' }, /electionTimeoutMs >= 3 \* heartbeatMs/],
])('%j is refused', (change, message) => {
  const read = () => readServeConfig({ ...FLAGS, ...change }, {});
  expect(read).toThrow(message);
  expect(read).toThrow(expect.objectContaining({ code: 'invalid_argument' }));
});

test('it listens beyond loopback only when told that this is meant', () => {
  for (const change of [
    { listen: '0.0.0.0:7401' },
    { peerListen: '10.0.0.1:7501' },
    { listen: '[::]:7401' },
  ]) {
    const read = () => readServeConfig({ ...FLAGS, ...change }, {});
    expect(read).toThrow(expect.objectContaining({ code: 'insecure_listen' }));
    expect(readServeConfig({ ...FLAGS, ...change, insecure: true }, {})).toMatchObject(change);
    expect(readServeConfig({ ...FLAGS, ...change }, { EVENKEEL_INSECURE: '1' })).toMatchObject(change);
  }
  for (const listen of ['localhost:1', '[::1]:1', '127.9.9.9:1']) {
    expect(readServeConfig({ ...FLAGS, listen }, {}).listen).toBe(listen);
  }
  expect(() => readServeConfig({ ...FLAGS, listen: '127.evil.example:1' }, {})).toThrow(/other machines/);
});
