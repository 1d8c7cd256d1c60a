import type { Clock } from '../../raft/index.ts';
import type { ShardReportMessage } from '../broker-protocol.ts';
import type { BrokerClient } from '../client/index.ts';
import type { LedShard } from './led-shard.ts';
import { Outbox } from './outbox.ts';

interface Said {
  readonly led: LedShard;
  readonly message: ShardReportMessage;
}

/**
 * Tells the control plane what it has to know about the shards this broker leads: changes of the in-sync set at once,
 * offsets with the heartbeats, and the offsets of every shard to a new Raft leader. Each heartbeat also looks at every
 * led shard for a change: a copy that says nothing causes no event, and a report that failed is sent again.
 */
export class Reporter {
  readonly #client: BrokerClient;
  readonly #led: ReadonlyMap<string, LedShard>;
  readonly #outbox: Outbox;
  /** The Raft leader has to be told their offsets. */
  readonly #owed = new WeakSet<LedShard>();

  constructor(client: BrokerClient, clock: Clock, led: ReadonlyMap<string, LedShard>) {
    this.#client = client;
    this.#led = led;
    this.#outbox = new Outbox(client, clock, (shards) => this.#send(shards));
  }

  /** A shard may have something to report. */
  changed(shard: string): void {
    this.#outbox.add(shard);
  }

  /** With every answered heartbeat. */
  beat(isNewTerm: boolean): void {
    for (const [shard, led] of this.#led) {
      if (isNewTerm || led.isUnsettled) this.#owed.add(led);
      this.#outbox.add(shard);
    }
  }

  #send(shards: readonly string[]): Promise<void> | null {
    const said: Said[] = [];
    const changes = new Set<LedShard>();
    for (const shard of shards) {
      const led = this.#led.get(shard);
      if (led === undefined || (led.row.state === 'assigning' && !led.isBehind)) continue;
      const change = led.change();
      if (change !== null) changes.add(led);
      if (change === null && !this.#owed.has(led)) continue;
      this.#owed.delete(led);
      said.push({ led, message: change ?? led.offsets() });
    }
    return said.length === 0 ? null : this.#report(said, changes);
  }

  async #report(said: readonly Said[], changes: ReadonlySet<LedShard>): Promise<void> {
    const accepted = new Set<string>();
    try {
      const results = await this.#client.report(said.map(({ message }) => message));
      for (const { shard, result } of results) if (result === 'accepted') accepted.add(shard);
    } catch {
      // Refused or not answered: the next heartbeat looks at these shards again.
      for (const { led } of said) this.#owed.add(led);
    }
    for (const { led, message } of said) {
      if (changes.has(led)) led.answered(message, accepted.has(message.shard));
    }
  }
}
