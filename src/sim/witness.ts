import { SimClient } from './client.ts';
import type { SimCluster } from './cluster.ts';
import type { History } from './history.ts';
import type { SimOperation } from './plan.ts';

/** A register that the clients of a plan do not use. */
export const PROBE = 'probe';

/** A client that writes at a new leader and at once reads at the old one, which does not know of the other yet. */
export class Witness {
  readonly #cluster: SimCluster;
  readonly #history: History;
  readonly #writer: SimClient;
  #busy = true;
  #values = 0;

  constructor(cluster: SimCluster, history: History) {
    this.#cluster = cluster;
    this.#history = history;
    this.#writer = this.#client('witness', cluster.plan.members);
  }

  /** Opens its session, so that a write is one request. */
  async prepare(): Promise<void> {
    const { members } = this.#cluster.plan;
    await this.#writer.run([this.#operation('write', members[0] as string)]);
    this.#busy = false;
  }

  async compare(old: string, next: string): Promise<void> {
    if (this.#busy) return;
    this.#busy = true;
    await this.#writer.run([this.#operation('write', next)]);
    await this.#client('witness reader', [old]).run([this.#operation('read', old)]);
    this.#busy = false;
  }

  #client(name: string, members: readonly string[]): SimClient {
    const patienceMs = this.#cluster.plan.settings.electionTimeoutMs;
    return new SimClient(name, this.#cluster, this.#history, { members, keys: [PROBE], patienceMs });
  }

  #operation(type: 'read' | 'write', first: string): SimOperation {
    return { client: 'witness', type, key: PROBE, value: `witness-${++this.#values}`, thinkMs: 0, first };
  }
}
