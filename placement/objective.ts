import { vectorTail, vectorTailAfter, type CopyTargets } from './copies/index.ts';
import type { Vector } from './plan-types.ts';
import { outside, type ShareBook } from './share-book.ts';
import type { View } from './view.ts';

/** Squares are printed to this many parts: enough to tell any two layouts of a cluster apart. */
const PARTS = 1e9;

/**
 * The vector that every optional step lowers (placement rule "Calm"): leaders outside floor…ceiling, squared distance
 * of totals from the share, then the copies' components. Only live brokers are counted.
 */
export class Objective {
  readonly #view: View;
  readonly #book: ShareBook;
  readonly #copyTargets: CopyTargets;
  /** By resource: leaders outside floor…ceiling. */
  readonly #outside: Int32Array;
  #outsideTotal = 0;

  constructor(view: View, book: ShareBook, copyTargets: CopyTargets) {
    this.#view = view;
    this.#book = book;
    this.#copyTargets = copyTargets;
    this.#outside = new Int32Array(view.resourceCount);
    for (let r = 0; r < view.resourceCount; r++) this.refresh(r);
  }

  /** Counts a resource's leaders anew: the pass has changed who leads it. */
  refresh(r: number): void {
    let sum = 0;
    const row = this.#book.of(r);
    for (const b of this.#view.brokers.liveList) sum += outside(row, b, this.#view.tally.leadersOf(r, b));
    this.#outsideTotal += sum - (this.#outside[r] ?? 0);
    this.#outside[r] = sum;
  }

  /** Leaders of `r` outside floor…ceiling, on all brokers. */
  outsideOf(r: number): number {
    return this.#outside[r] ?? 0;
  }

  /** What handing one leadership of `r` over adds to the first component. */
  outsideChange(r: number, from: number, to: number): number {
    const row = this.#book.of(r);
    const { tally, brokers } = this.#view;
    const change = (b: number, by: 1 | -1): number => {
      if (brokers.live[b] === 0) return 0;
      const n = tally.leadersOf(r, b);
      return outside(row, b, n + by) - outside(row, b, n);
    };
    return change(from, -1) + change(to, 1);
  }

  /** What handing one leadership over adds to the second component. */
  totalsChange(from: number, to: number): number {
    const { tally, brokers } = this.#view;
    const { exact } = this.#book.cluster();
    const over = (b: number): number => (tally.leaders[b] ?? 0) - (exact[b] ?? 0);
    const change = (brokers.live[from] === 1 ? 1 - 2 * over(from) : 0) + 1 + 2 * over(to);
    return Math.round(change * PARTS) / PARTS;
  }

  vector(): Vector {
    const tail = vectorTail(this.#copyTargets);
    return this.#join(tail);
  }

  /** As the shard's set of copies would leave it, who leads unchanged. */
  vectorAfter(s: number, finished: readonly number[]): Vector {
    return this.#join(vectorTailAfter(this.#copyTargets, s, finished));
  }

  #join(tail: { zones: number; copies: number; chain: number; totals: number }): Vector {
    const { tally, brokers } = this.#view;
    const { exact } = this.#book.cluster();
    let squares = 0;
    for (const b of brokers.liveList) squares += ((tally.leaders[b] ?? 0) - (exact[b] ?? 0)) ** 2;
    const totals = Math.round(squares * PARTS) / PARTS;
    return [this.#outsideTotal, totals, tail.zones, tail.copies, tail.chain, tail.totals];
  }
}

/** Lexicographic order. */
export function lowers(before: Vector, after: Vector): boolean {
  for (let i = 0; i < before.length; i++) {
    const change = (after[i] ?? 0) - (before[i] ?? 0);
    if (change !== 0) return change < 0;
  }
  return false;
}
