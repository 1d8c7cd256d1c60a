/**
 * Commits a second, latency and server CPU of a three-process quorum on this machine, through the whole
 * stack: `resource.alter` of a label over one WebSocket to the leader.
 *   npm run bench:commits -- [--in-flight 1,16,64,256,1000] [--seconds 5] [--value-bytes 256]
 */
import { parseArgs } from 'node:util';
import { Cluster, rpc } from '../tests/support/cluster.ts';
import { measure, numbers, RpcSocket } from './support.ts';

const { values } = parseArgs({
  options: {
    'in-flight': { type: 'string', default: '1,16,64,256,1000' },
    seconds: { type: 'string', default: '5' },
    'value-bytes': { type: 'string', default: '256' },
  },
});

const cluster = await Cluster.start();
try {
  const leader = await cluster.leader();
  const address = cluster.address(leader);
  for (let n = 0; n < 64; n++) {
    await rpc(address, 'resource.create', {
      kind: 'cache',
      name: `bench-${n}`,
      shards: 1,
      replicationFactor: 1,
    });
  }
  const socket = await RpcSocket.connect(address);
  const value = 'x'.repeat(Number(values['value-bytes']));
  const alter = (n: number): Promise<unknown> =>
    socket.call('resource.alter', { kind: 'cache', name: `bench-${n % 64}`, labels: { n: value } });
  const pids = cluster.nodes.map((node) => node?.child.pid ?? 0);
  await measure(alter, pids, { inFlight: numbers(values['in-flight']), seconds: Number(values.seconds) });
  socket.close();
} finally {
  await cluster.stop();
}
