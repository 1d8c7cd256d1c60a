import { leastFailed, timesFailed } from './failures.ts';
import { matchHandovers, type Offer } from './handover-matching.ts';
import { couldLead, mustCopy } from './leader-start.ts';
import { hasLed } from './moved.ts';
import type { Pass } from './pass.ts';
import { outside } from './share-book.ts';
import type { View } from './view.ts';

/** A leadership to hand over, the shard chosen. */
export interface Handover {
  readonly shard: number;
  readonly from: number;
  readonly to: number;
  readonly copied: boolean;
}

/** What one resource still wants, from its leaders to its targets. */
export interface ResourceMoves {
  readonly handovers: readonly Handover[];
  /** By broker: leaderships to give up, and to take, by copying, where any shard will do. */
  readonly supply: Int32Array;
  readonly demand: Int32Array;
}

/** A resource whose leaders are at their targets has nothing to give, so nobody asks what it would take. */
const NOTHING_WANTED: ResourceMoves = { handovers: [], supply: new Int32Array(0), demand: new Int32Array(0) };

/**
 * What brings one resource from who leads to its targets: as many hand-overs as there can be, and the rest by copying.
 * Brokers that must give everything up come first. Computed once a resource and pass: who starts a copying move takes
 * it off `supply` and `demand`; who starts a hand-over leaves the shard no longer free.
 */
export class LeaderMoves {
  readonly #pass: Pass;
  readonly #byResource = new Map<number, ResourceMoves>();
  #wanting: readonly number[] | null = null;

  constructor(pass: Pass) {
    this.#pass = pass;
  }

  of(r: number): ResourceMoves {
    let moves = this.#byResource.get(r);
    if (moves === undefined) this.#byResource.set(r, (moves = this.#find(r)));
    return moves;
  }

