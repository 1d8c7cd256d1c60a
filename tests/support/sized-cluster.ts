import { readFileSync } from 'node:fs';
import { WebSocket } from 'ws';
import { rpc, until, type Cluster } from './cluster.ts';
import type { WatchedAssignment } from './watcher.ts';

/** What a light broker has gathered is sent this often, ms: thousands of shards open at once. */
const GATHER_MS = 500;
const HEARTBEAT_MS = 1_000;
/** Resources that are created at once, and how long one may take on a busy machine. */
const CREATING = 16;
const CREATE_BOUND_MS = 60_000;

interface Push {
  readonly id?: number;
  readonly type: string;
  readonly incarnation?: number;
  readonly assignments?: readonly WatchedAssignment[];
  readonly changes?: readonly { readonly kind: string; readonly assignment?: WatchedAssignment }[];
}

/**
 * A broker without data for clusters of a hundred thousand shards: it looks at each row once as it changes, opens what it
 * leads, and says at once that copies hold everything and that fences have drained.
 */
export class LightBroker {
  readonly id: string;
  readonly #zone: string;
  readonly #clusterId: string;
  readonly #endpoints: readonly string[];
  #endpoint: number;
  readonly #waiting = new Map<number, (answer: Push) => void>();
  #confirms = new Map<string, object>();
  #reports = new Map<string, object>();
  #socket: WebSocket | null = null;
  #timers: NodeJS.Timeout[] = [];
  #incarnation: number | null = null;
  #lastId = 0;
  #stopped = false;

  /** It begins with the endpoint at `first` and goes on to the next one whenever its connection closes. */
  constructor(options: {
    id: string;
    zone: string;
    clusterId: string;
    endpoints: readonly string[];
    first: number;
  }) {
    this.id = options.id;
    this.#zone = options.zone;
    this.#clusterId = options.clusterId;
    this.#endpoints = options.endpoints;
    this.#endpoint = options.first;
  }

  /** Keeps connected until `stop`; resolves once it is registered and watches. */
  async start(): Promise<void> {
    await new Promise<void>((resolve) => this.#connect(resolve));
  }

  stop(): void {
    this.#stopped = true;
    this.#disarm();
    this.#socket?.terminate();
  }

  #connect(ready: () => void): void {
    if (this.#stopped) return;
    const endpoint = this.#endpoints[this.#endpoint++ % this.#endpoints.length];
    const socket = new WebSocket(`ws://${endpoint}/broker`, 'evenkeel.broker.v1+json', {
      perMessageDeflate: false,
    });
    this.#socket = socket;
    socket.on('open', () => void this.#join().then((joined) => (joined ? ready() : socket.terminate())));
    socket.on('message', (data: Buffer) => this.#take(JSON.parse(data.toString('utf8')) as Push));
    socket.on('error', () => socket.terminate());
    socket.on('close', () => {
      this.#disarm();
      for (const settle of this.#waiting.values()) settle({ type: 'closed' });
      this.#waiting.clear();
      if (!this.#stopped) setTimeout(() => this.#connect(ready), 100);
    });
  }

  async #join(): Promise<boolean> {
    const addresses = { data: '127.0.0.1:1' };
    const broker = { id: this.id, zone: this.#zone, addresses, storeId: `store-${this.id}` };
    const resumed = this.#incarnation === null ? {} : { incarnation: this.#incarnation };
    const answer = await this.#ask('register', { clusterId: this.#clusterId, broker, ...resumed });
    if (answer.type !== 'register.ok') {
      this.#incarnation = null;
      return false;
    }
    this.#incarnation = answer.incarnation ?? null;
    await this.#ask('watch', { filter: { broker: this.id } });
    this.#timers = [
      setInterval(() => void this.#beat(), HEARTBEAT_MS),
      setInterval(() => void this.#send(), GATHER_MS),
    ];
    return true;
  }

  #disarm(): void {
    for (const timer of this.#timers) clearInterval(timer);
    this.#timers = [];
  }

  async #beat(): Promise<void> {
    const answer = await this.#ask('heartbeat', { incarnation: this.#incarnation });
    if (answer.type === 'error') this.#socket?.terminate();
  }

  async #send(): Promise<void> {
    const { confirms, reports } = { confirms: this.#confirms, reports: this.#reports };
    this.#confirms = new Map();
    this.#reports = new Map();
    const incarnation = this.#incarnation;
    if (confirms.size > 0) await this.#ask('confirm', { incarnation, shards: [...confirms.values()] });
    if (reports.size > 0) await this.#ask('report', { incarnation, shards: [...reports.values()] });
  }

  #ask(type: string, fields: Readonly<Record<string, unknown>>): Promise<Push> {
    const { socket, id } = { socket: this.#socket, id: ++this.#lastId };
    if (socket?.readyState !== WebSocket.OPEN) return Promise.resolve({ type: 'closed' });
    return new Promise((resolve) => {
      this.#waiting.set(id, resolve);
      socket.send(JSON.stringify({ id, type, ...fields }));
    });
  }

  #take(push: Push): void {
    if (push.id !== undefined) {
      this.#waiting.get(push.id)?.(push);
      this.#waiting.delete(push.id);
      return;
    }
    for (const row of push.assignments ?? []) this.#look(row);
    for (const { assignment } of push.changes ?? []) if (assignment !== undefined) this.#look(assignment);
  }

  #look({ shard, leader, generation, state, replicas, inSync, move }: WatchedAssignment): void {
    this.#confirms.delete(shard);
    this.#reports.delete(shard);
    if (leader !== this.id) return;
    const report = { shard, generation, leaderOffset: 0, followers: {} };
    if (state === 'assigning') this.#confirms.set(shard, { shard, generation });
    else if (inSync.length < replicas.length) this.#reports.set(shard, { ...report, inSync: replicas });
    else if (state === 'draining' && move !== null) this.#reports.set(shard, { ...report, drained: true });
  }
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
    brokers.push(new LightBroker({ id: `b${n}`, zone, clusterId, endpoints, first: n }));
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
