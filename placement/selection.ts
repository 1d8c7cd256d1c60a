/** The order among equal keys: the higher score first; `compare` where scores are equal too. */
export interface Scores {
  /** Of the brokers of a list from place `from` on before `to`, each at its broker's place: the smaller, the higher it scores. */
  ranks(list: Int32Array, from: number, to: number, into: Float64Array): void;
  /** Negative if `a` comes first; 0 only for one and the same. */
  compare(a: number, b: number): number;
}

/** Chooses some of a list of brokers: the smallest keys first, then by score. */
export class Selection {
  readonly #list: Int32Array;
  /** By broker. */
  readonly #keys: Float64Array;
  readonly #rank: Float64Array;
  #count = 0;
  /** The equals that the last chosen is among. */
  #from = 0;
  #to = 0;

  /** `keys`: the caller's, which may change them between two choices. */
  constructor(keys: Float64Array) {
    this.#list = new Int32Array(keys.length);
    this.#keys = keys;
    this.#rank = new Float64Array(keys.length);
  }

  begin(): void {
    this.#count = 0;
  }

  add(b: number): void {
    this.#list[this.#count++] = b;
  }

  get count(): number {
    return this.#count;
  }

  /**
   * Of those from place `from` on before place `to`: brings the best to their front; the order within the front, and behind
   * it, is left open. Answers how many they are: `wanted`, or all there are. Only those that keys do not tell apart from
   * the last one are scored.
   */
  choose(wanted: number, scores: Scores, from = 0, to = this.#count): number {
    if (wanted >= to - from) return to - from;
    if (wanted <= 0) return 0;
    const list = this.#list;
    const end = from + wanted;
    this.#find(this.#keys, end, from, to);
    if (this.#to === end) return wanted;
    scores.ranks(list, this.#from, this.#to, this.#rank);
    this.#find(this.#rank, end, this.#from, this.#to);
    if (this.#to === end) return wanted;
    list.subarray(this.#from, this.#to).sort((a, b) => scores.compare(a, b));
    return wanted;
  }

  at(i: number): number {
    return this.#list[i] ?? 0;
  }

  /**
   * Partitions what is between until the smallest are in front of place `wanted` (C. A. R. Hoare's Find), or those equal to
   * the last of them are side by side (three ways: E. W. Dijkstra's flag): then some are left behind it.
   */
  #find(keys: Float64Array, wanted: number, start: number, end: number): void {
    const list = this.#list;
    let from = start;
    let to = end;
    for (;;) {
      const pivot = keys[list[(from + to) >> 1] ?? 0] ?? 0;
      let less = from;
      let more = to;
      for (let i = from; i < more;) {
        const b = list[i] ?? 0;
        const key = keys[b] ?? 0;
        if (key < pivot) {
          list[i++] = list[less] ?? 0;
          list[less++] = b;
        } else if (key > pivot) {
          list[i] = list[--more] ?? 0;
          list[more] = b;
        } else i++;
      }
      if (wanted < less) to = less;
      else if (wanted > more) from = more;
      else {
        this.#from = less;
        this.#to = wanted === less ? wanted : more;
        return;
      }
    }
  }
}
