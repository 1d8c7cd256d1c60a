/** Three etcd processes of this machine (Debian's etcd-server) and puts over gRPC, framed by hand so that they cost little. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { type ClientHttp2Session, connect } from 'node:http2';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePorts, until } from '../tests/support/cluster.ts';

interface EtcdStatus {
  readonly leader: string;
  readonly header: { readonly member_id: string };
}

export function etcdIsInstalled(): boolean {
  try {
    execFileSync('etcd', ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    console.log('etcd is not installed (apt-get install etcd-server); nothing was measured');
    return false;
  }
}

export class EtcdGroup {
  readonly #directory = mkdtempSync(join(tmpdir(), 'etcd-bench-'));
  readonly #ports: readonly number[];
  readonly #flags: readonly string[];
  readonly children: ChildProcess[] = [];

  private constructor(ports: readonly number[], flags: readonly string[]) {
    this.#ports = ports;
    this.#flags = flags;
  }

  /** `flags` go to every member. */
  static async start(flags: readonly string[] = []): Promise<EtcdGroup> {
    const group = new EtcdGroup(await freePorts(6), flags);
    for (const n of [0, 1, 2]) group.startMember(n);
    return group;
  }

  startMember(n: number): void {
    const members = [0, 1, 2].map((m) => `e${m}=${this.#url(2 * m + 1)}`).join(',');
    const [client, peer] = [this.#url(2 * n), this.#url(2 * n + 1)];
    const args = [
      ...['--name', `e${n}`, '--data-dir', join(this.#directory, `e${n}`), '--initial-cluster', members],
      ...['--initial-advertise-peer-urls', peer, '--listen-peer-urls', peer],
      ...['--listen-client-urls', client, '--advertise-client-urls', client],
      ...['--initial-cluster-state', 'new', ...this.#flags],
    ];
    this.children[n] = spawn('etcd', args, { stdio: 'ignore' });
  }

  /** The number of the member that says it leads. */
  async leader(): Promise<number> {
    const { leader } = await until('an etcd leader', async () => {
      for (const n of [0, 1, 2]) {
        const status = await this.#status(n).catch(() => null);
        if (status?.leader && status.leader === status.header.member_id) return { leader: n };
      }
      return undefined;
    });
    return leader;
  }

  /** Every member answers and knows a leader. */
  async ready(): Promise<void> {
    await until('three etcd members', async () => {
      const all = await Promise.all([0, 1, 2].map((n) => this.#status(n)));
      return all.every(({ leader }) => leader !== undefined && leader !== '0');
    });
  }

  connect(n: number): ClientHttp2Session {
    const session = connect(this.#url(2 * n));
    session.on('error', () => undefined);
    return session;
  }

  stop(): void {
    for (const child of this.children) child.kill('SIGKILL');
    rmSync(this.#directory, { recursive: true, force: true });
  }

  async #status(n: number): Promise<EtcdStatus> {
    const answer = await fetch(`${this.#url(2 * n)}/v3/maintenance/status`, {
      method: 'POST',
      body: '{}',
      signal: AbortSignal.timeout(1_000),
    });
    return (await answer.json()) as EtcdStatus;
  }

  #url(at: number): string {
    return `http://127.0.0.1:${this.#ports[at]}`;
  }
}

/** One put; rejects unless it was acknowledged within `timeoutMs`. */
export function put(
  session: ClientHttp2Session,
  key: string,
  value: Buffer,
  timeoutMs: number,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const stream = session.request({
      ':method': 'POST',
      ':path': '/etcdserverpb.KV/Put',
      'content-type': 'application/grpc',
      'grpc-timeout': `${timeoutMs}m`,
      te: 'trailers',
    });
    let status = '';
    stream.on('trailers', (headers) => (status = String(headers['grpc-status'])));
    stream.on('response', (headers) => (status = String(headers['grpc-status'] ?? status)));
    stream.on('data', () => undefined);
    stream.on('error', reject);
    stream.on('close', () => (status === '0' ? resolve() : reject(new Error(`grpc-status ${status}`))));
    stream.end(putFrame(Buffer.from(key), value));
  });
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

function varint(value: number): number[] {
  return value < 128 ? [value] : [(value & 127) | 128, ...varint(value >> 7)];
}
