/**
 * The same load as `bench/raft.ts` on three etcd processes of this machine: puts of the same values over gRPC on one
 * HTTP/2 connection to the leader.
 *   npm run bench:etcd -- [--in-flight 1,16,64,256,1000] [--seconds 5] [--value-bytes 256]
 * Says so and ends where etcd is not installed.
 */
import { parseArgs } from 'node:util';
import { etcdIsInstalled, EtcdGroup, put } from './etcd-group.ts';
import { measure, numbers } from './support.ts';

const DEADLINE_MS = 10_000;

const { values } = parseArgs({
  options: {
    'in-flight': { type: 'string', default: '1,16,64,256,1000' },
    seconds: { type: 'string', default: '5' },
    'value-bytes': { type: 'string', default: '256' },
  },
});

if (!etcdIsInstalled()) process.exit(0);
const group = await EtcdGroup.start();
try {
  const session = group.connect(await group.leader());
  const value = Buffer.alloc(Number(values['value-bytes']), 'x');
  const write = (n: number): Promise<void> => put(session, `bench-${n % 64}`, value, DEADLINE_MS);
  const pids = group.children.map((child) => child.pid ?? 0);
  console.log('etcd');
  await measure(write, pids, { inFlight: numbers(values['in-flight']), seconds: Number(values.seconds) });
  session.destroy();
} finally {
  group.stop();
}
