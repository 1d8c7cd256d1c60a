import { isBarred, timesFailed } from '../failures.ts';
import { reverses } from '../moved.ts';
import type { View } from '../view.ts';
import { better, type Candidate } from './candidate.ts';
import { allLive, squaredChange, zoneChange } from './measure.ts';
import type { CopyQuotas } from './quota-choice.ts';
import { rejectedFor, type FollowerMove, type MoveCheck } from './step.ts';
import type { CopyTargets } from './targets.ts';
import { totalsOutside } from './vector.ts';
import { copiesIn } from './zones.ts';

/**
 * Between whom a copy goes, the first that can: every move from above to below is one fewer to come, and who is far off
 * is helped before those who are nearly as far are made even.
 */
const TIERS = ['both', 'source', 'sink', 'lowest', 'highest', 'any'] as const;
type Tier = (typeof TIERS)[number];

/**
 * One move that brings the copies in total closer and leaves every resource as level as it is: towards the quotas, and
 * where sets, zones or caps keep those out of reach, any. `movable`: shards of which a copy may go; `only`: the resources
 * that they are of, all where nothing is said.
 */
export function totalsStep(
  view: View,
  targets: CopyTargets,
  ok: MoveCheck,
  movable: (s: number) => boolean,
  only?: ReadonlySet<number>,
): FollowerMove | null {
  if (totalsOutside(view, targets) === 0) return null;
  const changes = changesOf(targets);
  const tiers = TIERS.map((tier) => endsOf(targets, changes, tier)).filter(({ takers }) => takers.length > 0);
  for (const bound of ['quotas', 'parts'] as const) {
    for (const ends of tiers) {
      const best = bestOfAll(targets, bound, ends, { ok, movable, only });
      if (best !== null) return describeTotals(targets, best);
    }
  }
  return null;
}

interface Among {
  readonly ok: MoveCheck;
  readonly movable: (s: number) => boolean;
  /** Resources that are looked at; all of them. */
  readonly only?: ReadonlySet<number> | undefined;
}

/** The first resource's best move; one of a shard whose moves never failed ends the search. */
function bestOfAll(
  targets: CopyTargets,
  bound: 'quotas' | 'parts',
  ends: Ends,
  among: Among,
): Candidate | null {
  const { faults } = targets;
  const quotas = bound === 'quotas' ? targets.quotas() : null;
  const barren = faults.barren(bound, ends.tier);
  barren.begin(ends.ends);
  let best: Candidate | null = null;
  for (const r of bound === 'quotas' ? faults.offQuotas() : targets.placed()) {
    if (best?.key[0] === 0) break;
    if (barren.has(r) || among.only?.has(r) === false) continue;
    const looked = lookAt(targets, r, quotas, ends, { ...among, best });
    best = looked.best;
    if (looked.isBarren) barren.add(r);
  }
  return best;
}

/** What giving a copy away, and taking one, adds to component (6), by broker; the same whatever the resource. */
interface TotalsChanges {
  readonly gives: Float64Array;
  readonly takes: Float64Array;
}

function changesOf(targets: CopyTargets): TotalsChanges {
  const { tally, brokers } = targets.view;
  const { floor, ceiling } = targets.totals();
  const gives = new Float64Array(brokers.count);
  const takes = new Float64Array(brokers.count);
  for (const b of brokers.liveList) {
    const held = tally.copies[b] ?? 0;
    gives[b] = squaredChange(held, -1, floor[b] ?? 0, ceiling[b] ?? 0);
    takes[b] = squaredChange(held, 1, floor[b] ?? 0, ceiling[b] ?? 0);
  }
  return { gives, takes };
}

/** Who may give a copy away, and who take one. */
interface Ends extends TotalsChanges {
  readonly tier: Tier;
  /** By broker: GIVES, TAKES or both. */
  readonly ends: Uint8Array;
  readonly givers: readonly number[];
  /** Brokers with room, who adds the least first. */
  readonly takers: readonly number[];
}

const GIVES = 1;
const TAKES = 2;

function endsOf(targets: CopyTargets, changes: TotalsChanges, tier: Tier): Ends {
  const { view } = targets;
  const { liveList, count } = view.brokers;
  const { gives, takes } = changes;
  const [isGiver, isTaker] = ENDS[tier](targets, changes);
  const ends = new Uint8Array(count);
  const givers: number[] = [];
  const takers: number[] = [];
  for (const b of liveList) {
    if (isGiver(b)) {
      ends[b] = GIVES;
      givers.push(b);
    }
    if (view.room(b) <= 0 || !isTaker(b)) continue;
    ends[b] = (ends[b] ?? 0) + TAKES;
    takers.push(b);
  }
  takers.sort((a, b) => (takes[a] ?? 0) - (takes[b] ?? 0) || a - b);
  return { tier, ends, gives, takes, givers, takers };
}

type IsEnd = (b: number) => boolean;

