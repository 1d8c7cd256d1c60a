import { NONE } from './broker-table.ts';

/** The keys of shards without a row, each made when it is first asked for. */
export class ShardKeys {
  readonly #resourceKeys: readonly string[];
  readonly #firstShard: Int32Array;
  readonly #keys: (string | undefined)[];
  /** What the keys of the resource asked for last begin with: most are asked for shard by shard. */
  #stem = '';
  #r = NONE;

  constructor(resourceKeys: readonly string[], firstShard: Int32Array) {
    this.#resourceKeys = resourceKeys;
    this.#firstShard = firstShard;
    this.#keys = new Array<string | undefined>(firstShard[resourceKeys.length] ?? 0).fill(undefined);
  }

  /** Of a shard of resource `r`. */
  of(s: number, r: number): string {
    const known = this.#keys[s];
    if (known !== undefined) return known;
    if (r !== this.#r) {
      this.#r = r;
      this.#stem = `${this.#resourceKeys[r]}/`;
    }
    return (this.#keys[s] = this.#stem + String(s - (this.#firstShard[r] ?? 0)));
  }
}
