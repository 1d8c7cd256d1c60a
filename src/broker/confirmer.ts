import type { Clock } from '../../raft/index.ts';
import type { BrokerClient } from '../client/index.ts';
import type { LedShard } from './led-shard.ts';

/** Says which opened shards are served now; again with each beat, until their rows show it. */
export class Confirmer {
  readonly #client: BrokerClient;
  readonly #clock: Clock;
  readonly #led: ReadonlyMap<string, LedShard>;
  readonly #waiting = new Set<string>();
  #armed = false;
  #busy = false;
  /** Something was opened while a request was under way. */
  #again = false;

  constructor(client: BrokerClient, clock: Clock, led: ReadonlyMap<string, LedShard>) {
    this.#client = client;
    this.#clock = clock;
    this.#led = led;
  }

  opened(shard: string): void {
    this.#waiting.add(shard);
    this.#again = this.#busy;
    this.#arm();
  }

  beat(): void {
    if (this.#waiting.size > 0) this.#arm();
  }

  #arm(): void {
    if (this.#armed || this.#busy) return;
    this.#armed = true;
    this.#clock.defer(() => {
      this.#armed = false;
      void this.#send();
    });
  }

  async #send(): Promise<void> {
    const shards: { shard: string; generation: number }[] = [];
    for (const shard of this.#waiting) {
      const row = this.#led.get(shard)?.row;
      if (row?.state === 'assigning') shards.push({ shard, generation: row.generation });
      else this.#waiting.delete(shard);
    }
    if (shards.length === 0) return;
    this.#again = false;
    this.#busy = true;
    try {
      await this.#client.confirm(shards);
    } catch {
      // Not connected or not answered: the next beat says it again.
    }
    this.#busy = false;
    if (this.#again) this.#arm();
  }
}
