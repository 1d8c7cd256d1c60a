import { hashRow, type Plain, type RowHash, type StateHash } from './hash.ts';
import { HeldRows } from './held-rows.ts';

/** One map of immutable rows whose every change is counted into the state's hash. */
export class Table<Key, Row> {
  readonly #rows = new Map<Key, Row>();
  /** What each row was counted in with, so that taking it out again costs nothing. */
  readonly #hashes = new Map<Key, RowHash>();
  readonly #hash: StateHash;
  readonly #name: string;
  readonly #canonical: (row: Row) => Plain;
  #held: HeldRows<Key, Row> | null = null;

  constructor(hash: StateHash, name: string, canonical: (row: Row) => Plain) {
    this.#hash = hash;
    this.#name = name;
    this.#canonical = canonical;
  }

  get rows(): ReadonlyMap<Key, Row> {
    return this.#rows;
  }

  /** The rows as they are now, for readers, whatever is written until `release`. */
  hold(): ReadonlyMap<Key, Row> {
    this.#held = new HeldRows(this.#rows);
    return this.#held;
  }

  release(): void {
    this.#held = null;
  }

  /** Answers the row it replaces. A new key goes to the end of the map. */
  put(key: Key, row: Row): Row | undefined {
    const previous = this.#rows.get(key);
    this.#held?.keep(key, previous);
    this.#uncount(key);
    const hash = hashRow(this.#name, this.#canonical(row));
    this.#hash.add(hash);
    this.#hashes.set(key, hash);
    this.#rows.set(key, row);
    return previous;
  }

  delete(key: Key): Row | undefined {
    const previous = this.#rows.get(key);
    if (previous === undefined) return undefined;
    this.#held?.keep(key, previous);
    this.#uncount(key);
    this.#hashes.delete(key);
    this.#rows.delete(key);
    return previous;
  }

  #uncount(key: Key): void {
    const hash = this.#hashes.get(key);
    if (hash !== undefined) this.#hash.remove(hash);
  }
}
