import type { Plan, Reports, Snapshot } from '../../placement/index.ts';
import { Broker, type BrokerOptions } from '../../src/broker/index.ts';
import type { BrokerClientOptions } from '../../src/client/index.ts';
import type { Command } from '../../src/command/index.ts';
import { Control, DEFAULT_BROKER_TIMINGS, InlinePlanner } from '../../src/control/index.ts';
import { SimDisk, SimNetwork, SimProcess, SimWorld } from '../../src/sim/index.ts';
import { createBrokerSurface, type BrokerSurface } from '../../src/wire/index.ts';
import { LocalQuorum, type LocalMember } from './local-control-plane.ts';

export interface WorldNode {
  readonly process: SimProcess;
  readonly plane: LocalMember;
  readonly control: Control;
  readonly surface: BrokerSurface;
  readonly address: string;
}

export interface WorldBroker {
  readonly process: SimProcess;
  readonly broker: Broker;
}

const NO_PLAN: Plan = {
  steps: [],
  waiting: [],
  unplaceable: [],
  unspread: [],
  conflicts: [],
  minimumLeaderMoves: 0,
  nextDeadlineMs: null,
  levels: {
    leaders: {},
    leadersTotal: {},
    copiesTotal: {},
    maxLeaderSpreadPerResource: 0,
    leaderSpreadTotal: 0,
    copySpreadTotal: 0,
    maxCopySpreadPerResource: 0,
    minZonesPerShard: 0,
  },
};

export const QUIET = { info: () => {}, warn: () => {}, error: () => {} };

/** Nodes and brokers in one virtual world; the quorum between the nodes is the tests' own. */
export class BrokerWorld {
  readonly world: SimWorld;
  readonly network: SimNetwork;
  readonly quorum: LocalQuorum;
  readonly nodes = new Map<string, WorldNode>();
  readonly #plan: (snapshot: Snapshot, reports: Reports) => Plan;
  readonly #disks = new Map<string, SimDisk>();
  #lives = 0;

  constructor(options: {
    seed?: number;
    plan?: (snapshot: Snapshot, reports: Reports) => Plan;
    ring?: { maxSets: number; maxRows: number };
  }) {
    this.world = new SimWorld(options.seed ?? 1);
    this.network = new SimNetwork(this.world, { lossyPaths: [] });
    this.quorum = new LocalQuorum('test', options.ring);
    this.#plan = options.plan ?? (() => NO_PLAN);
  }

  process(host: string): SimProcess {
    return new SimProcess(this.world, host, { life: ++this.#lives, driftPart: 0, wallOffsetMs: 0 });
  }

  /** A node that serves `/broker` at `<id>:1`. */
  async node(id: string): Promise<WorldNode> {
    const process = this.process(id);
    const plane = this.quorum.join(id, process.clock);
    const control = new Control({
      plane,
      clock: process.clock,
      timings: DEFAULT_BROKER_TIMINGS,
      planner: new InlinePlanner(plane.state, this.#plan),
      log: QUIET,
    });
    control.start();
    const surface = createBrokerSurface({ plane, clock: process.clock });
    const listener = await this.network
      .netOf(process)
      .listen(`${id}:1`, { routes: { '/broker': surface.route } });
    const node = { process, plane, control, surface, address: listener.address };
    this.nodes.set(id, node);
    return node;
  }

  get endpoints(): string[] {
    return [...this.nodes.values()].map(({ address }) => address);
  }

  /** What a broker client on that host needs. */
  clientOptions(
    process: SimProcess,
  ): Pick<BrokerClientOptions, 'net' | 'clock' | 'random' | 'endpoints' | 'clusterId'> {
    return {
      net: this.network.netOf(process),
      clock: process.clock,
      random: process.random,
      endpoints: this.endpoints,
      clusterId: 'test',
    };
  }

  disk(host: string): SimDisk {
    let disk = this.#disks.get(host);
    if (disk === undefined) {
      disk = new SimDisk(this.world, host);
      this.#disks.set(host, disk);
    }
    return disk;
  }

  /** A reference broker on a host of its id, with that host's disk. Starts once time runs. */
  broker(id: string, options: Partial<BrokerOptions> = {}): WorldBroker {
    const process = this.process(id);
    const broker = new Broker({
      ...this.clientOptions(process),
      id,
      listen: `${id}:1`,
      dataDir: 'data',
      copyRate: 1_000,
      seedRecords: 0,
      disk: this.disk(id).diskOf(process),
      log: QUIET,
      ...options,
    });
    broker.start().catch((error: unknown) => this.world.fail(error as Error));
    return { process, broker };
  }

  async run(ms: number): Promise<void> {
    await this.world.run({ untilMs: this.world.nowMs + ms });
  }

  /** Runs until it holds; throws after `withinMs` of virtual time. */
  async until(what: string, holds: () => boolean, withinMs = 60_000): Promise<void> {
    const untilMs = this.world.nowMs + withinMs;
    await this.world.run({ untilMs, until: holds });
    if (!holds()) throw new Error(`not within ${withinMs} virtual ms: ${what}`);
  }

  /** Lets time run until the promise has settled. */
  async settled<T>(promise: Promise<T>, withinMs = 60_000): Promise<T> {
    let done = false;
    const noted = promise.finally(() => (done = true));
    noted.catch(() => {});
    await this.until('the promise settles', () => done, withinMs);
    return noted;
  }

  /** Writes a command through whoever leads. */
  write(command: Command): Promise<unknown> {
    const leader = this.quorum.leader;
    if (leader === undefined) throw new Error('nobody leads');
    return this.settled(leader.propose(command, { deadlineMs: 10_000 }));
  }
}
