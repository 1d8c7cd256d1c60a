import { ShardMap } from '../state/index.ts';

/** Shards that wait for something, each once, the first come first: a million may. */
export class ShardQueue {
  readonly #waiting = new ShardMap<true>();
  #shards: string[] = [];
  #next = 0;

  add(shard: string): void {
    if (this.#waiting.has(shard)) return;
    this.#waiting.set(shard, true);
    this.#shards.push(shard);
  }

  /** The first of them, which wait no longer. */
  take(atMost: number): readonly string[] {
    const taken = this.#shards.slice(this.#next, this.#next + atMost);
    for (const shard of taken) this.#waiting.delete(shard);
    this.#next += taken.length;
    // What was taken is cut off once it is half of the list: amortized O(1), also where the queue is never empty.
    if (this.#next * 2 >= this.#shards.length) {
      this.#shards = this.#shards.slice(this.#next);
      this.#next = 0;
    }
    return taken;
  }

  clear(): void {
    this.take(this.#shards.length);
  }
}
