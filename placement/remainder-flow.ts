import { FORBIDDEN, HANDS_OVER, KEEPS, COPIES, type RemainderProblem } from './remainder-problem.ts';
import { cheapestPicks, type Picks } from './remainder-start.ts';

/**
 * A cheapest choice of remainders within every broker's bounds: fewest moves, then fewest that wait for room, then fewest copies. Where the
 * bounds cannot be met it comes as near as paths allow. Answers rows × brokers, 1 where picked.
 *
 * Successive shortest paths with potentials (Edmonds and Karp 1972; Tomizawa 1971), started from each row's
 * cheapest picks, which is optimal while the bounds are left out. Only broken bounds are repaired: first
 * brokers above their most, then those below their least. Every repair is along a shortest path of swaps
 * "this row picks that broker instead", so what is not repaired any further is still cheapest.
 */
export function chooseRemainders(problem: RemainderProblem): Uint8Array {
  const start = cheapestPicks(problem);
  if (isWithinBounds(problem, start)) return start.picked;
  const flow = new RemainderFlow(problem, start);
  flow.repair('most');
  flow.repair('least');
  return flow.picked;
}

function isWithinBounds({ least, most }: RemainderProblem, { count }: Picks): boolean {
  return count.every((n, b) => n >= (least[b] ?? 0) && n <= (most[b] ?? 0));
}

class RemainderFlow {
  readonly picked: Uint8Array;
  /** The same by broker, then row: whose rows are looked for lie side by side. */
  readonly #pickedBy: Uint8Array;
  readonly #p: RemainderProblem;
  /** By broker: picks in all. */
  readonly #count: Int32Array;
  /** Costs of a move and of a wait against that of a copy: no number of copies outweighs a wait, none of waits a move. */
  readonly #move: number;
  readonly #wait: number;
  /** Potentials: brokers first, then rows. Every arc's cost plus its tail's less its head's is 0 or more. */
  readonly #potential: Float64Array;
  readonly #distance: Float64Array;
  /** Potential of the node that gathers all picks. */
  #sink = 0;

  constructor(problem: RemainderProblem, { picked, count, dearest }: Picks) {
    const { rows, brokers } = problem;
    this.#p = problem;
    this.picked = picked;
    this.#count = count;
    this.#pickedBy = transposed(picked, rows, brokers);
    this.#wait = problem.take.reduce((sum, k) => sum + k, 1);
    this.#move = this.#wait ** 2;
    this.#potential = new Float64Array(brokers + rows);
    for (let row = 0; row < rows; row++)
      this.#potential[brokers + row] = -this.#costOf(dearest[row] ?? KEEPS);
    this.#distance = new Float64Array(brokers + rows);
  }

