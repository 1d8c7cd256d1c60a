import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..', '..');
export const MAIN = join(ROOT, 'dist', 'src', 'main.js');
/** What the binary's first line has Node started with. */
export const NODE_FLAGS: readonly string[] = /^#!.* node (.*)$/m
  .exec(readFileSync(join(ROOT, 'src', 'main.ts'), 'utf8'))![1]!
  .split(' ');

/** Ports that were free a moment ago; distinct among themselves. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(
    Array.from(
      { length: count },
      () =>
        new Promise<ReturnType<typeof createServer>>((resolve, reject) => {
          const server = createServer();
          server.once('error', reject);
          server.listen(0, '127.0.0.1', () => resolve(server));
        }),
    ),
  );
  const ports = servers.map((server) => (server.address() as { port: number }).port);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** One real process of the built binary, its output kept. */
export class Process {
  readonly child: ChildProcess;
  readonly exited: Promise<Exit>;
  stdout = '';
  stderr = '';

  constructor(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
    this.child = spawn(process.execPath, [...NODE_FLAGS, MAIN, ...args], {
      env: { ...process.env, NO_COLOR: '1', ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.child.stdout?.setEncoding('utf8').on('data', (text: string) => (this.stdout += text));
    this.child.stderr?.setEncoding('utf8').on('data', (text: string) => (this.stderr += text));
    this.exited = new Promise((resolve) => {
      this.child.once('exit', (code, signal) => resolve({ code, signal }));
    });
  }

  get running(): boolean {
    return this.child.exitCode === null && this.child.signalCode === null;
  }

  /** Resolves with the first line of stdout that matches; rejects when the process ends before. */
  async line(pattern: RegExp): Promise<string> {
    return await new Promise((resolve, reject) => {
      const look = (): boolean => {
        const found = this.stdout.split('\n').find((line) => pattern.test(line));
        if (found === undefined) return false;
        this.child.stdout?.off('data', look);
        resolve(found);
        return true;
      };
      if (look()) return;
      this.child.stdout?.on('data', look);
      void this.exited.then((exit) => {
        if (!look()) {
          reject(new Error(`ended with ${JSON.stringify(exit)} before ${String(pattern)}:\n${this.stderr}`));
        }
      });
    });
  }

  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<Exit> {
    this.child.kill(signal);
    return await this.exited;
  }
}

/** Waits for a condition, looking again as fast as is kind; the bound only ends a test that has failed. */
export async function until<T>(
  what: string,
  probe: () => Promise<T | undefined | null | false>,
  boundMs = 60_000,
): Promise<T> {
  const end = performance.now() + boundMs;
  let last: unknown = '';
  for (;;) {
    try {
      const value = await probe();
      if (value !== undefined && value !== null && value !== false) return value;
    } catch (error) {
      last = error;
    }
    if (performance.now() > end) throw new Error(`waited in vain for ${what}; last: ${String(last)}`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}

export interface RpcError {
  readonly code: number;
  readonly message: string;
  readonly data: { readonly code: string; readonly retriable: boolean; readonly [key: string]: unknown };
}

export class RpcFailure extends Error {
  readonly error: RpcError;
  constructor(error: RpcError) {
    super(`${error.data?.code}: ${error.message}`);
    this.error = error;
  }
}

/** One admin RPC over POST /rpc, no retries: the test sees what the server says. */
export async function rpc<T = Record<string, unknown>>(
  address: string,
  method: string,
  params: Readonly<Record<string, unknown>> = {},
  boundMs = 10_000,
): Promise<T> {
  const response = await fetch(`http://${address}/rpc`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    signal: AbortSignal.timeout(boundMs),
  });
  const answer = (await response.json()) as { result?: T; error?: RpcError };
  if (answer.error) throw new RpcFailure(answer.error);
  return answer.result as T;
}

export interface MemberStatus {
  readonly id: string;
  readonly role: string;
  readonly term: number;
  readonly commitIndex: number;
  readonly appliedIndex: number;
  readonly stateHash: string;
  readonly ready: boolean;
}

export interface ClusterStatus {
  readonly clusterId: string;
  readonly revision: number;
  readonly term: number;
  readonly leaderId: string | null;
  readonly members: readonly MemberStatus[];
  readonly placement: {
    readonly paused: boolean;
    readonly level: boolean;
    readonly leaderMovesLeft: number | null;
    readonly movesInFlight: number;
  };
}

export interface ClusterOptions {
  readonly nodes?: number;
  /** Further `serve` flags for every node. */
  readonly flags?: readonly string[];
  /** Further environment by node number from 0. */
  readonly env?: (node: number) => Readonly<Record<string, string>>;
}

/** A quorum of real processes under a directory of its own. */
export class Cluster {
  readonly directory = mkdtempSync(join(tmpdir(), 'evenkeel-test-'));
  readonly clusterId = 'test';
  readonly nodes: (Process | null)[] = [];
  readonly others: Process[] = [];
  private readonly options: ClusterOptions;
  private ports: number[] = [];

  constructor(options: ClusterOptions = {}) {
    this.options = options;
  }

  static async start(options: ClusterOptions = {}): Promise<Cluster> {
    const cluster = new Cluster(options);
    const count = options.nodes ?? 3;
    await cluster.reservePorts();
    await Promise.all(Array.from({ length: count }, (_, node) => cluster.startNode(node)));
    return cluster;
  }

  /** What `start` does first; for a test that starts its nodes itself. */
  async reservePorts(): Promise<void> {
    this.ports = await freePorts(2 * (this.options.nodes ?? 3));
  }

  address(node: number): string {
    return `127.0.0.1:${this.ports[2 * node]}`;
  }

  get endpoints(): string {
    return this.nodes.map((_, node) => this.address(node)).join(',');
  }

  serveArguments(node: number): string[] {
    const count = this.options.nodes ?? 3;
    const members = Array.from({ length: count }, (_, n) => `n${n + 1}=127.0.0.1:${this.ports[2 * n + 1]}`);
    return [
      'serve',
      ...['--node-id', `n${node + 1}`, '--cluster-id', this.clusterId, '--members', members.join(',')],
      ...['--listen', this.address(node), '--peer-listen', `127.0.0.1:${this.ports[2 * node + 1]}`],
      ...['--data-dir', join(this.directory, `n${node + 1}`), '--initial-cluster-state', 'new'],
      ...(this.options.flags ?? []),
    ];
  }

  /** Starts (again) and waits for its ready line. */
  async startNode(node: number): Promise<Process> {
    const started = new Process(this.serveArguments(node), this.options.env?.(node) ?? {});
    this.nodes[node] = started;
    await started.line(/^ready /);
    return started;
  }

  /** A process of the binary that ends with the cluster (`broker run`, a CLI command). */
  run(args: readonly string[], env: Readonly<Record<string, string>> = {}): Process {
    const started = new Process(args, { EVENKEEL_ENDPOINTS: this.endpoints, ...env });
    this.others.push(started);
    return started;
  }

  async cli(...args: string[]): Promise<{ code: number | null; stdout: string; stderr: string }> {
    const started = this.run(args);
    const { code } = await started.exited;
    return { code, stdout: started.stdout, stderr: started.stderr };
  }

  /** Imports a cluster file through the CLI, as an operator would. */
  async import(file: Record<string, unknown>): Promise<void> {
    const path = join(this.directory, 'cluster.json');
    writeFileSync(path, JSON.stringify(file));
    const { code, stderr } = await this.cli('import', '-f', path);
    if (code !== 0) throw new Error(`import ended with ${code}: ${stderr}`);
  }

  async killNode(node: number, signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    await this.nodes[node]?.kill(signal);
    this.nodes[node] = null;
  }

  /** From any node that answers. */
  async status(): Promise<ClusterStatus> {
    for (const [node, running] of this.nodes.entries()) {
      if (!running?.running) continue;
      try {
        return await rpc<ClusterStatus>(this.address(node), 'cluster.status', { consistency: 'local' });
      } catch {
        // The next one may know better.
      }
    }
    throw new Error('no node answers');
  }

  /** The number (from 0) of the node that leads and says so itself. */
  async leader(): Promise<number> {
    return await until('a leader', async () => {
      const { members } = await this.status();
      const leader = members.find((member) => member.role === 'leader');
      return leader ? { node: Number(leader.id.slice(1)) - 1 } : undefined;
    }).then(({ node }) => node);
  }

  /** Waits until every running member has applied the same index; answers the one hash they share. */
  async sameHash(): Promise<string> {
    return await until('equal state hashes', async () => {
      const { members } = await this.status();
      const running = members.filter((member) => member.role !== 'unreachable');
      const [first] = running;
      if (!first || running.length !== this.nodes.filter((node) => node?.running).length) return undefined;
      if (running.some((member) => member.appliedIndex !== first.appliedIndex)) return undefined;
      if (running.some((member) => member.stateHash !== first.stateHash)) {
        throw new Error(`hashes differ at ${first.appliedIndex}: ${JSON.stringify(running)}`);
      }
      return first.stateHash;
    });
  }

  async stop(): Promise<void> {
    const all = [...this.others, ...this.nodes].filter((started) => started?.running);
    await Promise.all(all.flatMap((started) => (started ? [started.kill('SIGKILL')] : [])));
    rmSync(this.directory, { recursive: true, force: true });
  }
}
