import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Cluster, freePorts, rpc, until, type Process } from '../support/cluster.ts';
import { Link } from './link.ts';

export const BROKERS = ['b1', 'b2', 'b3', 'b4'] as const;
const REDIRECT = pathToFileURL(join(import.meta.dirname, 'redirect.mjs')).href;
/** Short, so that a silent broker is replaced soon; long enough for the beats of a busy machine. */
const FLAGS = [
  ...['--heartbeat-ms', '500', '--lease-ms', '3500', '--expiry-ms', '4000', '--margin-ms', '300'],
  ...['--log-level', 'warn'],
];
/** A move that makes no progress is given up before a round's patience ends. */
const SHORT_LIMITS = { moveStallMs: 4_000, fenceTimeoutMs: 4_000 };
const RESOURCES = [
  { name: 'two', shards: 4, replicationFactor: 2 },
  { name: 'three', shards: 2, replicationFactor: 3 },
];
/** All copies in sync again after a fault; a copy that lacks records is counted out after 10 s. */
const IN_SYNC_BOUND_MS = 90_000;

export interface Row {
  readonly shard: string;
  readonly leader: string;
  readonly replicas: readonly string[];
  readonly inSync: readonly string[];
  readonly state: string;
  readonly move: object | null;
}

/** Three nodes and four reference brokers as processes, and a proxy for each way from broker to broker. */
export class Rig {
  readonly cluster: Cluster;
  readonly shards = RESOURCES.flatMap(({ name, shards }) =>
    Array.from({ length: shards }, (_, n) => `stream:${name}/${n}`),
  );
  readonly #brokers = new Map<string, Process>();
  readonly #ports = new Map<string, number>();
  readonly #links = new Map<string, Link>();
  /** Every broker process there was, for a report of what it said. */
  readonly #started: { readonly id: string; readonly process: Process }[] = [];

  private constructor(cluster: Cluster) {
    this.cluster = cluster;
  }

  static async start(): Promise<Rig> {
    const rig = new Rig(await Cluster.start({ flags: FLAGS }));
    try {
      await rig.#fill();
    } catch (error) {
      await rig.stop();
      throw error;
    }
    return rig;
  }

  async #fill(): Promise<void> {
    const ports = await freePorts(BROKERS.length);
    for (const [i, id] of BROKERS.entries()) this.#ports.set(id, ports[i]!);
    for (const from of BROKERS)
      for (const to of BROKERS)
        if (from !== to) this.#links.set(`${from} ${to}`, await Link.open(this.port(to)));
    await Promise.all(BROKERS.map((id) => this.startBroker(id)));
    await until('every broker to register', async () => {
      const { items } = await this.rpc<{ items: object[] }>('broker.list');
      return items.length === BROKERS.length;
    });
    await this.rpc('placement.policy.set', SHORT_LIMITS);
    for (const resource of RESOURCES) await this.rpc('resource.create', { kind: 'stream', ...resource });
    await this.inSync();
  }

  async stop(): Promise<void> {
    await this.cluster.stop();
    for (const link of this.#links.values()) link.close();
  }

  port(id: string): number {
    const port = this.#ports.get(id);
    if (port === undefined) throw new Error(`no broker ${id}`);
    return port;
  }

  directory(id: string): string {
    return join(this.cluster.directory, id);
  }

  broker(id: string): Process {
    const process = this.#brokers.get(id);
    if (process === undefined) throw new Error(`${id} was not started`);
    return process;
  }

  /** A broker's process on any directory; it need not live. */
  spawn(id: string, options: { readonly directory: string; readonly port: number }): Process {
    const links = BROKERS.filter((to) => to !== id).map((to) => [this.port(to), this.link(id, to).port]);
    const process = this.cluster.run(
      [
        ...['broker', 'run', '--id', id, '--cluster-id', this.cluster.clusterId, '--log-level', 'info'],
        ...['--data-dir', options.directory, '--listen', `127.0.0.1:${options.port}`],
      ],
      { NODE_OPTIONS: `--import ${REDIRECT}`, TEST_LINKS: JSON.stringify(Object.fromEntries(links)) },
    );
    this.#started.push({ id, process });
    return process;
  }

  async startBroker(id: string): Promise<void> {
    const process = this.spawn(id, { directory: this.directory(id), port: this.port(id) });
    this.#brokers.set(id, process);
    await process.line(/^ready /);
  }

  link(from: string, to: string): Link {
    const link = this.#links.get(`${from} ${to}`);
    if (link === undefined) throw new Error(`no link from ${from} to ${to}`);
    return link;
  }

  /** From whichever node answers. */
  async rpc<T>(method: string, params: Readonly<Record<string, unknown>> = {}): Promise<T> {
    let node = 0;
    return await until(method, async () =>
      rpc<T>(this.cluster.address(node++ % this.cluster.nodes.length), method, params),
    );
  }

  async rows(): Promise<readonly Row[]> {
    const { items } = await this.rpc<{ items: Row[] }>('shard.list');
    return items;
  }

  /** Waits until every copy is in sync, every shard led and nothing on the move. */
  async inSync(): Promise<void> {
    await until(
      'every copy in sync',
      async () => {
        const rows = await this.rows();
        const left = rows.filter(
          ({ state, move, inSync, replicas }) =>
            state !== 'active' || move !== null || inSync.length !== replicas.length || replicas.length < 2,
        );
        if (rows.length === this.shards.length && left.length === 0) return true;
        throw new Error(JSON.stringify(left));
      },
      IN_SYNC_BOUND_MS,
    );
  }

  /** What the processes of the brokers and nodes said last. */
  said(lines: number): string {
    const tail = (name: string, { child, stderr }: Process): string =>
      `--- ${name} (exit ${child.exitCode ?? child.signalCode ?? 'none'})\n${stderr.trimEnd().split('\n').slice(-lines).join('\n')}`;
    const nodes = this.cluster.nodes.flatMap((node, n) => (node === null ? [] : [tail(`n${n + 1}`, node)]));
    return [...this.#started.map(({ id, process }) => tail(id, process)), ...nodes].join('\n');
  }
}
