import { readFileSync } from 'node:fs';
import { WebSocket } from 'ws';

const WARM_UP_CALLS = 20_000;
const MAX_WARM_UP_MS = 10_000;

/** CPU seconds (user and system) a process has used; from /proc, Linux only. */
export function cpuSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

export function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

export function median(values: readonly number[]): number {
  return percentile(
    [...values].sort((a, b) => a - b),
    0.5,
  );
}

/** A bare JSON-RPC connection: no retries, so that what is measured is the server. */
export class RpcSocket {
  private readonly socket: WebSocket;
  private readonly pending = new Map<
    number,
    { resolve: (value: unknown) => void; reject: (error: Error) => void }
  >();
  private next = 1;

  private constructor(socket: WebSocket) {
    this.socket = socket;
    socket.on('message', (data: Buffer) => {
      const answer = JSON.parse(data.toString('utf8')) as {
        id: number;
        result?: unknown;
        error?: { message: string };
      };
      const waiting = this.pending.get(answer.id);
      this.pending.delete(answer.id);
      if (answer.error) waiting?.reject(new Error(answer.error.message));
      else waiting?.resolve(answer.result);
    });
    const fail = (): void => {
      for (const { reject } of this.pending.values()) reject(new Error('connection lost'));
      this.pending.clear();
    };
    socket.on('close', fail);
    socket.on('error', fail);
  }

  static async connect(address: string): Promise<RpcSocket> {
    const socket = new WebSocket(`ws://${address}/rpc`, { perMessageDeflate: false });
    await new Promise<void>((resolve, reject) => {
      socket.once('open', resolve);
      socket.once('error', reject);
    });
    return new RpcSocket(socket);
  }

  call(method: string, params: Readonly<Record<string, unknown>>): Promise<unknown> {
    const id = this.next++;
    return new Promise((resolve, reject) => {
      if (this.socket.readyState !== WebSocket.OPEN) {
        reject(new Error('connection lost'));
        return;
      }
      this.pending.set(id, { resolve, reject });
      this.socket.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }));
    });
  }

  close(): void {
    this.socket.terminate();
  }
}

/** Keeps `inFlight` calls going for so long; answers latencies (ms, sorted) and the time it really took (ms). */
export async function load(
  call: (n: number) => Promise<unknown>,
  inFlight: number,
  durationMs: number,
): Promise<{ latencies: number[]; elapsedMs: number }> {
  const latencies: number[] = [];
  const start = performance.now();
  let n = 0;
  const worker = async (): Promise<void> => {
    while (performance.now() - start < durationMs) {
      const sent = performance.now();
      await call(n++);
      latencies.push(performance.now() - sent);
    }
  };
  await Promise.all(Array.from({ length: inFlight }, worker));
  return { latencies: latencies.sort((a, b) => a - b), elapsedMs: performance.now() - start };
}

/** Code that has not run often is interpreted: no row is taken before so many calls, or so long. */
async function warmUp(call: (n: number) => Promise<unknown>): Promise<void> {
  const endMs = performance.now() + MAX_WARM_UP_MS;
  for (let calls = 0; calls < WARM_UP_CALLS && performance.now() < endMs;) {
    const { latencies } = await load(call, 64, 500);
    calls += latencies.length;
  }
}

/** One row a number in flight: commits a second, latency, CPU of the server processes for each commit. */
export async function measure(
  call: (n: number) => Promise<unknown>,
  pids: readonly number[],
  options: { readonly inFlight: readonly number[]; readonly seconds: number },
): Promise<void> {
  const used = (): number => pids.reduce((sum, pid) => sum + cpuSeconds(pid), 0);
  await warmUp(call);
  console.log('in flight  commits/s   p50 ms   p99 ms  server CPU us/commit');
  for (const inFlight of options.inFlight) {
    const before = used();
    const { latencies, elapsedMs } = await load(call, inFlight, options.seconds * 1_000);
    const cells = [
      String(inFlight).padStart(9),
      ((latencies.length * 1_000) / elapsedMs).toFixed(0).padStart(10),
      percentile(latencies, 0.5).toFixed(2).padStart(8),
      percentile(latencies, 0.99).toFixed(2).padStart(8),
      (((used() - before) * 1e6) / latencies.length).toFixed(0).padStart(21),
    ];
    console.log(cells.join(' '));
  }
}

/** `1,16,64` */
export function numbers(list: string): number[] {
  return list.split(',').map(Number);
}
