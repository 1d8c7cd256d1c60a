import { shares, type Shares } from './share.ts';
import type { View } from './view.ts';

/** The floors and ceilings of a pass. The same number of shards has the same shares, so few are computed. */
export class ShareBook {
  readonly #view: View;
  readonly #byTotal = new Map<number, Shares>();

  constructor(view: View) {
    this.#view = view;
  }

  /** Of one resource's shards that count now. */
  of(resource: number): Shares {
    return this.ofTotal(this.#view.tally.shards[resource] ?? 0);
  }

  /** Of all shards that count now: the cluster share. */
  cluster(): Shares {
    return this.ofTotal(this.#view.tally.shardsTotal);
  }

  /** Of so many shards. */
  ofTotal(total: number): Shares {
    let found = this.#byTotal.get(total);
    if (found === undefined) {
      found = shares(total, this.#view.brokers);
      this.#byTotal.set(total, found);
    }
    return found;
  }
}

/** How far outside floor…ceiling `n` leaders are on a broker. */
export function outside({ floor, ceiling }: Shares, broker: number, n: number): number {
  return Math.max(0, n - (ceiling[broker] ?? 0), (floor[broker] ?? 0) - n);
}
