/**
 * Commits a second, latency and server CPU of a three-process quorum on this machine, through the whole
 * stack: `resource.alter` of a label over one WebSocket to the leader.
 *   npm run bench:commits -- [--in-flight 1,16,64,256,1000] [--seconds 5] [--value-bytes 256]
 */
import { parseArgs } from 'node:util';
import { Cluster, rpc } from '../tests/support/cluster.ts';
import { cpuSeconds, load, percentile, RpcSocket } from './support.ts';

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
  await load(alter, 64, 1_000);
  console.log('in flight  commits/s   p50 ms   p99 ms  server CPU us/commit');
  for (const inFlight of values['in-flight'].split(',').map(Number)) {
    const before = pids.reduce((sum, pid) => sum + cpuSeconds(pid), 0);
    const { latencies, elapsedMs } = await load(alter, inFlight, Number(values.seconds) * 1_000);
    const cpu = pids.reduce((sum, pid) => sum + cpuSeconds(pid), 0) - before;
    const cells = [
      String(inFlight).padStart(9),
      ((latencies.length * 1_000) / elapsedMs).toFixed(0).padStart(10),
      percentile(latencies, 0.5).toFixed(2).padStart(8),
      percentile(latencies, 0.99).toFixed(2).padStart(8),
      ((cpu * 1e6) / latencies.length).toFixed(0).padStart(21),
    ];
    console.log(cells.join(' '));
  }
  socket.close();
} finally {
  await cluster.stop();
}
