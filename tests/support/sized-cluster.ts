import { readFileSync } from 'node:fs';
import type { ShardReportMessage, WatchedAssignment } from '../../src/broker-protocol.ts';
import { BrokerClient, type ViewUpdate } from '../../src/client/index.ts';
import { createSystemClock } from '../../src/clock.ts';
import { createWebSocketNet } from '../../src/net-ws.ts';
import { createSystemRandom } from '../../src/random.ts';
import { rpc, until, type Cluster } from './cluster.ts';

/** What a light broker has gathered is sent this often, ms: thousands of shards open at once. */
const GATHER_MS = 500;
/** Resources that are created at once, and how long one may take on a busy machine. */
const CREATING = 16;
const CREATE_BOUND_MS = 60_000;

const net = createWebSocketNet();
const clock = createSystemClock();
const random = createSystemRandom();

/**
 * A broker without data for clusters of a hundred thousand shards: a broker's own client, and a look at each row once as it
 * changes. It opens what it leads, and says at once that copies hold everything and that fences have drained.
 */
export class LightBroker {
  readonly id: string;
  readonly #client: BrokerClient;
  /** By shard: what is to be said, until it is answered. */
  readonly #confirms = new Map<string, { readonly shard: string; readonly generation: number }>();
  readonly #reports = new Map<string, ShardReportMessage>();
  readonly #watches: Promise<void>;
  #stopped = false;

  constructor(options: { id: string; zone: string; clusterId: string; endpoints: readonly string[] }) {
    const { id, zone, clusterId, endpoints } = options;
    this.id = id;
    let watching = (): void => {};
    this.#watches = new Promise((resolve) => (watching = resolve));
    this.#client = new BrokerClient({
      net,
      clock,
      random,
      endpoints,
      clusterId,
      registration: { id, zone, addresses: { data: '127.0.0.1:1' }, storeId: `store-${id}` },
      handlers: {
        onView: (update) => {
          this.#look(update);
          watching();
        },
      },
    });
  }

  /** Keeps connected until `stop`; resolves once it is registered and watches. */
  async start(): Promise<void> {
    this.#client.start();
    await this.#watches;
    this.#gather();
  }

  stop(): void {
    this.#stopped = true;
    this.#client.stop();
  }

  #gather(): void {
    if (this.#stopped) return;
    setTimeout(() => void this.#send().finally(() => this.#gather()), GATHER_MS);
  }

  async #send(): Promise<void> {
    await say(this.#confirms, (shards) => this.#client.confirm(shards));
    await say(this.#reports, (shards) => this.#client.report(shards));
  }

  #look(update: ViewUpdate): void {
    const { assignments } = this.#client.view;
    const shards = update.kind === 'all' ? assignments.keys() : update.shards;
    for (const shard of shards) {
      this.#confirms.delete(shard);
      this.#reports.delete(shard);
      const row = assignments.get(shard);
      if (row?.leader === this.id) this.#lead(row);
    }
  }

  #lead({ shard, generation, state, replicas, inSync, move }: WatchedAssignment): void {
    const report = { shard, generation, leaderOffset: 0, followers: {} };
    if (state === 'assigning') this.#confirms.set(shard, { shard, generation });
    else if (inSync.length < replicas.length) this.#reports.set(shard, { ...report, inSync: replicas });
    else if (state === 'draining' && move !== null) this.#reports.set(shard, { ...report, drained: true });
  }
}

/** What is not answered, or late, is said again with the next. */
async function say<Row>(
  waiting: Map<string, Row>,
  send: (rows: readonly Row[]) => Promise<unknown>,
): Promise<void> {
  const said = [...waiting];
  if (said.length === 0) return;
  try {
    await send(said.map(([, row]) => row));
  } catch {
    return;
  }
  for (const [shard, row] of said) if (waiting.get(shard) === row) waiting.delete(shard);
}

export interface Layout {
  readonly brokers: number;
  /** Streams of 12 shards, caches of 1, all of three copies. */
  readonly streams: number;
  readonly caches: number;
}

export function shardsOf({ streams, caches }: Layout): number {
  return 12 * streams + caches;
}

/** Brokers `from` (1 is the first) to `to`, in three zones, spread over the nodes. */
export async function joinBrokers(cluster: Cluster, from: number, to: number): Promise<LightBroker[]> {
  const brokers: LightBroker[] = [];
  const endpoints = cluster.nodes.map((_, node) => cluster.address(node));
  for (let n = from; n <= to; n++) {
    const zone = ['a', 'b', 'c'][n % 3] ?? 'a';
    const { clusterId } = cluster;
    brokers.push(new LightBroker({ id: `b${n}`, zone, clusterId, endpoints }));
  }
  await Promise.all(brokers.map((broker) => broker.start()));
  return brokers;
}

export async function createAll(cluster: Cluster, { streams, caches }: Layout): Promise<void> {
  const address = cluster.address(await cluster.leader());
  const all = [
    ...Array.from({ length: streams }, (_, n) => ({ kind: 'stream', name: `s${n}`, shards: 12 })),
    ...Array.from({ length: caches }, (_, n) => ({ kind: 'cache', name: `c${n}`, shards: 1 })),
  ];
  const next = all.values();
  const worker = async (): Promise<void> => {
    for (const resource of next) {
      await rpc(address, 'resource.create', { ...resource, replicationFactor: 3 }, CREATE_BOUND_MS);
    }
  };
  await Promise.all(Array.from({ length: CREATING }, worker));
}

/**
 * Until every shard is placed, led and in sync everywhere, and the planner wants nothing. No metrics are read for it: each
 * scrape begins the event loop's figures anew.
 */
export async function settled(cluster: Cluster, boundMs: number): Promise<void> {
  await until(
    'every shard placed and level',
    async () => {
      const { placement, leaderId } = await cluster.status();
      if (leaderId === null || !placement.level) return false;
      const address = cluster.address(Number(leaderId.slice(1)) - 1);
      const { checks } = await rpc<{ checks: { name: string; ok: boolean }[] }>(address, 'cluster.health');
      return ['leaders', 'copies'].every((name) => checks.find((check) => check.name === name)?.ok);
    },
    boundMs,
  );
}

/** A scrape of one node: values by name, with the labels but for the node's. */
export async function metricsOf(cluster: Cluster, node: number): Promise<Map<string, number>> {
  const response = await fetch(`http://${cluster.address(node)}/metrics`);
  const values = new Map<string, number>();
  for (const line of (await response.text()).split('\n')) {
    const [, name = '', labels = '', value] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
    const rest = labels.split(',').filter((label) => label !== '' && !label.startsWith('node='));
    values.set(rest.length === 0 ? name : `${name}{${rest.join(',')}}`, Number(value));
  }
  return values;
}

/** Resident memory of a node's process, MiB; from /proc. */
export function residentMib(cluster: Cluster, node: number): number {
  const status = readFileSync(`/proc/${cluster.nodes[node]?.child.pid}/status`, 'utf8');
  return Math.round(Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024);
}
