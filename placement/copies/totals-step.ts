import type { View } from '../view.ts';
import { better, type Candidate } from './candidate.ts';
import { Layout } from './chain.ts';
import { moveChange, outside } from './measure.ts';
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
  for (const bound of ['quotas', 'parts'] as const) {
    let best: Candidate | null = null;
    for (let r = 0; r < view.resourceCount && best?.key[0] !== 0; r++) {
      if ((view.tally.shards[r] ?? 0) === 0) continue;
      const ways = totalsWays(targets, r, bound);
      if (ways.size > 0) best = bestOfWays(new Layout(view, targets, r), ways, { ok, movable, best });
    }
    if (best !== null) return describeTotals(view, best);
  }
  return null;
}

interface Way {
  readonly to: number;
  /** What it adds to component (6). */
  readonly totals: number;
}

/** By the broker that gives: those that a copy of the resource could go to so that the totals come closer. */
function totalsWays(targets: CopyTargets, r: number, bound: 'quotas' | 'parts'): Map<number, Way[]> {
  const { view } = targets;
  const { liveList } = view.brokers;
  const quotas = bound === 'quotas' ? targets.quotas() : null;
  const held = (b: number): number => view.tally.copiesOf(r, b);
  const takers = [...liveList].filter((b) => view.room(b) > 0 && held(b) < (quotas?.(r, b) ?? Infinity));
  const ways = new Map<number, Way[]>();
  for (const from of liveList) {
    if (held(from) <= (quotas?.(r, from) ?? 0)) continue;
    const found: Way[] = [];
    for (const to of takers) {
      if (to === from) continue;
      const gain = moveChange(view, targets, { r, from, to });
      if (gain.totals < 0 && gain.copies <= 0) found.push({ to, totals: gain.totals });
    }
    if (found.length > 0) ways.set(from, found);
  }
  return ways;
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

function describeTotals(view: View, { from, to, shard }: Candidate): FollowerMove {
  const say = (b: number): string => `${view.brokers.id(b)} holds ${view.tally.copies[b]} copies in total`;
  return {
    shard,
    from,
    to,
    reason: 'level',
    rule: 'copies_total',
    detail: `${say(from)}, ${say(to)}; no resource becomes uneven`,
    rejected: rejectedFor(view, shard, to),
    runnerUp: null,
  };
}
