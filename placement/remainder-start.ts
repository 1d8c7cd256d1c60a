import { COPIES, FORBIDDEN, HANDS_OVER, KEEPS, WAITS, type RemainderProblem } from './remainder-problem.ts';
import { Selection, type Scores } from './selection.ts';

/** A choice of remainders, whatever the brokers' bounds. */
export interface Picks {
  /** rows × brokers: 1 where picked. */
  readonly picked: Uint8Array;
  /** By broker: picks in all. */
  readonly count: Int32Array;
  /** By row: the dearest cost picked; KEEPS where it picked nothing. */
  readonly dearest: Uint8Array;
}

/** Each row's cheapest picks; among equals the brokers furthest below their bounds, then by score. */
export function cheapestPicks(problem: RemainderProblem): Picks {
  const start = new Start(problem);
  start.keep();
  for (const level of [HANDS_OVER, COPIES, WAITS]) start.pickAll(level);
  return start;
}

class Start implements Picks {
  readonly picked: Uint8Array;
  readonly count: Int32Array;
  readonly dearest: Uint8Array;
  readonly #p: RemainderProblem;
  /** By row: picks it still takes. */
  readonly #take: Int32Array;
  /** By row, and of all rows: a bit for every cost that there is. */
  readonly #levels: Uint8Array;
  #anyLevel = 0;
  /** By broker: the smaller, the further below its bounds. */
  readonly #key: Float64Array;
  readonly #selection: Selection;
  #row = 0;
  /** Of the row in hand. */
  readonly #scores: Scores = {
    high: (b) => this.#p.score(this.#row, b),
    compare: (a, b) => a - b,
  };

  constructor(problem: RemainderProblem) {
    const { rows, brokers } = problem;
    this.#p = problem;
    this.picked = new Uint8Array(rows * brokers);
    this.count = new Int32Array(brokers);
    this.dearest = new Uint8Array(rows).fill(KEEPS);
    this.#take = problem.take.slice();
    this.#levels = new Uint8Array(rows);
    this.#key = keysOf(problem);
    this.#selection = new Selection(brokers);
  }

  /** Who leads one more than its floor goes on to, as far as the rows have picks for them. */
  keep(): void {
    const { rows, brokers, cost } = this.#p;
    const free: number[] = [];
    for (let row = 0; row < rows; row++) {
      let levels = 0;
      let keeps = 0;
      for (let at = row * brokers; at < (row + 1) * brokers; at++) {
        const level = cost[at] ?? FORBIDDEN;
        if (level === FORBIDDEN) continue;
        levels |= 1 << level;
        if (level === KEEPS) keeps++;
      }
      this.#levels[row] = levels;
      this.#anyLevel |= levels;
      if (keeps > (this.#take[row] ?? 0)) free.push(row);
      else if (keeps > 0) this.#pickFor(row, KEEPS);
    }
    for (const row of free) this.#pickFor(row, KEEPS);
  }

  /** What rows still take, from their brokers of one cost. */
  pickAll(level: number): void {
    if ((this.#anyLevel & (1 << level)) === 0) return;
    for (let row = 0; row < this.#p.rows; row++) this.#pickFor(row, level);
  }

  #pickFor(row: number, level: number): void {
    const wanted = this.#take[row] ?? 0;
    if (wanted === 0 || ((this.#levels[row] ?? 0) & (1 << level)) === 0) return;
    const { brokers, cost } = this.#p;
    const selection = this.#selection;
    const key = this.#key;
    const base = row * brokers;
    selection.begin();
    for (let b = 0; b < brokers; b++) if (cost[base + b] === level) selection.add(b, key[b] ?? 0);
    this.#row = row;
    const chosen = selection.choose(wanted, this.#scores);
    for (let i = 0; i < chosen; i++) {
      const b = selection.at(i);
      this.picked[base + b] = 1;
      this.count[b] = (this.count[b] ?? 0) + 1;
      key[b] = (key[b] ?? 0) + brokers;
    }
    this.#take[row] = wanted - chosen;
    this.dearest[row] = level;
  }
}

/** One number a broker: picks above its least first, then, the widest first, how far its bounds are apart, which never changes. */
function keysOf({ brokers, least, most }: RemainderProblem): Float64Array {
  const width = (b: number): number => (most[b] ?? 0) - (least[b] ?? 0);
  const widths = [...new Set(Array.from({ length: brokers }, (_, b) => width(b)))].sort((a, b) => b - a);
  const rank = new Map(widths.map((n, i) => [n, i]));
  return Float64Array.from(least, (n, b) => (rank.get(width(b)) ?? 0) - n * brokers);
}
