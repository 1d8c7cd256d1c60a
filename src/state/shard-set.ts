/** Shards in one native set: one that grows moves all it holds, some milliseconds long. */
export const SHARDS_PER_SET = 65_536;

/** Shards in no order, of which one broker may hold a million: in as many native sets as that takes. */
export class ShardSet implements Iterable<string> {
  readonly #sets: Set<string>[] = [];

  add(shard: string): void {
    if (this.#sets.some((set) => set.has(shard))) return;
    const roomy = this.#sets.find((set) => set.size < SHARDS_PER_SET);
    if (roomy === undefined) this.#sets.push(new Set([shard]));
    else roomy.add(shard);
  }

  delete(shard: string): void {
    const at = this.#sets.findIndex((set) => set.delete(shard));
    if (at >= 0 && this.#sets[at]?.size === 0) this.#sets.splice(at, 1);
  }

  *[Symbol.iterator](): Iterator<string> {
    for (const set of this.#sets) yield* set;
  }
}
