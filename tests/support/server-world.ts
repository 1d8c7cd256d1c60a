import type { Logger } from '../../src/logger.ts';
import { DEFAULT_BROKER_TIMINGS } from '../../src/control/index.ts';
import { startNode, type NodeOptions, type RunningNode } from '../../src/server.ts';
import { SimDisk, SimNetwork, SimProcess, SimWorld } from '../../src/sim/index.ts';

/** One life of one node: its process, what it became, and what it said. */
export class ServerLife {
  readonly process: SimProcess;
  readonly logged: string[] = [];
  node: RunningNode | null = null;
  /** Why it could not start. */
  refused: unknown = null;
  fatal: Error | null = null;

  constructor(process: SimProcess) {
    this.process = process;
  }

  get running(): RunningNode {
    if (this.node === null) throw new Error(`${this.process.host} does not serve: ${String(this.refused)}`);
    return this.node;
  }
}

/** Nodes as `evenkeel serve` composes them, in one virtual world. */
export class ServerWorld {
  readonly world: SimWorld;
  readonly network: SimNetwork;
  readonly disks = new Map<string, SimDisk>();
  #lives = 0;

  constructor(seed = 1) {
    this.world = new SimWorld(seed);
    this.network = new SimNetwork(this.world, { lossyPaths: [] });
  }

  disk(id: string): SimDisk {
    const known = this.disks.get(id) ?? new SimDisk(this.world, id);
    this.disks.set(id, known);
    return known;
  }

  process(host: string): SimProcess {
    return new SimProcess(this.world, host, { life: ++this.#lives, driftPart: 0, wallOffsetMs: 0 });
  }

  /** Begins to start a node; it goes on as the world runs. */
  begin(
    id: string,
    change: Partial<NodeOptions['config']> = {},
    members: readonly string[] = ['n1', 'n2', 'n3'],
    observe?: NodeOptions['observe'],
  ): ServerLife {
    const process = this.process(id);
    const life = new ServerLife(process);
    const note = (fields: object, message: string): void =>
      void life.logged.push(`${message} ${JSON.stringify(fields)}`);
    const logger: Logger = {
      ...{ debug: () => {}, info: note, warn: note, error: note, fatal: note },
      child: () => logger,
    };
    const config: NodeOptions['config'] = {
      ...{ nodeId: id, clusterId: 'test', listen: `${id}:7401`, peerListen: `${id}:7501`, dataDir: 'data' },
      members: new Map(members.map((member) => [member, `${member}:7501`])),
      ...{ initialClusterState: 'new', logLevel: 'silent', broker: DEFAULT_BROKER_TIMINGS },
      raft: { electionTimeoutMs: 1_000, heartbeatMs: 100 },
      ...change,
    };
    const { clock, random } = process;
    const [net, disk] = [this.network.netOf(process), this.disk(id).diskOf(process)];
    const onFatal = (error: Error): void => void (life.fatal = error);
    const watched = observe === undefined ? {} : { observe };
    startNode({ config, clock, net, disk, random, logger, onFatal, ...watched }).then(
      (node) => (life.node = node),
      (error: unknown) => (life.refused = error),
    );
    return life;
  }

  /** Runs until the condition holds; throws where it does not within `boundMs` of virtual time. */
  async until(what: string, holds: () => boolean, boundMs = 60_000): Promise<void> {
    const untilMs = this.world.nowMs + boundMs;
    await this.world.run({ untilMs, until: holds });
    if (!holds()) throw new Error(`waited in vain for ${what}`);
  }

  async advance(ms: number): Promise<void> {
    await this.world.run({ untilMs: this.world.nowMs + ms });
  }

  /** Runs the world until the promise has settled. */
  async outcome<T>(promise: Promise<T>): Promise<T> {
    let settled = false;
    // What it rejects with is the caller's, below.
    void promise.catch(() => {}).finally(() => (settled = true));
    await this.until('a promise', () => settled);
    return promise;
  }

  async quorum(): Promise<[ServerLife, ServerLife, ServerLife]> {
    const lives: [ServerLife, ServerLife, ServerLife] = [
      this.begin('n1'),
      this.begin('n2'),
      this.begin('n3'),
    ];
    await this.until('a quorum', () => this.leader(lives) !== undefined);
    return lives;
  }

  leader(lives: readonly ServerLife[]): ServerLife | undefined {
    return lives.find((life) => life.process.alive && life.node?.plane.leadership().established);
  }

  /** kill -9. */
  kill(life: ServerLife): void {
    life.process.kill();
    this.disk(life.process.host).settle(false);
  }
}
