/** A shard to promote and the brokers that may take it; `group` is its resource. */
export interface Candidate {
  readonly shard: number;
  readonly group: number;
  /** Broker indices in the order of preference among equals. At least one. */
  readonly brokers: readonly number[];
}

export interface PromotionProblem {
  readonly candidates: readonly Candidate[];
  /** Leaders that a broker has of a group, those to be promoted left out. */
  readonly led: (group: number, broker: number) => number;
  readonly floor: (group: number, broker: number) => number;
  readonly ceiling: (group: number, broker: number) => number;
  readonly share: (group: number, broker: number) => number;
  /** By broker, over all groups. */
  readonly total: Int32Array;
  readonly totalShare: Float64Array;
}

/** What one more or one fewer leader does: leaders outside floor…ceiling, then the squared distance from the share. */
interface Change {
  readonly outside: number;
  readonly square: number;
}

/** Shares are fractions: two changes nearer than this are equal. */
const EPSILON = 1e-9;
/** Bounds the levelling of totals, in candidates looked at: past it the promotions stand as they are. */
const TOTALS_EFFORT = 20_000_000;

/**
 * Chooses a new leader for every candidate, all together: each group as level as the sets allow, then the totals.
 * Answers a broker by candidate.
 *
 * The counts that promotions can reach form an M-convex set (Murota 2003), so a choice that no single exchange
 * along a path of reassignments improves is the best of all; the same holds for the totals over the choices
 * that leave every group at its best. A greedy start leaves few exchanges to make.
 */
export function choosePromotions(problem: PromotionProblem): Int32Array {
  const matching = new PromotionMatching(problem);
  matching.start();
  matching.levelGroups();
  matching.levelTotals();
  return matching.chosen;
}

/** A step of a path: candidate `index` goes from one broker to the next. */
interface Hop {
  readonly index: number;
  readonly from: number;
  readonly to: number;
}

class PromotionMatching {
  readonly chosen: Int32Array;
  readonly #p: PromotionProblem;
  /** By group: leaders by broker, promotions included. */
  readonly #led = new Map<number, Map<number, number>>();
  readonly #total: Int32Array;
  /** By group, then broker: the candidates given to it. */
  readonly #given = new Map<number, Map<number, Set<number>>>();
  /** By broker: the groups of which it may be given a candidate, rising. */
  readonly #groupsAt: number[][];
  #effort = TOTALS_EFFORT;

  constructor(problem: PromotionProblem) {
    this.#p = problem;
    this.chosen = new Int32Array(problem.candidates.length).fill(-1);
    this.#total = problem.total.slice();
    const groupsAt = Array.from(problem.total, () => new Set<number>());
    for (const { group, brokers } of problem.candidates) for (const b of brokers) groupsAt[b]?.add(group);
    this.#groupsAt = groupsAt.map((groups) => [...groups].sort((a, b) => a - b));
  }

  #count(group: number, broker: number): number {
    let row = this.#led.get(group);
    if (row === undefined) this.#led.set(group, (row = new Map()));
    let n = row.get(broker);
    if (n === undefined) row.set(broker, (n = this.#p.led(group, broker)));
    return n;
  }

  #give(index: number, broker: number): void {
    const { group } = this.#p.candidates[index] ?? { group: -1 };
    const was = this.chosen[index] ?? -1;
    if (was !== -1) {
      this.#led.get(group)?.set(was, this.#count(group, was) - 1);
      this.#total[was] = (this.#total[was] ?? 0) - 1;
      this.#given.get(group)?.get(was)?.delete(index);
    }
    const n = this.#count(group, broker);
    this.#led.get(group)?.set(broker, n + 1);
    this.#total[broker] = (this.#total[broker] ?? 0) + 1;
    this.chosen[index] = broker;
    let byBroker = this.#given.get(group);
    if (byBroker === undefined) this.#given.set(group, (byBroker = new Map()));
    const set = byBroker.get(broker);
    if (set === undefined) byBroker.set(broker, new Set([index]));
    else set.add(index);
  }

