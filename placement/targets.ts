import { NO_CAP } from './broker-table.ts';
import { Rendezvous } from './hash.ts';
import { hasLed } from './moved.ts';
import { chooseRemainders } from './remainder-flow.ts';
import { COPIES, FORBIDDEN, HANDS_OVER, KEEPS, WAITS } from './remainder-problem.ts';
import { outside, type ShareBook } from './share-book.ts';
import { shares, type Shares } from './share.ts';
import type { View } from './view.ts';

/** How many shards of each resource each broker is to lead. Leaderships move, and new shards go, only towards it. */
export interface LeaderTargets {
  /** Shards of `resource` that `broker` is to lead; 0 for a broker that is not live. */
  of(resource: number, broker: number): number;
  /** What `broker` is to lead of `resource` at least, whoever takes the remainder. */
  floor(resource: number, broker: number): number;
  /** By broker: `floor`, and `of`, of one resource. Read, never write. */
  floors(resource: number): Int32Array;
  row(resource: number): Int32Array;
  /** The most that floor and ceiling let `broker` lead of `resource`. */
  ceiling(resource: number, broker: number): number;
  /** What brokers are to lead in all. */
  readonly cluster: Shares;
  /** A cap keeps some broker below its share: the targets may be out of reach. */
  readonly capped: boolean;
  /** Some live broker has a cap. */
  readonly bounded: boolean;
  /** Everything is at its target: today's leaders are the targets. */
  readonly settled: boolean;
}

/**
 * The matching of placement: every broker gets its floor of every resource; who takes each resource's remainder is
 * chosen over all resources at once, so that every broker's total comes to its cluster share and as many of today's
 * leaders stay as possible. `unled` says, by resource, how many shards without a leader are about to get one.
 */
export function leaderTargets(view: View, book: ShareBook, unled: Int32Array): LeaderTargets {
  // The tallies grow as the pass places: what the targets were made for does not.
  const totals = Int32Array.from(unled, (n, r) => n + (view.tally.shards[r] ?? 0));
  if (isSettled(view, book, unled)) {
    const of = (r: number, b: number): number => view.tally.leadersOf(r, b);
    return {
      of,
      floor: of,
      floors: (r) => view.tally.leadersRow(r),
      row: (r) => view.tally.leadersRow(r),
      ceiling: of,
      cluster: book.cluster(),
      capped: anyCapped(view, book, totals),
      bounded: hasCaps(view),
      settled: true,
    };
  }
  const { count } = view.brokers;
  const rows = boundedShares(view, book, totals);
  const target = new Int32Array(view.resourceCount * count);
  const open: number[] = [];
  const take: number[] = [];
  const times = new Map<Shares, number>();
  const fixed = new Int32Array(count);
  const staying = stayingLeaders(view);
  for (let r = 0; r < view.resourceCount; r++) {
    const row = rows.of(r);
    times.set(row, (times.get(row) ?? 0) + 1);
    if (row.whole > 0) target.set(row.floor, r * count);
    let left = (totals[r] ?? 0) - row.whole;
    let eligible = row.open;
    // What has moved in this phase stays: its broker has its part of the remainder already.
    const stays = staying.get(r) ?? [];
    for (let b = 0; b < stays.length && left > 0; b++) {
      const floor = row.floor[b] ?? 0;
      if ((stays[b] ?? 0) <= floor || (row.ceiling[b] ?? 0) <= floor) continue;
      target[r * count + b] = floor + 1;
      fixed[b] = (fixed[b] ?? 0) + 1;
      left--;
      eligible--;
    }
    if (left <= 0 || eligible === 0) continue;
    open.push(r);
    take.push(Math.min(left, eligible));
  }
  for (const [row, n] of times) row.floor.forEach((floor, b) => (fixed[b] = (fixed[b] ?? 0) + n * floor));
  const cluster = rows.cluster;
  const least = Int32Array.from(cluster.floor, (n, b) => Math.max(0, n - (fixed[b] ?? 0)));
  const most = Int32Array.from(cluster.ceiling, (n, b) => Math.max(0, n - (fixed[b] ?? 0)));
  const rendezvous = new Rendezvous(view.brokers.ids);
  const found = remainderCosts(view, open, rows.of, { unled, target, staying });
  const picked = chooseRemainders({
    rows: open.length,
    brokers: count,
    costs: found.map(({ cost }) => cost),
    take: Int32Array.from(take),
    least,
    most,
    scores: (row) => ({
      ranks: (list, from, to, into) => {
        rendezvous.of(view.resourceKeys[open[row] ?? 0] ?? '').ranks(list, from, to, into);
        const gives = found[row]?.gives;
        // The high lane is below 2^32: who could hand one over without a copy keeps its own last.
        for (let i = from; i < to; i++) {
          const b = list[i] ?? 0;
          if (gives?.[b] !== 1) into[b] = (into[b] ?? 0) - 2 ** 32;
        }
      },
    }),
  });
  open.forEach((r, i) => {
    const at = r * count;
    for (let b = 0; b < count; b++)
      if (picked[i * count + b] === 1) target[at + b] = (target[at + b] ?? 0) + 1;
  });
  return {
    of: (r, b) => target[r * count + b] ?? 0,
    floor: (r, b) => rows.of(r).floor[b] ?? 0,
    floors: (r) => rows.of(r).floor,
    row: (r) => target.subarray(r * count, (r + 1) * count),
    ceiling: (r, b) => rows.of(r).ceiling[b] ?? 0,
    cluster: book.ofTotal(sumOf(totals)),
    capped: rows.capped,
    bounded: hasCaps(view),
    settled: false,
  };
}

