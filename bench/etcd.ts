/**
 * The same load as `bench/commits.ts` on three etcd processes of this machine (Debian's etcd-server): puts of the
 * same values over gRPC on one HTTP/2 connection to the leader, framed by hand so that the client costs little.
 *   npm run bench:etcd -- [--in-flight 1,16,64,256,1000] [--seconds 5] [--value-bytes 256]
 * Says so and ends where etcd is not installed.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { type ClientHttp2Session, connect } from 'node:http2';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { freePorts, until } from '../tests/support/cluster.ts';
import { measure, numbers } from './support.ts';

const { values } = parseArgs({
  options: {
    'in-flight': { type: 'string', default: '1,16,64,256,1000' },
    seconds: { type: 'string', default: '5' },
    'value-bytes': { type: 'string', default: '256' },
  },
});

try {
  execFileSync('etcd', ['--version'], { stdio: 'ignore' });
} catch {
  console.log('etcd is not installed (apt-get install etcd-server); nothing was measured');
  process.exit(0);
}

function varint(value: number): number[] {
  return value < 128 ? [value] : [(value & 127) | 128, ...varint(value >> 7)];
}

/** One PutRequest (key = 1, value = 2) behind gRPC's five-byte prefix. */
function putFrame(key: Buffer, value: Buffer): Buffer {
  const body = Buffer.concat([
    Buffer.from([0x0a, ...varint(key.length)]),
    key,
    Buffer.from([0x12, ...varint(value.length)]),
    value,
  ]);
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(body.length, 1);
  return Buffer.concat([prefix, body]);
}

function put(session: ClientHttp2Session, frame: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    const stream = session.request({
      ':method': 'POST',
      ':path': '/etcdserverpb.KV/Put',
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    let status = '';
    stream.on('trailers', (headers) => (status = String(headers['grpc-status'])));
    stream.on('data', () => undefined);
    stream.on('error', reject);
    stream.on('close', () => (status === '0' ? resolve() : reject(new Error(`grpc-status ${status}`))));
    stream.end(frame);
  });
}

const directory = mkdtempSync(join(tmpdir(), 'etcd-bench-'));
const ports = await freePorts(6);
const url = (n: number): string => `http://127.0.0.1:${ports[n]}`;
const members = [0, 1, 2].map((n) => `e${n}=${url(2 * n + 1)}`).join(',');
const children: ChildProcess[] = [0, 1, 2].map((n) =>
  spawn(
    'etcd',
    [
      ...['--name', `e${n}`, '--data-dir', join(directory, `e${n}`), '--initial-cluster', members],
      ...['--initial-advertise-peer-urls', url(2 * n + 1), '--listen-peer-urls', url(2 * n + 1)],
      ...[
        '--listen-client-urls',
        url(2 * n),
        '--advertise-client-urls',
        url(2 * n),
        '--initial-cluster-state',
        'new',
      ],
    ],
    { stdio: 'ignore' },
  ),
);

interface EtcdStatus {
  readonly leader: string;
  readonly header: { readonly member_id: string };
}

try {
  const leader = await until('an etcd leader', async () => {
    for (const n of [0, 1, 2]) {
      const answer = await fetch(`${url(2 * n)}/v3/maintenance/status`, { method: 'POST', body: '{}' });
      const status = (await answer.json()) as EtcdStatus;
      if (status.leader && status.leader === status.header.member_id) return { n };
    }
    return undefined;
  });
  const session = connect(url(2 * leader.n));
  session.on('error', () => undefined);
  const value = Buffer.alloc(Number(values['value-bytes']), 'x');
  const write = (n: number): Promise<void> => put(session, putFrame(Buffer.from(`bench-${n % 64}`), value));
  const pids = children.map((child) => child.pid ?? 0);
  console.log('etcd');
  await measure(write, pids, { inFlight: numbers(values['in-flight']), seconds: Number(values.seconds) });
  session.destroy();
} finally {
  for (const child of children) child.kill('SIGKILL');
  rmSync(directory, { recursive: true, force: true });
}
