import type { Clock } from '../../raft/index.ts';
import type { BrokerClient } from '../client/index.ts';
import type { LedShard } from './led-shard.ts';
import { Outbox } from './outbox.ts';

interface Confirmed {
  readonly shard: string;
  readonly generation: number;
}

/** Tells the control plane which opened shards this broker serves now; again with each beat, until their rows show it. */
export class Confirmer {
  readonly #client: BrokerClient;
  readonly #led: ReadonlyMap<string, LedShard>;
  readonly #outbox: Outbox;
  readonly #waiting = new Set<string>();
  /** The generations in requests that have no answer yet. */
  readonly #underWay = new Map<string, number>();

  constructor(client: BrokerClient, clock: Clock, led: ReadonlyMap<string, LedShard>) {
    this.#client = client;
    this.#led = led;
    this.#outbox = new Outbox(client, clock, (shards) => this.#send(shards));
  }

  opened(shard: string): void {
    this.#waiting.add(shard);
    this.#outbox.add(shard);
  }

  beat(): void {
    for (const shard of this.#waiting) this.#outbox.add(shard);
  }

  #send(shards: readonly string[]): Promise<void> | null {
    const confirmed: Confirmed[] = [];
    for (const shard of shards) {
      const led = this.#led.get(shard);
      const row = led?.isBehind === true ? undefined : led?.row;
      if (row?.state !== 'assigning') this.#waiting.delete(shard);
      else if (this.#underWay.get(shard) !== row.generation) {
        confirmed.push({ shard, generation: row.generation });
        this.#underWay.set(shard, row.generation);
      }
    }
    return confirmed.length === 0 ? null : this.#confirm(confirmed);
  }

  async #confirm(confirmed: readonly Confirmed[]): Promise<void> {
    try {
      await this.#client.confirm(confirmed);
    } catch {
      // Not connected or not answered: the next beat says it again.
    }
    for (const { shard, generation } of confirmed) {
      if (this.#underWay.get(shard) === generation) this.#underWay.delete(shard);
    }
  }
}