/** By resource that has any, then broker: leaderships that have moved in this phase and stay. */
function stayingLeaders(view: View): ReadonlyMap<number, Int32Array> {
  const staying = new Map<number, Int32Array>();
  for (const s of view.movedLeaders) {
    if (!hasLed(view, s)) continue;
    const r = view.resource(s);
    const counts = staying.get(r) ?? new Int32Array(view.brokers.count);
    staying.set(r, counts);
    const b = view.nextLeader(s);
    counts[b] = (counts[b] ?? 0) + 1;
  }
  return staying;
}

/** Every shard is led by a live broker, every resource and the totals are within floor and ceiling. */
function isSettled(view: View, book: ShareBook, unled: Int32Array): boolean {
  if (unled.some((n) => n > 0)) return false;
  if (!totalsAreSettled(view, book)) return false;
  for (let r = 0; r < view.resourceCount; r++) if (!isSettledResource(view, book, r)) return false;
  return true;
}

/** Only live brokers lead, each within floor and ceiling of the cluster share. */
export function totalsAreSettled({ tally, brokers }: View, book: ShareBook): boolean {
  const cluster = book.cluster();
  for (let b = 0; b < brokers.count; b++) {
    const led = tally.leaders[b] ?? 0;
    if (brokers.live[b] === 0 ? led !== 0 : outside(cluster, b, led) > 0) return false;
  }
  return true;
}

/** Every live broker leads within floor and ceiling of the resource. */
export function isSettledResource({ tally, brokers }: View, book: ShareBook, r: number): boolean {
  const share = book.of(r);
  const led = tally.leadersRow(r);
  for (const b of brokers.liveList) if (outside(share, b, led[b] ?? 0) > 0) return false;
  return true;
}

function anyCapped(view: View, book: ShareBook, totals: Int32Array): boolean {
  if (!hasCaps(view)) return false;
  return book.ofTotal(sumOf(totals)).capped || totals.some((total) => book.ofTotal(total).capped);
}

function sumOf(totals: Int32Array): number {
  return totals.reduce((sum, n) => sum + n, 0);
}

function hasCaps(view: View): boolean {
  return view.brokers.liveList.some((b) => view.brokers.cap[b] !== NO_CAP);
}

interface BoundedShares {
  readonly of: (resource: number) => Shares;
  readonly cluster: Shares;
  readonly capped: boolean;
}

/**
 * Each resource's shares, none of whose floors add up past a broker's cap. Where they would (many small resources,
 * each with its floor on a small broker), the resources it leads the most of give way first, evenly, and their other
 * brokers share what is cut off.
 */
function boundedShares(view: View, book: ShareBook, totals: Int32Array): BoundedShares {
  const plain = (r: number): Shares => book.ofTotal(totals[r] ?? 0);
  const cluster = book.ofTotal(sumOf(totals));
  if (!hasCaps(view)) return { of: plain, cluster, capped: false };
  const own = new Map<number, Shares>();
  const caps = new Map<number, Int32Array>();
  const of = (r: number): Shares => own.get(r) ?? plain(r);
  let capped = anyCapped(view, book, totals);
  for (let round = 0; round < view.brokers.count; round++) {
    const over = view.brokers.liveList.find((b) => floors(view, of, b) > (cluster.ceiling[b] ?? 0));
    if (over === undefined) break;
    capped = true;
    const level = waterLevel(view, of, over, cluster.ceiling[over] ?? 0);
    const more = oneMore(view, of, over, { level, room: cluster.ceiling[over] ?? 0 });
    for (let r = 0; r < view.resourceCount; r++) {
      const most = level + (more.has(r) ? 1 : 0);
      if ((of(r).ceiling[over] ?? 0) <= most) continue;
      const cap = caps.get(r) ?? view.brokers.cap.slice();
      cap[over] = most;
      caps.set(r, cap);
      own.set(r, shares(totals[r] ?? 0, { live: view.brokers.live, weight: view.brokers.weight, cap }));
    }
  }
  return { of, cluster, capped };
}

function floors(view: View, of: (r: number) => Shares, broker: number): number {
  let sum = 0;
  for (let r = 0; r < view.resourceCount; r++) sum += of(r).floor[broker] ?? 0;
  return sum;
}