  /** Resources that wanted something when they were first asked, rising. */
  wanting(): readonly number[] {
    if (this.#wanting !== null) return this.#wanting;
    const found: number[] = [];
    for (let r = 0; r < this.#pass.view.resourceCount; r++) if (this.of(r) !== NOTHING_WANTED) found.push(r);
    return (this.#wanting = found);
  }

  #find(r: number): ResourceMoves {
    const { view, targets } = this.#pass;
    const { count, live } = view.brokers;
    const led = view.tally.leadersRow(r);
    const row = targets.row(r);
    const above = (b: number): number => (led[b] ?? 0) - (live[b] === 1 ? (row[b] ?? 0) : 0);
    let wanted = 0;
    for (let b = 0; b < count; b++) wanted += Math.max(0, above(b));
    if (wanted === 0) return NOTHING_WANTED;
    const supply = new Int32Array(count);
    const demand = new Int32Array(count);
    for (let b = 0; b < count; b++) {
      supply[b] = Math.max(0, above(b));
      demand[b] = Math.max(0, -above(b));
    }
    const clear = isClear(view, r, supply, demand);
    const offers = this.#offers(r, supply, demand, clear);
    const given = matchHandovers(offers, supply, demand);
    const handovers: Handover[] = [];
    offers.forEach(({ shard, from }, i) => {
      const to = given[i] ?? -1;
      if (to === -1) return;
      handovers.push({ shard, from, to, copied: mustCopy(this.#pass, shard, to) });
      supply[from] = (supply[from] ?? 0) - 1;
      demand[to] = (demand[to] ?? 0) - 1;
    });
    this.#noteStaying(r, supply, handovers);
    // Where not every shard can go everywhere, each has been given its place: what is left is out of reach.
    if (!clear) return { handovers, supply: supply.fill(0), demand: demand.fill(0) };
    return { handovers, supply, demand };
  }

  /** Says of leaderships that should go on why they do not, where no other can go instead. */
  #noteStaying(r: number, supply: Int32Array, handovers: readonly Handover[]): void {
    const { view } = this.#pass;
    const staying: number[] = [];
    const left = Int32Array.from(supply);
    for (const { shard } of handovers) left[view.nextLeader(shard)] = (left[view.nextLeader(shard)] ?? 0) + 1;
    const end = view.firstShard[r + 1] ?? 0;
    for (let s = view.firstShard[r] ?? 0; s < end; s++) {
      const from = view.nextLeader(s);
      if ((supply[from] ?? 0) === 0) continue;
      if (view.mayStart(s, 'leader')) left[from] = (left[from] ?? 0) - 1;
      else if (view.free(s) && hasLed(view, s)) staying.push(s);
    }
    for (const s of staying) if ((left[view.nextLeader(s)] ?? 0) > 0) noteStaying(this.#pass, s);
  }

  #offers(r: number, supply: Int32Array, demand: Int32Array, clear: boolean): Offer[] {
    const { view, rankings } = this.#pass;
    const durable = view.resourceRow(r).durable;
    const needing = [...view.brokers.liveList].filter((b) => (demand[b] ?? 0) > 0);
    const found: { offer: Offer; rank: number; failed: number; score: number }[] = [];
    const end = view.firstShard[r + 1] ?? 0;
    for (let s = view.firstShard[r] ?? 0; s < end; s++) {
      const from = view.nextLeader(s);
      if ((supply[from] ?? 0) === 0 || !view.mayStart(s, 'leader')) continue;
      const mayTry = mayTryFrom(view, s, from);
      // Without a log every broker that could take the shard takes it at once; who holds a copy needs no room.
      const to = mayTry(needing.filter((b) => (durable ? view.isInSync(s, b) : view.holds(s, b))));
      const copyTo =
        clear && durable
          ? []
          : mayTry(needing.filter((b) => !view.holds(s, b) && couldLead(this.#pass, s, b)));
      if (to.length + copyTo.length === 0) continue;
      const ranking = rankings.of(s);
      const byScore = (a: number, b: number): number => ranking.compare(a, b);
      found.push({
        offer: { shard: s, from, to: to.toSorted(byScore), copyTo: copyTo.toSorted(byScore) },
        rank: view.brokers.live[from] === 0 ? 0 : 1,
        failed: view.failedMoves(s),
        score: ranking.high(from),
      });
    }
    found.sort(
      (a, b) => a.rank - b.rank || a.failed - b.failed || b.score - a.score || a.offer.shard - b.offer.shard,
    );
    return found.map((entry) => entry.offer);
  }
}

/**
 * Where a leadership may go of brokers that need some. One of a broker that is leaving has other places to go before
 * one to which its move failed is tried again.
 */
function mayTryFrom(view: View, s: number, from: number): (brokers: readonly number[]) => readonly number[] {
  if (view.brokers.live[from] === 1) return (brokers) => leastFailed(view, s, brokers);
  return (brokers) => brokers.filter((b) => timesFailed(view, s, b) === 0);
}

function noteStaying(pass: Pass, s: number): void {
  const where = pass.view.brokers.id(pass.view.nextLeader(s));
  const detail = `its leadership has come to ${where} already; it goes on once a broker, a resource or the policy has changed, or a move is asked for by hand`;
  pass.wait(s, 'moved_already', detail);
}

/** Says it of leaderships that keep the totals from being level: each holds its part of a remainder that should be another's. */
export function noteHolding(pass: Pass): void {
  const { view, targets } = pass;
  if (!isHeldOff(pass)) return;
  const { floor } = targets.cluster;
  const above = targetTotals(pass).map((total, b) => total - (floor[b] ?? 0));
  for (const s of view.movedLeaders) {
    const [r, b] = [view.resource(s), view.nextLeader(s)];
    if (!hasLed(view, s) || !view.free(s) || (above[b] ?? 0) <= 0) continue;
    if (view.tally.leadersOf(r, b) > targets.floor(r, b)) noteStaying(pass, s);
  }
}

/** Leaderships that have moved in this phase keep the totals of the targets out of the cluster's floor…ceiling. */
export function isHeldOff(pass: Pass): boolean {
  const { view, targets } = pass;
  if (targets.settled || targets.capped || !view.movedLeaders.some((s) => hasLed(view, s))) return false;
  const totals = targetTotals(pass);
  return view.brokers.liveList.some((b) => outside(targets.cluster, b, totals[b] ?? 0) > 0);
}

function targetTotals({ view, targets }: Pass): Int32Array {
  const { count } = view.brokers;
  const totals = new Int32Array(count);
  for (let r = 0; r < view.resourceCount; r++) {
    const row = targets.row(r);
    for (let b = 0; b < count; b++) totals[b] = (totals[b] ?? 0) + (row[b] ?? 0);
  }
  return totals;
}

/**
 * Every copy is sound and every destination has room for all it takes: then any shard can go to any of them, by hand-over
 * or by copying.
 */
export function isClear(view: View, r: number, supply: Int32Array, demand: Int32Array): boolean {
  for (const b of view.brokers.liveList) {
    if ((demand[b] ?? 0) > 0 && view.room(b) < (demand[b] ?? 0)) return false;
  }
  const sound =
    (s: number) =>
    (b: number): boolean =>
      view.brokers.live[b] === 1 && view.isInSync(s, b);
  const end = view.firstShard[r + 1] ?? 0;
  for (let s = view.firstShard[r] ?? 0; s < end; s++) {
    const from = view.nextLeader(s);
    if (view.counts[s] === 0 || (supply[from] ?? 0) === 0) continue;
    if (!view.finished(s).every(sound(s))) return false;
  }
  return true;
}
