import type { View } from '../view.ts';
import { better, type Candidate } from './candidate.ts';
import { Layout } from './chain.ts';
import { outside, squaredChange } from './measure.ts';
import { rejectedFor, type FollowerMove, type MoveCheck } from './step.ts';
import type { CopyTargets } from './targets.ts';

/**
 * One move that brings the copies in total closer and leaves every resource as level as it is: towards the quotas, and
 * where sets, zones or caps keep those out of reach, any.
 */
export function totalsStep(
  view: View,
  targets: CopyTargets,
  ok: MoveCheck,
  movable: (s: number) => boolean,
): FollowerMove | null {
  const totals = targets.totals();
  const isOff = (b: number): boolean =>
    outside(view.tally.copies[b] ?? 0, totals.floor[b] ?? 0, totals.ceiling[b] ?? 0) > 0;
  if (!view.brokers.liveList.some(isOff)) return null;
  const ends = endsOf(view, targets);
  for (const bound of ['quotas', 'parts'] as const) {
    let best: Candidate | null = null;
    for (let r = 0; r < view.resourceCount && best?.key[0] !== 0; r++) {
      if ((view.tally.shards[r] ?? 0) === 0) continue;
      const ways = totalsWays(targets, r, bound, ends);
      if (ways.size > 0) best = bestOfWays(new Layout(view, targets, r), ways, { ok, movable, best });
    }
    if (best !== null) return describeTotals(targets, best);
  }
  return null;
}

interface Way {
  readonly to: number;
  /** What it adds to component (6). */
  readonly totals: number;
}

/** By broker: what giving a copy away, or taking one, adds to component (6); the same whatever the resource. */
interface Ends {
  readonly gives: Float64Array;
  readonly takes: Float64Array;
  /** The least of `takes`. */
  readonly least: number;
}

function endsOf(view: View, targets: CopyTargets): Ends {
  const totals = targets.totals();
  const gives = new Float64Array(view.brokers.count);
  const takes = new Float64Array(view.brokers.count);
  let least = Infinity;
  for (const b of view.brokers.liveList) {
    const held = view.tally.copies[b] ?? 0;
    gives[b] = squaredChange(held, -1, totals.floor[b] ?? 0, totals.ceiling[b] ?? 0);
    takes[b] = squaredChange(held, 1, totals.floor[b] ?? 0, totals.ceiling[b] ?? 0);
    least = Math.min(least, takes[b] ?? 0);
  }
  return { gives, takes, least };
}

const NO_WAYS: ReadonlyMap<number, Way[]> = new Map();

/** By the broker that gives: those that a copy of the resource could go to so that the totals come closer. */
function totalsWays(
  targets: CopyTargets,
  r: number,
  bound: 'quotas' | 'parts',
  { gives, takes, least }: Ends,
): ReadonlyMap<number, Way[]> {
  const { view } = targets;
  const { liveList } = view.brokers;
  const quotas = bound === 'quotas' ? targets.quotas() : null;
  const { share } = targets.of(r);
  const held = view.tally.copiesRow(r);
  let ways: Map<number, Way[]> | null = null;
  for (const from of liveList) {
    const give = gives[from] ?? 0;
    const n = held[from] ?? 0;
    if (give + least >= 0 || n <= (quotas?.(r, from) ?? 0)) continue;
    const uneven = squaredChange(n, -1, share.floor(from), share.ceiling(from));
    const found: Way[] = [];
    for (const to of liveList) {
      const gain = give + (takes[to] ?? 0);
      if (gain >= 0 || to === from) continue;
      const m = held[to] ?? 0;
      if (view.room(to) <= 0 || m >= (quotas?.(r, to) ?? Infinity)) continue;
      if (uneven + squaredChange(m, 1, share.floor(to), share.ceiling(to)) > 0) continue;
      found.push({ to, totals: gain });
    }
    if (found.length > 0) (ways ??= new Map<number, Way[]>()).set(from, found);
  }
  return ways ?? NO_WAYS;
}

function bestOfWays(
  layout: Layout,
  ways: ReadonlyMap<number, readonly Way[]>,
  among: { ok: MoveCheck; movable: (s: number) => boolean; best: Candidate | null },
): Candidate | null {
  const { view, targets, r } = layout;
  let { best } = among;
  for (let s = view.firstShard[r] ?? 0; s < (view.firstShard[r + 1] ?? 0); s++) {
    if (view.counts[s] === 0 || !among.movable(s)) continue;
    const leader = view.nextLeader(s);
    for (const from of view.finished(s)) {
      if (from === leader) continue;
      for (const { to, totals } of ways.get(from) ?? []) {
        if (!layout.allows(s, from, to, 'keep') || !among.ok(from, to, s)) continue;
        const candidate = { shard: s, from, to, key: [view.failedMoves(s), totals] };
        if (better(targets, candidate, best)) best = candidate;
      }
    }
  }
  return best;
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
