/** A shard that could be handed over: by whom, and to which brokers. */
export interface Offer {
  readonly shard: number;
  readonly from: number;
  /** Without copying. */
  readonly to: readonly number[];
  /** By copying: taken only for what hand-overs leave. */
  readonly copyTo?: readonly number[];
}

/**
 * As many hand-overs as possible: each shard once, `supply[b]` out of broker b at most and `demand[b]` into it.
 * Offers listed first are matched first, and no later one costs an earlier broker its place. Answers the broker
 * by offer, -1 where the shard is not handed over. Augmenting paths; greedy finds most of them at once.
 */
export function matchHandovers(offers: readonly Offer[], supply: Int32Array, demand: Int32Array): Int32Array {
  const matching = new HandoverMatching(offers, supply, demand);
  matching.run();
  if (offers.some((offer) => (offer.copyTo?.length ?? 0) > 0)) {
    matching.alsoCopy();
    matching.run();
  }
  return matching.given;
}

class HandoverMatching {
  readonly given: Int32Array;
  #offers: readonly Offer[];
  readonly #supply: Int32Array;
  readonly #demand: Int32Array;
  /** Offers by the broker that hands over, and the matched ones by the broker that takes. */
  readonly #byFrom = new Map<number, number[]>();
  readonly #takenBy = new Map<number, Set<number>>();

  constructor(offers: readonly Offer[], supply: Int32Array, demand: Int32Array) {
    this.#offers = offers;
    this.#supply = supply.slice();
    this.#demand = demand.slice();
    this.given = new Int32Array(offers.length).fill(-1);
    offers.forEach(({ from }, i) => {
      const list = this.#byFrom.get(from);
      if (list === undefined) this.#byFrom.set(from, [i]);
      else list.push(i);
    });
  }

  #left(of: Int32Array, b: number): number {
    return of[b] ?? 0;
  }

  #set(i: number, to: number): void {
    const was = this.given[i] ?? -1;
    if (was !== -1) this.#takenBy.get(was)?.delete(i);
    this.given[i] = to;
    if (to === -1) return;
    const set = this.#takenBy.get(to);
    if (set === undefined) this.#takenBy.set(to, new Set([i]));
    else set.add(i);
  }

  run(): void {
    for (let i = 0; i < this.#offers.length; i++) this.#takeDirect(i);
    this.#augmentAll();
  }

  /** From here on a shard may also go where it must be copied. */
  alsoCopy(): void {
    this.#offers = this.#offers.map((offer) => ({ ...offer, to: [...offer.to, ...(offer.copyTo ?? [])] }));
  }

  #takeDirect(i: number): void {
    const offer = this.#offers[i];
    if (offer === undefined || this.given[i] !== -1 || this.#left(this.#supply, offer.from) === 0) return;
    let best = -1;
    for (const b of offer.to) {
      if (this.#left(this.#demand, b) > (best === -1 ? 0 : this.#left(this.#demand, best))) best = b;
    }
    if (best === -1) return;
    this.#set(i, best);
    this.#supply[offer.from] = this.#left(this.#supply, offer.from) - 1;
    this.#demand[best] = this.#left(this.#demand, best) - 1;
  }

  #augmentAll(): void {
    for (const from of this.#byFrom.keys()) {
      while (this.#left(this.#supply, from) > 0 && this.#augment(from)) {
        this.#supply[from] = this.#left(this.#supply, from) - 1;
      }
    }
  }

  /**
   * One more hand-over out of `start`. Nodes are brokers that give (`f`) and brokers that take (`t`): an offer not
   * matched leads from its giver to its takers; a matched one from its taker to its other takers, or back to its
   * giver, which may then hand over another.
   */
  #augment(start: number): boolean {
    const n = this.#supply.length;
    const cameBy = new Map<number, { node: number; offer: number }>();
    const queue = [start];
    for (const node of queue) {
      const taker = node >= n;
      const offers = taker ? (this.#takenBy.get(node - n) ?? []) : (this.#byFrom.get(node) ?? []);
      for (const i of offers) {
        const offer = this.#offers[i];
        if (offer === undefined || (!taker && this.given[i] !== -1)) continue;
        if (taker && offer.from !== start && !cameBy.has(offer.from)) {
          cameBy.set(offer.from, { node, offer: i });
          queue.push(offer.from);
        }
        for (const b of offer.to) {
          if (node === n + b || cameBy.has(n + b)) continue;
          cameBy.set(n + b, { node, offer: i });
          if (this.#left(this.#demand, b) > 0) {
            this.#demand[b] = this.#left(this.#demand, b) - 1;
            this.#apply(cameBy, n + b, start);
            return true;
          }
          queue.push(n + b);
        }
      }
    }
    return false;
  }

  #apply(cameBy: ReadonlyMap<number, { node: number; offer: number }>, end: number, start: number): void {
    const n = this.#supply.length;
    for (let at = end; at !== start;) {
      const step = cameBy.get(at);
      if (step === undefined) throw new Error('a path of hand-overs is broken');
      this.#set(step.offer, at >= n ? at - n : -1);
      at = step.node;
    }
  }
}
