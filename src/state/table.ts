import { hashRow, type Plain, type RowHash, type StateHash } from './hash.ts';
import { HeldRows } from './held-rows.ts';
import { HeldShards } from './held-shards.ts';
import { ShardMap, type ShardRows } from './shard-map.ts';

interface Store<Key, Value> {
  get(key: Key): Value | undefined;
  set(key: Key, value: Value): unknown;
  delete(key: Key): unknown;
}

/** Rows as they were, told of each before it is written. */
interface Held<Key, Row> {
  keep(key: Key, row: Row | undefined): void;
}

/** Immutable rows whose every change is counted into the state's hash. */
abstract class HashedRows<Key, Row> {
  readonly #rows: Store<Key, Row>;
  /** What each row was counted in with, so that taking it out again costs nothing. */
  readonly #hashes: Store<Key, RowHash>;
  readonly #hash: StateHash;
  readonly #name: string;
  readonly #canonical: (row: Row) => Plain;
  #held: Held<Key, Row> | null = null;
  #bytes = 0;

  constructor(
    { rows, hashes }: { rows: Store<Key, Row>; hashes: Store<Key, RowHash> },
    { hash, name, canonical }: { hash: StateHash; name: string; canonical: (row: Row) => Plain },
  ) {
    this.#rows = rows;
    this.#hashes = hashes;
    this.#hash = hash;
    this.#name = name;
    this.#canonical = canonical;
  }

  release(): void {
    this.#held = null;
  }

  /** What its rows take in a snapshot, counted as they change. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Answers the row it replaces. */
  put(key: Key, row: Row): Row | undefined {
    const previous = this.#rows.get(key);
    this.#held?.keep(key, previous);
    this.#uncount(key);
    const hash = hashRow(this.#name, this.#canonical(row));
    this.#hash.add(hash);
    this.#bytes += hash.bytes;
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

  protected keepIn<H extends Held<Key, Row>>(held: H): H {
    this.#held = held;
    return held;
  }

  #uncount(key: Key): void {
    const hash = this.#hashes.get(key);
    if (hash === undefined) return;
    this.#hash.remove(hash);
    this.#bytes -= hash.bytes;
  }
}

/** A map of such rows. A new key goes to its end. */
export class Table<Key, Row> extends HashedRows<Key, Row> {
  readonly #map: Map<Key, Row>;

  constructor(hash: StateHash, name: string, canonical: (row: Row) => Plain) {
    const rows = new Map<Key, Row>();
    super({ rows, hashes: new Map() }, { hash, name, canonical });
    this.#map = rows;
  }

  get rows(): ReadonlyMap<Key, Row> {
    return this.#map;
  }

  /** The rows as they are now, for readers, whatever is written until `release`. */
  hold(): ReadonlyMap<Key, Row> {
    return this.keepIn(new HeldRows(this.#map));
  }
}

/** The same by shard, of which there may be a million. */
export class ShardTable<Row> extends HashedRows<string, Row> {
  readonly #shards: ShardMap<Row>;

  constructor(hash: StateHash, name: string, canonical: (row: Row) => Plain) {
    const rows = new ShardMap<Row>();
    super({ rows, hashes: new ShardMap() }, { hash, name, canonical });
    this.#shards = rows;
  }

  get rows(): ShardRows<Row> {
    return this.#shards;
  }

  hold(): ShardRows<Row> {
    return this.keepIn(new HeldShards(this.#shards));
  }
}
