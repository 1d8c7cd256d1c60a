/**
 * Rendezvous scores: a fixed 64-bit hash in two 32-bit lanes, without BigInt or floating point. Nodes of
 * different versions must agree on it: its vectors are frozen by a test and listed in README.md.
 *
 * A text is hashed unit by unit (UTF-16; ids and keys are ASCII). The high lane is FNV-1a; the low lane is a
 * multiply and rotate with other constants. Each ends in the 32-bit finalizer of MurmurHash3, as does each
 * lane of the pair (key, broker), over the exclusive or of the two texts' lanes.
 */

const FNV_OFFSET = 0x811c9dc5;
const FNV_PRIME = 0x01000193;
const LOW_OFFSET = 0x9e3779b9;
const LOW_PRIME = 0xcc9e2d51;

/** MurmurHash3's finalizer: every bit of the input changes about half of the output's. */
function finish(lane: number): number {
  let h = lane;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return h ^ (h >>> 16);
}

/** The high lane of a text's hash, an int32. */
export function hashHigh(text: string): number {
  return finish(addHigh(FNV_OFFSET | 0, text));
}

/** What a lane comes to as a text is added to those before. */
function addHigh(lane: number, text: string): number {
  let h = lane;
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), FNV_PRIME);
  return h;
}

/** The low lane of a text's hash, an int32. */
export function hashLow(text: string): number {
  let h = LOW_OFFSET | 0;
  for (let i = 0; i < text.length; i++) {
    h = Math.imul(h ^ text.charCodeAt(i), LOW_PRIME);
    h = (h << 13) | (h >>> 19);
  }
  return finish(h);
}

/** One lane of a pair's score, unsigned: the higher wins; the high lane decides, then the low one. */
export function scoreLane(keyLane: number, brokerLane: number): number {
  return finish(keyLane ^ brokerLane) >>> 0;
}

/** Brokers' ids in the order of their index, and both lanes of each. */
interface Lanes {
  readonly ids: readonly string[];
  readonly high: Int32Array;
  readonly low: Int32Array;
}

/** The scores of one set of brokers; `ids` are theirs in the order of the index. */
export class Rendezvous {
  readonly #brokers: Lanes;

  constructor(ids: readonly string[]) {
    this.#brokers = { ids, high: Int32Array.from(ids, hashHigh), low: Int32Array.from(ids, hashLow) };
  }

  /** The order of brokers for one key. */
  of(key: string): Ranking {
    return this.stem(key).of('');
  }

  /** For keys that begin alike. */
  stem(begin: string): Stem {
    return new Stem(this.#brokers, begin);
  }
}

/** The beginning of keys, hashed once for all of them. */
export class Stem {
  readonly #brokers: Lanes;
  readonly #begin: string;
  readonly #lane: number;

  constructor(brokers: Lanes, begin: string) {
    this.#brokers = brokers;
    this.#begin = begin;
    this.#lane = addHigh(FNV_OFFSET | 0, begin);
  }

  /** The order of brokers for the key that ends so. */
  of(end: string): Ranking {
    return new Ranking(this.#brokers, { begin: this.#begin, end, high: finish(addHigh(this.#lane, end)) });
  }
}

/** Brokers in the order of their score for one key. */
export class Ranking {
  readonly #brokers: Lanes;
  readonly #begin: string;
  readonly #end: string;
  readonly #keyHigh: number;

  constructor(brokers: Lanes, key: { readonly begin: string; readonly end: string; readonly high: number }) {
    this.#brokers = brokers;
    this.#begin = key.begin;
    this.#end = key.end;
    this.#keyHigh = key.high;
  }

  /** The high lane of a broker's score, unsigned 32 bits. Enough to compare unless two are equal. */
  high(broker: number): number {
    return scoreLane(this.#keyHigh, this.#brokers.high[broker] ?? 0);
  }

  /** Of the brokers of a list from place `from` on before `to`, each at its broker's place: the smaller, the higher its high lane. */
  ranks(list: Int32Array, from: number, to: number, into: Float64Array): void {
    const lane = this.#keyHigh;
    const { high } = this.#brokers;
    for (let i = from; i < to; i++) {
      const b = list[i] ?? 0;
      into[b] = -scoreLane(lane, high[b] ?? 0);
    }
  }

  /** The first of a list whose high lane is above `limit`, as many as `into` has places for. Answers how many. */
  above(limit: number, list: Int32Array, count: number, into: Int32Array): number {
    const lane = this.#keyHigh;
    const { high } = this.#brokers;
    let found = 0;
    for (let i = 0; i < count && found < into.length; i++) {
      const b = list[i] ?? 0;
      if (scoreLane(lane, high[b] ?? 0) > limit) into[found++] = b;
    }
    return found;
  }

  /** Negative if `a` scores higher than `b`; ties go to the smaller id. */
  compare(a: number, b: number): number {
    return this.high(b) - this.high(a) || this.#compareLow(a, b);
  }

  #compareLow(a: number, b: number): number {
    const { ids, low } = this.#brokers;
    const lane = hashLow(this.#begin + this.#end);
    const difference = scoreLane(lane, low[b] ?? 0) - scoreLane(lane, low[a] ?? 0);
    if (difference !== 0) return difference;
    const x = ids[a] ?? '';
    const y = ids[b] ?? '';
    return x < y ? -1 : x > y ? 1 : 0;
  }
}