  /** What one more leader of the group on the broker changes. */
  #adding(group: number, broker: number): Change {
    return this.#change(group, broker, this.#count(group, broker), 1);
  }

  #removing(group: number, broker: number): Change {
    return this.#change(group, broker, this.#count(group, broker), -1);
  }

  #change(group: number, broker: number, n: number, by: 1 | -1): Change {
    const { floor, ceiling, share } = this.#p;
    const low = floor(group, broker);
    const high = ceiling(group, broker);
    const out = (m: number): number => Math.max(0, m - high, low - m);
    return { outside: out(n + by) - out(n), square: 1 + 2 * by * (n - share(group, broker)) };
  }

  #addingTotal(broker: number): number {
    return 1 + 2 * ((this.#total[broker] ?? 0) - (this.#p.totalShare[broker] ?? 0));
  }

  #removingTotal(broker: number): number {
    return 1 - 2 * ((this.#total[broker] ?? 0) - (this.#p.totalShare[broker] ?? 0));
  }

  start(): void {
    this.#p.candidates.forEach(({ group, brokers }, index) => {
      let best = brokers[0] ?? -1;
      let change = this.#adding(group, best);
      for (const b of brokers.slice(1)) {
        const other = this.#adding(group, b);
        const order = compare(other, change) || sign(this.#addingTotal(b) - this.#addingTotal(best));
        if (order >= 0) continue;
        best = b;
        change = other;
      }
      this.#give(index, best);
    });
  }

  /** Every group by itself: paths from a broker to one that takes its place more cheaply, until there is none. */
  levelGroups(): void {
    for (const group of sortedKeys(this.#given)) {
      for (let improved = true; improved;) {
        improved = false;
        for (const b of sortedKeys(this.#given.get(group))) {
          const path = this.#cheaperPath(group, b);
          if (path === null) continue;
          for (const hop of path) this.#give(hop.index, hop.to);
          improved = true;
        }
      }
    }
  }

  /** The best exchange from `b` within the group, `null` if none improves. */
  #cheaperPath(group: number, b: number): Hop[] | null {
    const gain = this.#removing(group, b);
    let best: { change: Change; total: number; to: number } | null = null;
    const cameBy = this.#reach(group, b);
    for (const c of cameBy.keys()) {
      const change = sum(gain, this.#adding(group, c));
      if (compare(change, ZERO) >= 0) continue;
      const total = this.#addingTotal(c);
      if (best === null || (compare(change, best.change) || sign(total - best.total)) < 0) {
        best = { change, total, to: c };
      }
    }
    return best === null ? null : trace(cameBy, best.to, b);
  }

  /** Brokers that one of `b`'s promotions of the group can end on, each with the hop that reaches it. */
  #reach(group: number, b: number): Map<number, Hop> {
    const cameBy = new Map<number, Hop>();
    const queue = [b];
    const given = this.#given.get(group);
    for (const from of queue) {
      for (const index of given?.get(from) ?? []) {
        const brokers = this.#p.candidates[index]?.brokers ?? [];
        this.#effort -= brokers.length;
        for (const to of brokers) {
          if (to === b || cameBy.has(to)) continue;
          cameBy.set(to, { index, from, to });
          queue.push(to);
        }
      }
    }
    return cameBy;
  }

  /** Totals, by exchanges that leave every group as it is: over several groups where one does not do. */
  levelTotals(): void {
    this.#effort = TOTALS_EFFORT;
    for (let improved = true; improved && this.#effort > 0;) {
      improved = false;
      for (let b = 0; b < this.#total.length && this.#effort > 0; b++) {
        const path = this.#freePath(b);
        if (path === null) continue;
        for (const hop of path) this.#give(hop.index, hop.to);
        improved = true;
      }
    }
  }

  /** A shortest chain of free exchanges from `b` to a broker whose total is better off with one more. */
  #freePath(b: number): Hop[] | null {
    const gain = this.#removingTotal(b);
    const cameBy = new Map<number, Hop[]>();
    const queue = [b];
    for (const from of queue) {
      for (const group of this.#groupsAt[from] ?? []) {
        if ((this.#given.get(group)?.get(from)?.size ?? 0) === 0) continue;
        if (this.#effort <= 0) return null;
        const inner = this.#reach(group, from);
        const removed = this.#removing(group, from);
        for (const c of inner.keys()) {
          if (c === b || cameBy.has(c)) continue;
          if (compare(sum(removed, this.#adding(group, c)), ZERO) !== 0) continue;
          cameBy.set(c, trace(inner, c, from));
          queue.push(c);
          if (gain + this.#addingTotal(c) >= -EPSILON) continue;
          const path = join(cameBy, c, b);
          // Two exchanges of one group could need the same candidate: such a path does not stand.
          if (new Set(path.map((hop) => hop.index)).size === path.length) return path;
        }
      }
    }
    return null;
  }
}

const ZERO: Change = { outside: 0, square: 0 };

function sum(a: Change, b: Change): Change {
  return { outside: a.outside + b.outside, square: a.square + b.square };
}

function sign(x: number): number {
  return x > EPSILON ? 1 : x < -EPSILON ? -1 : 0;
}

function compare(a: Change, b: Change): number {
  return a.outside - b.outside || sign(a.square - b.square);
}

function sortedKeys(map: ReadonlyMap<number, unknown> | undefined): number[] {
  return [...(map?.keys() ?? [])].sort((a, b) => a - b);
}

/** The hops that lead from `start` to `end`, the last first: each frees the place that the next needs. */
function trace(cameBy: ReadonlyMap<number, Hop>, end: number, start: number): Hop[] {
  const path: Hop[] = [];
  for (let at = end; at !== start;) {
    const hop = cameBy.get(at);
    if (hop === undefined) throw new Error('a path of promotions is broken');
    path.push(hop);
    at = hop.from;
  }
  return path;
}

function join(cameBy: ReadonlyMap<number, readonly Hop[]>, end: number, start: number): Hop[] {
  const path: Hop[] = [];
  for (let at = end; at !== start;) {
    const hops = cameBy.get(at);
    if (hops === undefined) throw new Error('a path of promotions is broken');
    path.push(...hops);
    at = hops.at(-1)?.from ?? start;
  }
  return path;
}
