import { afterEach } from 'vitest';
import { Cluster, type ClusterOptions, rpc, until } from './cluster.ts';
import { HandBroker, type HandBrokerOptions } from './hand-broker.ts';
import { Watcher } from './watcher.ts';

/** Nothing here depends on how fast the machine is: a broker is silent only when a test says so. */
const PATIENT_FLAGS = ['--expiry-ms', '60000', '--lease-ms', '50000'];

/** A quorum with a cluster file imported, its brokers played by the test, and a watcher: cleared after each test. */
export class Stage {
  cluster!: Cluster;
  watcher!: Watcher;
  readonly brokers = new Map<string, HandBroker>();

  constructor() {
    afterEach(async () => {
      this.watcher?.close();
      for (const broker of this.brokers.values()) broker.stop();
      this.brokers.clear();
      await this.cluster?.stop();
    });
  }

  async set(
    file: Record<string, unknown>,
    options: ClusterOptions & {
      readonly before?: (broker: HandBroker) => void;
      /** `maxShards` by broker, as it registers it. */
      readonly caps?: Readonly<Record<string, number>>;
      /** Brokers of the file that never come. */
      readonly absent?: readonly string[];
    } = {},
  ): Promise<void> {
    this.cluster = await Cluster.start({ flags: PATIENT_FLAGS, ...options });
    // Paused until the brokers are there: a fence before its leader has ever registered is undone.
    const policy = file['policy'] as { readonly paused?: boolean } | undefined;
    await this.cluster.import({ ...file, policy: { ...policy, paused: true } });
    this.watcher = new Watcher(this.endpoints);
    const { before, caps = {}, absent = [] } = options;
    for (const { id, zone } of file['brokers'] as { id: string; zone?: string }[]) {
      if (absent.includes(id)) continue;
      const maxShards = caps[id];
      const registered = {
        ...(zone === undefined ? {} : { zone }),
        ...(maxShards === undefined ? {} : { maxShards }),
      };
      await this.join({ id, ...registered }, before);
    }
    if (policy?.paused !== true) await rpc(this.cluster.address(0), 'placement.resume');
  }

  get endpoints(): string[] {
    return this.cluster.nodes.map((_, node) => this.cluster.address(node));
  }

  broker(id: string): HandBroker {
    const broker = this.brokers.get(id);
    if (!broker) throw new Error(`no broker ${id}`);
    return broker;
  }

  async join(
    options: Pick<HandBrokerOptions, 'id'> & Partial<HandBrokerOptions>,
    before: (broker: HandBroker) => void = () => undefined,
  ): Promise<HandBroker> {
    const broker = new HandBroker({
      clusterId: this.cluster.clusterId,
      endpoints: this.endpoints,
      isUp: (id) => this.brokers.has(id),
      ...options,
    });
    before(broker);
    this.brokers.set(options.id, await broker.start());
    return broker;
  }

  /** The process dies: it is silent from now on, and nobody can copy to it. */
  kill(id: string): void {
    this.broker(id).stop();
    this.brokers.delete(id);
  }

  /** Waits until nothing is wanted and the watcher has seen it all. */
  async level(): Promise<void> {
    const revision = await until('a level cluster', async () => {
      const { placement, revision: at } = await this.cluster.status();
      if (placement.level && placement.movesInFlight === 0 && placement.leaderMovesLeft === 0) return at;
      const moving = [...this.watcher.rows.values()].filter(({ move }) => move !== null);
      throw new Error(JSON.stringify({ placement, moving }));
    });
    await this.seen(revision);
  }

  async seen(revision: number): Promise<void> {
    await until(`the watcher at ${revision}`, async () => this.watcher.revision >= revision);
  }

  /** Lets go of everything the brokers hold back. */
  release(): void {
    for (const broker of this.brokers.values()) {
      Object.assign(broker.hold, { copy: false, drain: false, confirm: false });
      broker.act();
    }
  }
}
