import type { Clock } from '../../raft/index.ts';
import type { ShardReportMessage } from '../broker-protocol.ts';
import type { BrokerClient } from '../client/index.ts';
import type { LedShard } from './led-shard.ts';

/**
 * Tells the control plane what it has to know of the shards this broker leads: changes of who is in sync at once,
 * offsets with the heartbeats, and all of them to a new Raft leader. One request is under way at a time; what could
 * not be said is said again with the next beat.
 */
export class Reporter {
  readonly #client: BrokerClient;
  readonly #clock: Clock;
  readonly #led: ReadonlyMap<string, LedShard>;
  readonly #dirty = new Set<string>();
  #busy = false;
  #armed = false;

  constructor(client: BrokerClient, clock: Clock, led: ReadonlyMap<string, LedShard>) {
    this.#client = client;
    this.#clock = clock;
    this.#led = led;
  }

  /** A shard may have something to report. */
  changed(shard: string): void {
    this.#dirty.add(shard);
    if (this.#armed || this.#busy) return;
    this.#armed = true;
    this.#clock.defer(() => {
      this.#armed = false;
      void this.#send([]);
    });
  }

  /** With every answered heartbeat. */
  beat(isNewTerm: boolean): void {
    const offsets: ShardReportMessage[] = [];
    for (const [shard, led] of this.#led) {
      if (led.row.state === 'assigning' || !(isNewTerm || led.isUnsettled)) continue;
      this.#dirty.add(shard);
      offsets.push(led.offsets());
    }
    void this.#send(offsets);
  }

  async #send(offsets: readonly ShardReportMessage[]): Promise<void> {
    if (this.#busy) return;
    const changes: ShardReportMessage[] = [];
    for (const shard of this.#dirty) {
      const change = this.#led.get(shard)?.change() ?? null;
      if (change !== null) changes.push(change);
    }
    this.#dirty.clear();
    const said = new Set(changes.map(({ shard }) => shard));
    const messages = [...changes, ...offsets.filter(({ shard }) => !said.has(shard))];
    if (messages.length === 0) return;
    this.#busy = true;
    try {
      await this.#client.report(messages);
    } catch {
      // Refused or not answered: the next beat, or the next row, brings it up again.
    }
    this.#busy = false;
    if (this.#dirty.size > 0) void this.#send([]);
  }
}
