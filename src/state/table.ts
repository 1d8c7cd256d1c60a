import { hashRow, type Plain, type StateHash } from './hash.ts';

/** One map of immutable rows whose every change is counted into the state's hash. */
export class Table<Key, Row> {
  readonly #rows = new Map<Key, Row>();
  readonly #hash: StateHash;
  readonly #name: string;
  readonly #canonical: (row: Row) => Plain;

  constructor(hash: StateHash, name: string, canonical: (row: Row) => Plain) {
    this.#hash = hash;
    this.#name = name;
    this.#canonical = canonical;
  }

  get rows(): ReadonlyMap<Key, Row> {
    return this.#rows;
  }

  /** Answers the row it replaces. A new key goes to the end of the map. */
  put(key: Key, row: Row): Row | undefined {
    const previous = this.#rows.get(key);
    if (previous !== undefined) this.#hash.remove(hashRow(this.#name, this.#canonical(previous)));
    this.#hash.add(hashRow(this.#name, this.#canonical(row)));
    this.#rows.set(key, row);
    return previous;
  }

  delete(key: Key): Row | undefined {
    const previous = this.#rows.get(key);
    if (previous === undefined) return undefined;
    this.#hash.remove(hashRow(this.#name, this.#canonical(previous)));
    this.#rows.delete(key);
    return previous;
  }
}
