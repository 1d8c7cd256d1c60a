import type { Clock } from '../../raft/index.ts';
import { DEFAULT_BROKER_TIMINGS } from '../../src/control/index.ts';
import { SILENT_LOGGER } from '../../src/logger.ts';
import { startNode, type NodeOptions, type RunningNode } from '../../src/server.ts';
import { SimDisk, SimNetwork, SimProcess, SimWorld } from '../../src/sim/index.ts';

type Observe = NonNullable<NodeOptions['observe']>;

/** Leaves everything as it is: a harness overrides what it looks at. */
const NOTHING_OBSERVED: Observe = {
  storage: (storage) => storage,
  transport: (transport) => transport,
  stateMachine: (machine) => machine,
};

/** Whole nodes, as `evenkeel serve` runs them, in one virtual world. */
export class NodeWorld {
  readonly world: SimWorld;
  readonly network: SimNetwork;
  readonly nodes = new Map<string, { readonly process: SimProcess; readonly node: RunningNode }>();
  /** Why a node stopped itself, by its id. */
  readonly fatal = new Map<string, Error>();
  readonly #ids: readonly string[];
  readonly #disks = new Map<string, SimDisk>();
  #lives = 0;

  constructor(ids: readonly string[], seed = 1) {
    this.#ids = ids;
    this.world = new SimWorld(seed);
    this.network = new SimNetwork(this.world, { lossyPaths: [] });
    for (const id of ids) this.#disks.set(id, new SimDisk(this.world, id));
  }

  /** Starts these nodes, all at once: a new group forms only when every member answers. */
  async start(ids: readonly string[], observe: (id: string) => Partial<Observe> = () => ({})): Promise<void> {
    const starting = ids.map((id) => this.#start(id, { ...NOTHING_OBSERVED, ...observe(id) }));
    await this.settled(Promise.all(starting));
  }

  async #start(id: string, observe: Observe): Promise<void> {
    this.fatal.delete(id);
    const process = new SimProcess(this.world, id, { life: ++this.#lives, driftPart: 0, wallOffsetMs: 0 });
    const node = await startNode({
      config: {
        nodeId: id,
        clusterId: 'test',
        members: new Map(this.#ids.map((member) => [member, `${member}:7501`])),
        listen: `${id}:7401`,
        peerListen: `${id}:7501`,
        dataDir: 'data',
        initialClusterState: 'new',
        logLevel: 'silent',
        raft: { electionTimeoutMs: 1_000, heartbeatMs: 100 },
        broker: DEFAULT_BROKER_TIMINGS,
      },
      clock: process.clock,
      net: this.network.netOf(process),
      disk: this.#disk(id).diskOf(process),
      random: process.random,
      logger: SILENT_LOGGER,
      observe,
      onFatal: (error) => void this.fatal.set(id, error),
    });
    this.nodes.set(id, { process, node });
  }

  #disk(id: string): SimDisk {
    const disk = this.#disks.get(id);
    if (disk === undefined) throw new Error(`no host ${id}`);
    return disk;
  }

  node(id: string): RunningNode {
    const found = this.nodes.get(id);
    if (found === undefined) throw new Error(`${id} does not run`);
    return found.node;
  }

  /** What its deadlines are measured by. */
  clockOf(id: string): Clock {
    const found = this.nodes.get(id);
    if (found === undefined) throw new Error(`${id} does not run`);
    return found.process.clock;
  }

  /** kill -9. */
  kill(id: string): void {
    this.nodes.get(id)?.process.kill();
    this.nodes.delete(id);
  }

  cut(from: string, to: string, cut = true): void {
    this.network.setCut(from, to, cut);
  }

  async leader(among: readonly string[] = this.#ids): Promise<string> {
    const leading = (): string | undefined =>
      among.find((id) => this.nodes.has(id) && this.node(id).plane.leadership().established);
    await this.until('a leader', () => leading() !== undefined);
    return leading() ?? '';
  }

  /** Runs until it holds; throws after `withinMs` of virtual time. */
  async until(what: string, holds: () => boolean, withinMs = 60_000): Promise<void> {
    await this.world.run({ untilMs: this.world.nowMs + withinMs, until: holds });
    if (!holds()) throw new Error(`not within ${withinMs} virtual ms: ${what}`);
  }

  async run(ms: number): Promise<void> {
    await this.world.run({ untilMs: this.world.nowMs + ms });
  }

  /** Lets time run until the promise has settled. */
  async settled<T>(promise: Promise<T>): Promise<T> {
    let done = false;
    const noted = promise.finally(() => (done = true));
    noted.catch(() => undefined);
    await this.until('the promise settles', () => done);
    return noted;
  }
}
