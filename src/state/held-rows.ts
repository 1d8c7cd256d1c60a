/**
 * A map as it was before an entry that is being applied in parts: the rows as they are now, but for those that the
 * entry has replaced or removed so far. Reading stays O(1), and dropping it is what makes the entry visible.
 */
export class HeldRows<Key, Row> implements ReadonlyMap<Key, Row> {
  readonly size: number;
  readonly #now: ReadonlyMap<Key, Row>;
  /** By key, of every row written since; `undefined`: there was none. */
  readonly #before = new Map<Key, Row | undefined>();

  constructor(now: ReadonlyMap<Key, Row>) {
    this.#now = now;
    this.size = now.size;
  }

  /** Called before a row is written or removed; the first time counts. */
  keep(key: Key, row: Row | undefined): void {
    if (!this.#before.has(key)) this.#before.set(key, row);
  }

  get(key: Key): Row | undefined {
    return this.#before.has(key) ? this.#before.get(key) : this.#now.get(key);
  }

  has(key: Key): boolean {
    return this.#before.has(key) ? this.#before.get(key) !== undefined : this.#now.has(key);
  }

  *entries(): Generator<[Key, Row], undefined, unknown> {
    for (const [key, row] of this.#now) {
      const held = this.#before.has(key) ? this.#before.get(key) : row;
      if (held !== undefined) yield [key, held];
    }
    for (const [key, row] of this.#before) {
      if (row !== undefined && !this.#now.has(key)) yield [key, row];
    }
    return undefined;
  }

  *keys(): Generator<Key, undefined, unknown> {
    for (const [key] of this.entries()) yield key;
    return undefined;
  }

  *values(): Generator<Row, undefined, unknown> {
    for (const [, row] of this.entries()) yield row;
    return undefined;
  }

  [Symbol.iterator](): Generator<[Key, Row], undefined, unknown> {
    return this.entries();
  }

  forEach(each: (row: Row, key: Key, map: ReadonlyMap<Key, Row>) => void): void {
    for (const [key, row] of this.entries()) each(row, key, this);
  }
}
