/** One group of rows (led from one zone) or of brokers (one zone, or all lone brokers together). */
export interface QuotaGroup {
  /** Rows led from it. */
  readonly rows: number;
  /** Seats of followers in it. */
  readonly followers: number;
  /** Followers that one row may take from it, led from elsewhere. */
  readonly least: number;
  readonly most: number;
}

/** Rounds of fitting; few rows, or many groups, need less of it. */
const ROUNDS = 24;
const FEW_ROUNDS = 4;
const FEW_ROWS = 64;
const MANY_GROUPS = 16;
/** Quotas are in units of 2^-20 of a follower. */
export const QUOTA_UNIT = 2 ** 20;

/**
 * How many followers a row led from group `i` takes from group `j` on average, at `[i * groups + j]`: as even as
 * the bounds allow, so that a leader's followers spread over all zones that can hold them. Rows and columns are
 * brought to their sums in turn (iterative proportional fitting, R. Sinkhorn 1964) and cut to their bounds. The
 * result only guides: what a row may and must take is decided exactly, row by row. Sums, products and quotients of
 * doubles are the same on every machine.
 */
export class Quotas {
  readonly #n: number;
  readonly #x: Float64Array;
  readonly #least: Float64Array;
  readonly #most: Float64Array;

  constructor(groups: number) {
    this.#n = groups;
    this.#x = new Float64Array(groups * groups);
    this.#least = new Float64Array(groups * groups);
    this.#most = new Float64Array(groups * groups);
  }

  /** The array holds until the next call. */
  of(
    groups: readonly QuotaGroup[],
    { followers, rows }: { readonly followers: number; readonly rows: number },
  ): Float64Array {
    const n = this.#n;
    const x = this.#x;
    this.#begin(groups);
    const rounds = rows <= FEW_ROWS || n > MANY_GROUPS ? FEW_ROUNDS : ROUNDS;
    for (let round = 0, moves = true; moves && round < rounds; round++) {
      moves = false;
      for (let j = 0; j < n; j++) {
        let sum = 0;
        for (let i = 0; i < n; i++) sum += (x[i * n + j] ?? 0) * (groups[i]?.rows ?? 0);
        if (sum > 0 && this.#scale((groups[j]?.followers ?? 0) / sum, j, n)) moves = true;
      }
      for (let i = 0; i < n; i++) {
        let sum = 0;
        for (let j = 0; j < n; j++) sum += x[i * n + j] ?? 0;
        if (sum > 0 && this.#scale(followers / sum, i * n, 1)) moves = true;
      }
    }
    for (let at = 0; at < x.length; at++) x[at] = Math.floor((x[at] ?? 0) * QUOTA_UNIT);
    return x;
  }

  #begin(groups: readonly QuotaGroup[]): void {
    const n = this.#n;
    for (let j = 0; j < n; j++) {
      const group = groups[j] ?? NO_GROUP;
      for (let i = 0; i < n; i++) {
        const own = i === j ? 1 : 0;
        const at = i * n + j;
        const least = (this.#least[at] = Math.max(0, group.least - own));
        const most = (this.#most[at] = Math.max(0, group.most - own));
        this.#x[at] = Math.max(least, Math.min(most, group.followers));
      }
    }
  }

  /** One row or column: every `step`-th. Answers whether any of it has changed. */
  #scale(by: number, from: number, step: number): boolean {
    const x = this.#x;
    let changed = false;
    for (let k = 0, at = from; k < this.#n; k++, at += step) {
      const before = x[at] ?? 0;
      const after = Math.max(this.#least[at] ?? 0, Math.min(this.#most[at] ?? 0, before * by));
      x[at] = after;
      if (after !== before) changed = true;
    }
    return changed;
  }
}

const NO_GROUP: QuotaGroup = { rows: 0, followers: 0, least: 0, most: 0 };
