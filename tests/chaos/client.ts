import { setTimeout as sleep } from 'node:timers/promises';
import { rpc, type Cluster } from '../support/cluster.ts';
import { DataLink, type Answer } from './data-link.ts';

const ADMIN_MS = 2_000;
const ANSWER_MS = 3_000;
const RETRY_MS = 50;

/** Asks the broker that leads a shard, and looks for its leader again after whatever goes wrong. */
export class ShardClient {
  readonly #cluster: Cluster;
  readonly #links = new Map<string, DataLink>();
  readonly #leaders = new Map<string, string>();
  #nextNode = 0;

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  close(): void {
    for (const link of this.#links.values()) link.close();
  }

  /**
   * One try. `taken` sees the answer and who gave it, also when it comes after this call gave up.
   *
   * @returns the answer of success, or `null`
   */
  async ask(
    shard: string,
    request: object,
    taken: (answer: Answer, by: string) => void = () => undefined,
  ): Promise<Answer | null> {
    const answer = await this.#try(shard, request, taken);
    if (answer !== null && answer['type'] !== 'error') return answer;
    this.#leaders.delete(shard);
    await sleep(RETRY_MS);
    return null;
  }

  async #try(
    shard: string,
    request: object,
    taken: (answer: Answer, by: string) => void,
  ): Promise<Answer | null> {
    const address = this.#leaders.get(shard) ?? (await this.#leaderOf(shard));
    if (address === null) return null;
    this.#leaders.set(shard, address);
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(null), ANSWER_MS);
      const settle = (answer: Answer | null): void => {
        clearTimeout(timer);
        resolve(answer);
      };
      this.#link(address).ask(
        { ...request, shard },
        (answer) => {
          if (answer['type'] !== 'error') taken(answer, address);
          settle(answer);
        },
        () => settle(null),
      );
    });
  }

  async #leaderOf(shard: string): Promise<string | null> {
    const { nodes } = this.#cluster;
    const node = this.#cluster.address(this.#nextNode++ % nodes.length);
    const ask = <T>(method: string, params: object): Promise<T> =>
      rpc<T>(node, method, { ...params, consistency: 'local' }, ADMIN_MS);
    try {
      const { assignment } = await ask<{ assignment: { leader: string } }>('shard.show', { shard });
      const { broker } = await ask<{ broker: { addresses: Record<string, string> } }>('broker.show', {
        id: assignment.leader,
      });
      return broker.addresses['data'] ?? null;
    } catch {
      return null;
    }
  }

  #link(address: string): DataLink {
    let link = this.#links.get(address);
    if (link === undefined || link.isOver) this.#links.set(address, (link = new DataLink(address)));
    return link;
  }
}
