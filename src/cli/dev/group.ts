import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Broker } from '../../../placement/index.ts';
import { EvenkeelError } from '../../errors.ts';
import { Child } from './children.ts';
import type { NodePorts } from './ports.ts';

export const DEV_CLUSTER_ID = 'dev';

export interface GroupOptions {
  readonly ports: readonly NodePorts[];
  readonly dataDirectory: string;
  /** Records a second to each copy being made; absent: as `broker run` has it. */
  readonly copyRate: number | undefined;
}

/** The processes of `dev`. `stop` ends every one of them. */
export class Group {
  readonly #options: GroupOptions;
  readonly nodes: Child[] = [];
  readonly brokers: Child[] = [];
  #stopped = false;

  constructor(options: GroupOptions) {
    this.#options = options;
  }

  get endpoints(): string[] {
    return this.#options.ports.map(({ client }) => `127.0.0.1:${client}`);
  }

  get logDirectory(): string {
    return join(this.#options.dataDirectory, 'logs');
  }

  /** Resolves once every node serves. */
  async startNodes(): Promise<void> {
    const { ports, dataDirectory } = this.#options;
    await mkdir(this.logDirectory, { recursive: true });
    const members = ports.map(({ peer }, i) => `n${i + 1}=127.0.0.1:${peer}`).join(',');
    for (const [i, { client, peer }] of ports.entries()) {
      const id = `n${i + 1}`;
      const args = flags({
        'node-id': id,
        'cluster-id': DEV_CLUSTER_ID,
        members,
        listen: `127.0.0.1:${client}`,
        'peer-listen': `127.0.0.1:${peer}`,
        'data-dir': join(dataDirectory, id),
        'initial-cluster-state': 'new',
      });
      this.nodes.push(new Child(id, ['serve', ...args], this.logDirectory));
    }
    await Promise.all(this.nodes.map((node) => node.ready()));
  }

  /** Resolves once every broker has registered. */
  async startBrokers(
    brokers: readonly Pick<Broker, 'id' | 'zone' | 'maxShards' | 'weight'>[],
  ): Promise<void> {
    if (this.#stopped) throw new EvenkeelError('unavailable', 'interrupted before the brokers were started');
    const { dataDirectory, copyRate } = this.#options;
    for (const { id, zone, maxShards, weight } of brokers) {
      const args = flags({
        id,
        'cluster-id': DEV_CLUSTER_ID,
        endpoints: this.endpoints.join(','),
        'data-dir': join(dataDirectory, `broker-${id}`),
        weight,
        zone,
        'max-shards': maxShards,
        'copy-rate': copyRate ?? null,
      });
      this.brokers.push(new Child(`broker-${id}`, ['broker', 'run', ...args], this.logDirectory));
    }
    await Promise.all(this.brokers.map((broker) => broker.ready()));
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    // Brokers first: they leave their last report with a quorum that still stands.
    await Promise.all(this.brokers.map((broker) => broker.stop()));
    await Promise.all(this.nodes.map((node) => node.stop()));
  }
}

/** `--name value` for each that has one. */
function flags(values: Readonly<Record<string, string | number | null>>): string[] {
  return Object.entries(values).flatMap(([name, value]) =>
    value === null ? [] : [`--${name}`, String(value)],
  );
}