/** The highest number to which each resource's floor on `broker` can be cut so that they add up to `room` at most. */
function waterLevel(view: View, of: (r: number) => Shares, broker: number, room: number): number {
  let low = 0;
  let high = room;
  while (low < high) {
    const level = Math.ceil((low + high) / 2);
    let sum = 0;
    for (let r = 0; r < view.resourceCount; r++) sum += Math.min(level, of(r).floor[broker] ?? 0);
    if (sum <= room) low = level;
    else high = level - 1;
  }
  return low;
}

/** What is left of `room` above the level, one for each of so many resources: those it leads most of today, then by number. */
function oneMore(
  view: View,
  of: (r: number) => Shares,
  broker: number,
  { level, room }: { readonly level: number; readonly room: number },
): ReadonlySet<number> {
  let left = room;
  const above: number[] = [];
  for (let r = 0; r < view.resourceCount; r++) {
    const floor = of(r).floor[broker] ?? 0;
    left -= Math.min(level, floor);
    if (floor > level) above.push(r);
  }
  const led = (r: number): number => Math.min(level + 1, view.tally.leadersOf(r, broker));
  above.sort((a, b) => led(b) - led(a) || a - b);
  return new Set(above.slice(0, Math.max(0, left)));
}

/** Of one resource, by broker. */
interface RemainderCosts {
  /** What it costs that it leads one more than its floor. */
  readonly cost: Uint8Array;
  /** 1 if it leads a shard with an in-sync copy where the floor is not reached. */
  readonly gives: Uint8Array;
}

function remainderCosts(
  view: View,
  open: readonly number[],
  of: (r: number) => Shares,
  given: {
    readonly unled: Int32Array;
    readonly target: Int32Array;
    readonly staying: ReadonlyMap<number, Int32Array>;
  },
): RemainderCosts[] {
  const { count } = view.brokers;
  const scratch = { ready: new Int32Array(count), stuck: new Int32Array(count) };
  // While nobody leads any shard of it, a resource's costs follow from its shares.
  const fresh = new Map<Shares, RemainderCosts>();
  return open.map((r) => {
    const share = of(r);
    const isFresh = view.tally.shards[r] === 0 && !given.staying.has(r);
    const known = isFresh ? fresh.get(share) : undefined;
    if (known !== undefined) return known;
    const target = given.target.subarray(r * count, (r + 1) * count);
    const found = costsOf(view, r, { share, target, unled: given.unled[r] ?? 0, ...scratch });
    if (isFresh) fresh.set(share, found);
    return found;
  });
}

function costsOf(
  view: View,
  r: number,
  given: {
    readonly share: Shares;
    /** By broker: its floor, or one more where a shard of it stays there. */
    readonly target: Int32Array;
    readonly unled: number;
    readonly ready: Int32Array;
    readonly stuck: Int32Array;
  },
): RemainderCosts {
  const { target, ready, stuck } = given;
  const { floor, ceiling } = given.share;
  const { count, live } = view.brokers;
  const cost = new Uint8Array(count).fill(FORBIDDEN);
  const gives = new Uint8Array(count);
  const all = countReady(view, r, floor, { ready, stuck, gives }) + given.unled;
  for (let b = 0; b < count; b++) {
    if (live[b] === 0 || (ceiling[b] ?? 0) <= (floor[b] ?? 0)) continue;
    if ((target[b] ?? 0) > (floor[b] ?? 0)) continue;
    const led = view.tally.leadersOf(r, b);
    const lacks = Math.max(0, (floor[b] ?? 0) - led);
    if (led > (floor[b] ?? 0)) cost[b] = KEEPS;
    else if ((ready[b] ?? 0) > lacks) cost[b] = HANDS_OVER;
    else cost[b] = view.room(b) > 0 && all - (stuck[b] ?? 0) > lacks ? COPIES : WAITS;
  }
  return { cost, gives };
}

/**
 * By broker: in-sync copies of shards of `r` whose leader leads more than its floor, or must go; those that are behind; and
 * whether it leads one of them with an in-sync copy where the floor is not reached. Answers how many such shards there are.
 */
function countReady(
  view: View,
  r: number,
  floor: Int32Array,
  { ready, stuck, gives }: { ready: Int32Array; stuck: Int32Array; gives: Uint8Array },
): number {
  ready.fill(0);
  stuck.fill(0);
  let given = 0;
  const { durable } = view.resourceRow(r);
  const end = view.firstShard[r + 1] ?? 0;
  for (let s = view.firstShard[r] ?? 0; s < end; s++) {
    if (!view.free(s)) continue;
    const leader = view.nextLeader(s);
    if (view.tally.leadersOf(r, leader) <= (floor[leader] ?? 0)) continue;
    given++;
    const inSync = view.inSync(s);
    for (const b of inSync) {
      if (b === leader) continue;
      ready[b] = (ready[b] ?? 0) + 1;
      if (view.tally.leadersOf(r, b) < (floor[b] ?? 0)) gives[leader] = 1;
    }
    const copies = view.copies(s);
    if (copies.length === inSync.length || !durable) continue;
    for (const b of copies) if (!inSync.includes(b)) stuck[b] = (stuck[b] ?? 0) + 1;
  }
  return given;
}