/** By tier, who gives and who takes. In all but the last every pair brings the totals closer. */
const ENDS: Readonly<Record<Tier, (targets: CopyTargets, changes: TotalsChanges) => [IsEnd, IsEnd]>> = {
  both: (targets) => [isOver(targets, 'ceiling'), isUnder(targets, 'floor')],
  source: (targets) => [isOver(targets, 'ceiling'), isUnder(targets, 'ceiling')],
  sink: (targets) => [isOver(targets, 'floor'), isUnder(targets, 'floor')],
  lowest: ({ view }, { gives, takes }) => {
    const half = steepest(view, takes) / 2;
    return [(b) => (gives[b] ?? 0) + half < 0, (b) => half < 0 && (takes[b] ?? 0) <= half];
  },
  highest: ({ view }, { gives, takes }) => {
    const half = steepest(view, gives) / 2;
    return [(b) => half < 0 && (gives[b] ?? 0) <= half, (b) => (takes[b] ?? 0) + half < 0];
  },
  any: () => [() => true, () => true],
};

function isOver(targets: CopyTargets, bound: 'floor' | 'ceiling'): IsEnd {
  const limit = targets.totals()[bound];
  return (b) => (targets.view.tally.copies[b] ?? 0) > (limit[b] ?? 0);
}

function isUnder(targets: CopyTargets, bound: 'floor' | 'ceiling'): IsEnd {
  const limit = targets.totals()[bound];
  return (b) => (targets.view.tally.copies[b] ?? 0) < (limit[b] ?? 0);
}

function steepest({ brokers }: View, changes: Float64Array): number {
  return brokers.liveList.reduce((least, b) => Math.min(least, changes[b] ?? 0), 0);
}

interface Looked {
  /** The best so far. */
  readonly best: Candidate | null;
  /** Nothing could go between these ends, nor could it if the totals were others. */
  readonly isBarren: boolean;
}

/** Where a copy of one resource could go so that the totals come closer. */
function lookAt(
  targets: CopyTargets,
  r: number,
  quotas: CopyQuotas | null,
  { ends, gives, takes, givers, takers }: Ends,
  among: Among & { readonly best: Candidate | null },
): Looked {
  const { view, faults } = targets;
  const { floors, ceilings } = targets.of(r).share;
  const held = view.tally.copiesRow(r);
  // Where all are level, who holds the ceiling takes no more.
  const full = (b: number): boolean => (held[b] ?? 0) >= (ceilings[b] ?? 0) && !faults.isUneven(r);
  const open = takers.filter((to) => (held[to] ?? 0) < (quotas?.(r, to) ?? Infinity) && !full(to));
  const change = (b: number, by: 1 | -1): number =>
    squaredChange(held[b] ?? 0, by, floors[b] ?? 0, ceilings[b] ?? 0);
  const added = open.map((to) => change(to, 1));
  let { best } = among;
  let isBarren = true;
  if (open.length === 0) return { best, isBarren };
  targets.looked += view.tally.shards[r] ?? 0;
  const spares = (b: number): boolean => (held[b] ?? 0) > (quotas?.(r, b) ?? 0);
  if (!givers.some(spares)) return { best, isBarren };
  for (let s = view.firstShard[r] ?? 0; s < (view.firstShard[r + 1] ?? 0); s++) {
    if (view.counts[s] === 0 || view.touched[s] === 1 || view.move(s) !== null) continue;
    const set = view.finished(s);
    if (!allLive(view, set)) continue;
    const leader = view.nextLeader(s);
    const isMovable = among.movable(s);
    for (const from of set) {
      if (from === leader || ((ends[from] ?? 0) & GIVES) === 0) continue;
      if (!spares(from)) continue;
      const uneven = change(from, -1);
      for (let i = 0; i < open.length; i++) {
        const to = open[i] ?? 0;
        const totals = (gives[from] ?? 0) + (takes[to] ?? 0);
        if (totals >= 0) {
          isBarren = false;
          break;
        }
        if (uneven + (added[i] ?? 0) > 0 || set.includes(to) || view.holds(s, to)) continue;
        if (!keepsZones(targets, r, set, from, to)) continue;
        isBarren = false;
        if (!isMovable || isBarred(view, s, to) || reverses(view, s, from, to) || !among.ok(from, to, s))
          continue;
        const key = [view.failedMoves(s), timesFailed(view, s, to), totals];
        const candidate = { shard: s, from, to, key };
        if (better(targets, candidate, best)) best = candidate;
      }
    }
  }
  return { best, isBarren };
}

/** The set spans as many zones afterwards, and is as right in them. */
function keepsZones(
  targets: CopyTargets,
  r: number,
  copies: readonly number[],
  from: number,
  to: number,
): boolean {
  const { view } = targets;
  const { zone } = view.brokers;
  if (zone[from] === zone[to]) return true;
  // It would cost the shard a zone, as most moves across zones do: told at once.
  if (copiesIn(view, copies, zone[from] ?? 0) === 1 && copiesIn(view, copies, zone[to] ?? 0) > 0)
    return false;
  const change = zoneChange(view, targets, { r, copies, from, to });
  return change.fault <= 0 && change.zones >= 0;
}

function describeTotals(targets: CopyTargets, { from, to, shard }: Candidate): FollowerMove {
  const { view } = targets;
  const say = (b: number): string => `${view.brokers.id(b)} holds ${view.tally.copies[b]} copies in total`;
  return {
    shard,
    from,
    to,
    reason: 'level',
    rule: 'copies_total',
    detail: `${say(from)}, ${say(to)}; no resource becomes uneven`,
    rejected: rejectedFor(view, targets, { shard, from, to }),
    runnerUp: null,
  };
}
