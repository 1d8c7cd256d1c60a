import { ShardMap, type ShardRows } from './shard-map.ts';

/** The rows of shards as they were before an entry that is being applied in parts; what `HeldRows` is for a map. */
export class HeldShards<Row> implements ShardRows<Row> {
  readonly size: number;
  readonly #now: ShardMap<Row>;
  /** Of every shard written since; `null`: it had no row. */
  readonly #before = new ShardMap<Row | null>();

  constructor(now: ShardMap<Row>) {
    this.#now = now;
    this.size = now.size;
  }

  /** Called before a row is written or removed; the first time counts. */
  keep(shard: string, row: Row | undefined): void {
    if (!this.#before.has(shard)) this.#before.set(shard, row ?? null);
  }

  get(shard: string): Row | undefined {
    const before = this.#before.get(shard);
    return before === undefined ? this.#now.get(shard) : (before ?? undefined);
  }

  has(shard: string): boolean {
    return this.get(shard) !== undefined;
  }

  list(): Row[] {
    return this.#now.listBefore(this.#before, this.size);
  }
}
