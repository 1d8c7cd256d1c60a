import type { Clock } from '../../raft/index.ts';
import type { NodeOptions, RunningNode } from '../../src/server.ts';
import type { SimNetwork, SimWorld } from '../../src/sim/index.ts';
import { ServerWorld, type ServerLife } from './server-world.ts';

type Observe = NonNullable<NodeOptions['observe']>;

/** Leaves everything as it is: a harness overrides what it looks at. */
const NOTHING_OBSERVED: Observe = {
  storage: (storage) => storage,
  transport: (transport) => transport,
  stateMachine: (machine) => machine,
};

/** A `ServerWorld` whose nodes are named by their ids, whichever life they are in. */
export class NodeWorld {
  readonly #servers: ServerWorld;
  readonly #ids: readonly string[];
  readonly #lives = new Map<string, ServerLife>();

  constructor(ids: readonly string[], seed = 1) {
    this.#ids = ids;
    this.#servers = new ServerWorld(seed);
  }

  get world(): SimWorld {
    return this.#servers.world;
  }

  get network(): SimNetwork {
    return this.#servers.network;
  }

  /** Starts these nodes, all at once: a new group forms only when every member answers. */
  async start(ids: readonly string[], observe: (id: string) => Partial<Observe> = () => ({})): Promise<void> {
    const lives = ids.map((id) => {
      const life = this.#servers.begin(id, {}, this.#ids, { ...NOTHING_OBSERVED, ...observe(id) });
      this.#lives.set(id, life);
      return life;
    });
    await this.until('they serve', () =>
      lives.every(({ node, refused }) => node !== null || refused !== null),
    );
    for (const { refused } of lives) if (refused !== null) throw refused;
  }

  node(id: string): RunningNode {
    return this.#life(id).running;
  }

  /** What its deadlines are measured by. */
  clockOf(id: string): Clock {
    return this.#life(id).process.clock;
  }

  /** Why it stopped itself. */
  fatalOf(id: string): Error | null {
    return this.#life(id).fatal;
  }

  kill(id: string): void {
    this.#servers.kill(this.#life(id));
    this.#lives.delete(id);
  }

  cut(from: string, to: string, cut = true): void {
    this.network.setCut(from, to, cut);
  }

  async leader(among: readonly string[] = this.#ids): Promise<string> {
    const leading = (): string | undefined =>
      among.find((id) => this.#lives.get(id)?.node?.plane.leadership().established === true);
    await this.until('a leader', () => leading() !== undefined);
    return leading() ?? '';
  }

  /** Runs until it holds; throws after `boundMs` of virtual time. */
  until(what: string, holds: () => boolean, boundMs?: number): Promise<void> {
    return this.#servers.until(what, holds, boundMs);
  }

  run(ms: number): Promise<void> {
    return this.#servers.advance(ms);
  }

  /** Lets time run until the promise has settled. */
  settled<T>(promise: Promise<T>): Promise<T> {
    return this.#servers.outcome(promise);
  }

  #life(id: string): ServerLife {
    const life = this.#lives.get(id);
    if (life === undefined) throw new Error(`${id} does not run`);
    return life;
  }
}