  #cost(row: number, b: number): number {
    return this.#costOf(this.#p.costs[row]?.[b] ?? FORBIDDEN);
  }

  #costOf(level: number): number {
    if (level === KEEPS) return 0;
    return this.#move + (level === HANDS_OVER ? 0 : level === COPIES ? 1 : this.#wait);
  }

  #set(row: number, b: number, to: 0 | 1): void {
    this.picked[row * this.#p.brokers + b] = to;
    this.#pickedBy[b * this.#p.rows + row] = to;
  }

  repair(bound: 'least' | 'most'): void {
    for (;;) {
      const reached = this.#shortest(bound);
      if (reached === Infinity) return;
      for (let v = 0; v < this.#potential.length; v++) {
        this.#potential[v] = (this.#potential[v] ?? 0) + Math.min(this.#distance[v] ?? 0, reached);
      }
      this.#augment(bound);
    }
  }

  /** A path may begin here: a broker above its most; or, to fill one below its least, any that can spare a pick. */
  #gives(b: number, bound: 'least' | 'most'): boolean {
    return (this.#count[b] ?? 0) > (this.#p[bound][b] ?? 0);
  }

  #takes(b: number, bound: 'least' | 'most'): boolean {
    return (this.#count[b] ?? 0) < (this.#p[bound][b] ?? 0);
  }

  /** Distances (reduced costs) from every giver; the nearest taker's is answered, Infinity if none is reached. */
  #shortest(bound: 'least' | 'most'): number {
    const { brokers, rows } = this.#p;
    const distance = this.#distance.fill(Infinity);
    const heap = new MinHeap();
    let takers = 0;
    for (let b = 0; b < brokers; b++) {
      if (this.#takes(b, bound)) takers++;
      if (!this.#gives(b, bound)) continue;
      const start = bound === 'most' ? 0 : this.#sink - (this.#potential[b] ?? 0);
      distance[b] = start;
      heap.push(start, b);
    }
    if (takers === 0) return Infinity;
    for (let top = heap.pop(); top !== null; top = heap.pop()) {
      const { key, value } = top;
      if (key > (distance[value] ?? 0)) continue;
      if (value >= brokers) this.#relaxRow(value - brokers, key, heap);
      else if (this.#takes(value, bound)) {
        if (bound === 'most') this.#sink += key;
        return key;
      } else {
        for (let row = 0; row < rows; row++) {
          if (this.#pickedBy[value * rows + row] === 0) continue;
          const step = (this.#potential[value] ?? 0) - (this.#potential[brokers + row] ?? 0);
          const next = key + step - this.#cost(row, value);
          if (next >= (distance[brokers + row] ?? 0)) continue;
          distance[brokers + row] = next;
          heap.push(next, brokers + row);
        }
      }
    }
    return Infinity;
  }

  #relaxRow(row: number, key: number, heap: MinHeap): void {
    const { brokers, costs } = this.#p;
    const base = row * brokers;
    const cost = costs[row];
    const from = key + (this.#potential[brokers + row] ?? 0);
    for (let b = 0; b < brokers; b++) {
      if (this.picked[base + b] === 1 || cost?.[b] === FORBIDDEN) continue;
      const next = from + this.#cost(row, b) - (this.#potential[b] ?? 0);
      if (next >= (this.#distance[b] ?? 0)) continue;
      this.#distance[b] = next;
      heap.push(next, b);
    }
  }

  /** Swaps along paths of reduced cost 0, until there is none. */
  #augment(bound: 'least' | 'most'): void {
    const search = new PathSearch(this.#potential.length);
    for (let b = 0; b < this.#p.brokers; b++) {
      while (this.#gives(b, bound) && this.#startsTight(b, bound)) {
        const taker = this.#nearest(b, bound, search);
        if (taker === -1) break;
        this.#swapAlong(taker, b, search);
      }
    }
  }

  #startsTight(b: number, bound: 'least' | 'most'): boolean {
    return bound === 'most' || (this.#potential[b] ?? 0) === this.#sink;
  }

  /** The taker that the fewest swaps of reduced cost 0 lead to, the first found of those; -1: none is reached. */
  #nearest(start: number, bound: 'least' | 'most', search: PathSearch): number {
    const { brokers, rows, costs } = this.#p;
    const potential = this.#potential;
    if (!search.begin(start)) return -1;
    for (let b = search.next(); b !== -1; b = search.next()) {
      for (let row = 0; row < rows; row++) {
        if (this.#pickedBy[b * rows + row] === 0 || search.seen(brokers + row)) continue;
        const base = row * brokers;
        const cost = costs[row];
        if ((potential[b] ?? 0) - this.#cost(row, b) !== potential[brokers + row]) continue;
        search.reach(brokers + row, b);
        for (let to = 0; to < brokers; to++) {
          if (this.picked[base + to] === 1 || cost?.[to] === FORBIDDEN || search.seen(to)) continue;
          if ((potential[brokers + row] ?? 0) + this.#cost(row, to) !== potential[to]) continue;
          search.reach(to, brokers + row);
          if (this.#takes(to, bound)) return to;
          search.push(to);
        }
      }
    }
    return -1;
  }

  #swapAlong(taker: number, giver: number, search: PathSearch): void {
    const { brokers } = this.#p;
    for (let to = taker; to !== giver;) {
      const row = search.before(to) - brokers;
      const from = search.before(brokers + row);
      this.#set(row, from, 0);
      this.#set(row, to, 1);
      to = from;
    }
    this.#count[giver] = (this.#count[giver] ?? 0) - 1;
    this.#count[taker] = (this.#count[taker] ?? 0) + 1;
    search.forget();
  }
}

function transposed(picked: Uint8Array, rows: number, brokers: number): Uint8Array {
  const by = new Uint8Array(picked.length);
  for (let row = 0; row < rows; row++) {
    for (let b = 0; b < brokers; b++) by[b * rows + row] = picked[row * brokers + b] ?? 0;
  }
  return by;
}

/**
 * Searches breadth first over brokers and rows. What a search reached that found nothing stays seen: nothing leads out of
 * it, now or after other swaps, which only turn arcs around that lead to a taker.
 */
class PathSearch {
  readonly #before: Int32Array;
  readonly #queue: number[] = [];
  readonly #reached: number[] = [];
  #at = 0;

  constructor(nodes: number) {
    this.#before = new Int32Array(nodes).fill(UNSEEN);
  }

  /** Answers false where a search that found nothing has come by. */
  begin(start: number): boolean {
    if (this.seen(start)) return false;
    this.#queue.length = this.#reached.length = this.#at = 0;
    this.reach(start, start);
    this.push(start);
    return true;
  }

  seen(node: number): boolean {
    return this.#before[node] !== UNSEEN;
  }

  reach(node: number, before: number): void {
    this.#before[node] = before;
    this.#reached.push(node);
  }

  push(broker: number): void {
    this.#queue.push(broker);
  }

  next(): number {
    return this.#queue[this.#at++] ?? -1;
  }

  before(node: number): number {
    return this.#before[node] ?? UNSEEN;
  }

  /** A path was found and swapped: the next search may come by here again. */
  forget(): void {
    for (const node of this.#reached) this.#before[node] = UNSEEN;
  }
}

const UNSEEN = -1;

/** A binary heap of numbers by key; equal keys leave in the order of their value, so that no history shows. */
class MinHeap {
  readonly #keys: number[] = [];
  readonly #values: number[] = [];

  push(key: number, value: number): void {
    let i = this.#keys.length;
    this.#keys.push(key);
    this.#values.push(value);
    while (i > 0) {
      const up = (i - 1) >> 1;
      if (!this.#before(i, up)) break;
      this.#exchange(i, up);
      i = up;
    }
  }

  pop(): { key: number; value: number } | null {
    const key = this.#keys[0];
    const value = this.#values[0];
    if (key === undefined || value === undefined) return null;
    const last = this.#keys.length - 1;
    this.#exchange(0, last);
    this.#keys.pop();
    this.#values.pop();
    for (let i = 0; ;) {
      let least = i;
      for (const child of [2 * i + 1, 2 * i + 2]) {
        if (child < last && this.#before(child, least)) least = child;
      }
      if (least === i) break;
      this.#exchange(i, least);
      i = least;
    }
    return { key, value };
  }

  #before(i: number, j: number): boolean {
    const x = this.#keys[i] ?? 0;
    const y = this.#keys[j] ?? 0;
    return x < y || (x === y && (this.#values[i] ?? 0) < (this.#values[j] ?? 0));
  }

  #exchange(i: number, j: number): void {
    const key = this.#keys[i] ?? 0;
    const value = this.#values[i] ?? 0;
    this.#keys[i] = this.#keys[j] ?? 0;
    this.#values[i] = this.#values[j] ?? 0;
    this.#keys[j] = key;
    this.#values[j] = value;
  }
}
