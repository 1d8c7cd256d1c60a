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
  let h = FNV_OFFSET | 0;
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), FNV_PRIME);
  return finish(h);
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

/** The scores of one set of brokers; `ids` are theirs in the order of the index. */
export class Rendezvous {
  readonly #ids: readonly string[];
  readonly #high: Int32Array;
  readonly #low: Int32Array;

  constructor(ids: readonly string[]) {
    this.#ids = ids;
    this.#high = Int32Array.from(ids, hashHigh);
    this.#low = Int32Array.from(ids, hashLow);
  }

  /** The order of brokers for one key. */
  of(key: string): Ranking {
    return new Ranking(key, this.#ids, this.#high, this.#low);
  }
}

/** Brokers in the order of their score for one key. */
export class Ranking {
  readonly #keyHigh: number;
  readonly #key: string;
  readonly #ids: readonly string[];
  readonly #high: Int32Array;
  readonly #low: Int32Array;

  constructor(key: string, ids: readonly string[], high: Int32Array, low: Int32Array) {
    this.#key = key;
    this.#keyHigh = hashHigh(key);
    this.#ids = ids;
    this.#high = high;
    this.#low = low;
  }

  /** The high lane of a broker's score, unsigned 32 bits. Enough to compare unless two are equal. */
  high(broker: number): number {
    return scoreLane(this.#keyHigh, this.#high[broker] ?? 0);
  }

  /** Negative if `a` scores higher than `b`; ties go to the smaller id. */
  compare(a: number, b: number): number {
    return this.high(b) - this.high(a) || this.#compareLow(a, b);
  }

  #compareLow(a: number, b: number): number {
    const low = hashLow(this.#key);
    const difference = scoreLane(low, this.#low[b] ?? 0) - scoreLane(low, this.#low[a] ?? 0);
    if (difference !== 0) return difference;
    const x = this.#ids[a] ?? '';
    const y = this.#ids[b] ?? '';
    return x < y ? -1 : x > y ? 1 : 0;
  }
}
