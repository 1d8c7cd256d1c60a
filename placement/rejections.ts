import type { Why } from './plan-types.ts';

type Rejected = Why['rejected'];
const BY = ['at_target', 'at_max_shards', 'not_heard'] as const;
type By = (typeof BY)[number];

/** Most brokers that a `Why` lists as rejected. */
export const REJECTED_SHOWN = 3;

/**
 * The brokers that stood before a chosen one, and what stood against each. Equal lists are one: a first placement lists
 * some for every shard, and few of them differ.
 */
export class Rejections {
  readonly #ids: readonly string[];
  readonly #rows = new Map<number, Rejected[number]>();
  readonly #lists = new Map<number, Rejected>();
  /** The list in hand, and of how many it is. */
  readonly #codes: number[] = [];
  #count = 0;

  constructor(ids: readonly string[]) {
    this.#ids = ids;
  }

  begin(): void {
    this.#count = 0;
  }

  get isFull(): boolean {
    return this.#count >= REJECTED_SHOWN;
  }

  add(b: number, by: By): void {
    this.#codes[this.#count++] = BY.length * b + BY.indexOf(by);
  }

  list(): Rejected {
    // Below 2^53 for every cluster of up to 60,000 brokers.
    let key = 0;
    for (let i = 0; i < this.#count; i++)
      key = key * (BY.length * this.#ids.length + 1) + (this.#codes[i] ?? 0) + 1;
    let list = this.#lists.get(key);
    if (list === undefined) {
      list = this.#codes.slice(0, this.#count).map((code) => this.#row(code));
      this.#lists.set(key, list);
    }
    return list;
  }

  #row(code: number): Rejected[number] {
    let row = this.#rows.get(code);
    if (row === undefined) {
      const by = BY[code % BY.length] ?? 'at_target';
      row = { broker: this.#ids[Math.floor(code / BY.length)] ?? '', by };
      this.#rows.set(code, row);
    }
    return row;
  }
}
