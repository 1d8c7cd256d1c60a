import type { Clock } from '../../raft/index.ts';
import type { BrokerClient } from '../client/index.ts';
import { unawaited } from '../unawaited.ts';

/** Shards of one request. */
const SHARDS_PER_REQUEST = 1_000;
/** Requests that wait for an answer at the same time: one without an answer must not hold up the shards of others. */
const MAX_REQUESTS = 8;

/**
 * Gathers shards that have something to tell the control plane and hands them over in batches, never while the client
 * is not connected. Whoever adds a shard adds it again later if the request failed.
 */
export class Outbox {
  readonly #client: BrokerClient;
  readonly #clock: Clock;
  /** Sends one request for the shards; `null` if they have nothing to say. Never rejects. */
  readonly #send: (shards: readonly string[]) => Promise<void> | null;
  readonly #waiting = new Set<string>();
  #requests = 0;
  #armed = false;

  constructor(client: BrokerClient, clock: Clock, send: (shards: readonly string[]) => Promise<void> | null) {
    this.#client = client;
    this.#clock = clock;
    this.#send = send;
  }

  /** The shard is part of the next request. */
  add(shard: string): void {
    this.#waiting.add(shard);
    if (this.#armed) return;
    this.#armed = true;
    this.#clock.defer(() => {
      this.#armed = false;
      this.#flush();
    });
  }

  #flush(): void {
    while (this.#waiting.size > 0 && this.#requests < MAX_REQUESTS && this.#client.isReady) {
      const shards = [...this.#waiting].slice(0, SHARDS_PER_REQUEST);
      for (const shard of shards) this.#waiting.delete(shard);
      const request = this.#send(shards);
      if (request === null) continue;
      this.#requests++;
      unawaited(
        request.then(() => {
          this.#requests--;
          this.#flush();
        }),
      );
    }
  }
}
