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
  readonly #keys: Float64Array;
  /** The brokers of a row that have one of its costs: those of the next one too, if the costs are the same. */
  readonly #selection: Selection;
  #listed: Uint8Array | null = null;
  #listedLevel = FORBIDDEN;
  #row = 0;
  /** Of the row in hand. */
  readonly #scores: Scores = {
    ranks: (list, from, to, into) => {
      this.#p.scores(this.#row).ranks(list, from, to, into);
    },
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
    this.#keys = keysOf(problem);
    this.#selection = new Selection(this.#keys);
  }

  /** Who leads one more than its floor goes on to, as far as the rows have picks for them. */
  keep(): void {
    const { rows, costs } = this.#p;
    const free: number[] = [];
    let looked = { levels: 0, keeps: 0 };
    for (let row = 0; row < rows; row++) {
      if (row === 0 || costs[row] !== costs[row - 1]) looked = look(costs[row] ?? NO_COSTS);
      this.#levels[row] = looked.levels;
      this.#anyLevel |= looked.levels;
      if (looked.keeps > (this.#take[row] ?? 0)) free.push(row);
      else this.#pickFor(row, KEEPS);
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
    const { brokers } = this.#p;
    this.#row = row;
    this.#list(this.#p.costs[row] ?? NO_COSTS, level);
    const chosen = this.#selection.choose(wanted, this.#scores);
    for (let i = 0; i < chosen; i++) {
      const b = this.#selection.at(i);
      this.picked[row * brokers + b] = 1;
      this.count[b] = (this.count[b] ?? 0) + 1;
      this.#keys[b] = (this.#keys[b] ?? 0) + brokers;
    }
    this.#take[row] = wanted - chosen;
    this.dearest[row] = level;
  }

  #list(cost: Uint8Array, level: number): void {
    if (this.#listed === cost && this.#listedLevel === level) return;
    this.#listed = cost;
    this.#listedLevel = level;
    this.#selection.begin();
    for (let b = 0; b < cost.length; b++) if (cost[b] === level) this.#selection.add(b);
  }
}

const NO_COSTS = new Uint8Array(0);
/** A bit for every cost of a row, and how many brokers of it keep what they lead. */
function look(cost: Uint8Array): { levels: number; keeps: number } {
  let levels = 0;
  let keeps = 0;
  for (let b = 0; b < cost.length; b++) {
    const level = cost[b] ?? FORBIDDEN;
    if (level === FORBIDDEN) continue;
    levels |= 1 << level;
    if (level === KEEPS) keeps++;
  }
  return { levels, keeps };
}

/** One number a broker: picks above its least first, then, the widest first, how far its bounds are apart, which never changes. */
function keysOf({ brokers, least, most }: RemainderProblem): Float64Array {
  const width = (b: number): number => (most[b] ?? 0) - (least[b] ?? 0);
  const widths = [...new Set(Array.from({ length: brokers }, (_, b) => width(b)))].sort((a, b) => b - a);
  const rank = new Map(widths.map((n, i) => [n, i]));
  return Float64Array.from(least, (n, b) => (rank.get(width(b)) ?? 0) - n * brokers);
}
