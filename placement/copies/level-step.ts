import type { View } from '../view.ts';
import { Layout, mayNarrow, shortestPath, type Distances, type Gradient, type SpanMode } from './chain.ts';
import { moveChange, outside, replaced, zoneFault } from './measure.ts';
import { rejectedFor, type FollowerMove, type SlotCheck } from './step.ts';
import type { CopyTargets } from './targets.ts';
import { zonesAfter } from './zones.ts';

/**
 * Step 7: the next follower move that brings copies towards `t_b`, else the first link of a shortest chain, else
 * one that evens the totals and unlevels no resource; `null`: none is wanted, or the slots are in the way. It waits
 * while a leadership moves: those bring copies along and drop others, which would be moved twice or back.
 */
export function levelStep(view: View, targets: CopyTargets, ok: SlotCheck): FollowerMove | null {
  for (let s = 0; s < view.shardCount; s++) if (view.move(s)?.role === 'leader') return null;
  const uneven: Layout[] = [];
  for (let r = 0; r < view.resourceCount; r++) {
    if ((view.tally.shards[r] ?? 0) === 0) continue;
    const layout = new Layout(view, targets, r, null);
    if (!layout.isLevel()) uneven.push(layout);
  }
  for (const mode of ['keep', 'narrow'] as const) {
    const paths = pathsOf(uneven, mode);
    if (paths.length > 0) return bestLink(paths, mode, ok);
  }
  return totalsStep(view, targets, ok, (s) => view.free(s));
}

interface Path {
  readonly layout: Layout;
  readonly gradient: Gradient;
  readonly distances: Distances;
}

/** The resources that have a path of the shortest length there is. */
function pathsOf(layouts: readonly Layout[], mode: SpanMode): Path[] {
  let paths: Path[] = [];
  for (const layout of layouts) {
    if (mode === 'narrow' && !mayNarrow(layout.targets, layout.r)) continue;
    const found = shortestPath(layout, mode);
    if (found === null) continue;
    const shortest = paths[0]?.distances.length ?? found.distances.length;
    if (found.distances.length > shortest) continue;
    if (found.distances.length < shortest) paths = [];
    paths.push({ layout, ...found });
  }
  return paths;
}

/** How good a candidate is: compared from the left, smaller first. */
interface Candidate {
  readonly shard: number;
  readonly from: number;
  readonly to: number;
  readonly key: readonly number[];
}

function better(targets: CopyTargets, a: Candidate, b: Candidate | null): boolean {
  if (b === null) return true;
  for (let i = 0; i < a.key.length; i++) {
    const difference = (a.key[i] ?? 0) - (b.key[i] ?? 0);
    if (difference !== 0) return difference < 0;
  }
  if (a.shard !== b.shard) {
    // Which shard wants the move most: the very one that went this way is the last to be sent back.
    const difference = pull(targets, a) - pull(targets, b);
    return difference === 0 ? a.shard < b.shard : difference > 0;
  }
  if (a.to !== b.to) return targets.ranking(a.shard).compare(a.to, b.to) < 0;
  return targets.ranking(a.shard).compare(a.from, b.from) > 0;
}

/** By how much a shard scores higher on the broker it would go to than on the one it would leave. */
function pull(targets: CopyTargets, { shard, from, to }: Candidate): number {
  const ranking = targets.ranking(shard);
  return ranking.high(to) - ranking.high(from);
}

/** The best first link of the paths; shards whose moves failed go last. */
function bestLink(paths: readonly Path[], mode: SpanMode, ok: SlotCheck): FollowerMove | null {
  let best: Candidate | null = null;
  let second: Candidate | null = null;
  let chosen: Path | null = null;
  for (const path of paths) {
    const found = linksOf(path, mode, ok);
    if (found.best === null) continue;
    if (best !== null && (found.best.key[0] ?? 0) >= (best.key[0] ?? 0)) continue;
    best = found.best;
    second = found.second;
    chosen = path;
    if (best.key[0] === 0) break;
  }
  if (best === null || chosen === null) return null;
  return describe(chosen, mode, best, second);
}

/**
 * The best and the second link of one path. One that the slots leave, but that puts the totals further off than the
 * best of all would, is not taken: waiting for the right broker is cheaper than a move that is made good later.
 */
function linksOf(
  path: Path,
  mode: SpanMode,
  ok: SlotCheck,
): { best: Candidate | null; second: Candidate | null } {
  const allowed: Ranked = { best: null, second: null };
  const all: Ranked = { best: null, second: null };
  const isFree = (candidate: Candidate): boolean => ok(candidate.from, candidate.to);
  rankLinks(path, mode, (candidate) => {
    place(path.layout.targets, all, candidate);
    if (isFree(candidate)) place(path.layout.targets, allowed, candidate);
  });
  const off = (candidate: Candidate | null): number => Math.max(0, candidate?.key[TOTALS] ?? 0);
  return off(allowed.best) > off(all.best) ? { best: null, second: null } : allowed;
}

interface Ranked {
  best: Candidate | null;
  second: Candidate | null;
}

/** Where a candidate's key says what it does to the totals. */
const TOTALS = 4;

function place(targets: CopyTargets, ranked: Ranked, candidate: Candidate): void {
  if (!better(targets, candidate, ranked.best)) return;
  if (ranked.best !== null && ranked.best.to !== candidate.to) ranked.second = ranked.best;
  ranked.best = candidate;
}

/** Every link that can begin the path. */
function rankLinks(path: Path, mode: SpanMode, take: (candidate: Candidate) => void): void {
  const { layout, gradient, distances } = path;
  const { view, targets, r } = layout;
  const { length, links } = distances;
  const backward = gradient.first === 'source';
  const isFrom = (b: number): boolean =>
    backward ? links[b] === length && gradient.isSource(b) : links[b] === length - 1;
  const isTo = (b: number): boolean =>
    backward ? links[b] === length - 1 : links[b] === length && gradient.isSink(b);
  const next = [...view.brokers.liveList].filter(isTo);
  for (let s = view.firstShard[r] ?? 0; s < (view.firstShard[r + 1] ?? 0); s++) {
    if (!view.free(s)) continue;
    const leader = view.nextLeader(s);
    const set = view.finished(s);
    const failed = view.failedMoves(s);
    for (const from of set) {
      if (from === leader || !isFrom(from)) continue;
      for (const to of next) {
        if (!layout.allows(s, from, to, mode)) continue;
        const gain = moveChange(view, targets, { r, from, to });
        const after = replaced(set, from, to);
        const fault = zoneFault(view, targets, r, after) - zoneFault(view, targets, r, set);
        const zones = zonesAfter(view, set) - zonesAfter(view, after);
        take({ shard: s, from, to, key: [failed, gain.copies, fault, zones, gain.totals] });
      }
    }
  }
}

function describe(path: Path, mode: SpanMode, best: Candidate, second: Candidate | null): FollowerMove {
  const { layout, distances } = path;
  const { view, targets, r } = layout;
  const { share } = targets.of(r);
  const say = (b: number): string => {
    const floor = share.floor(b);
    const ceiling = share.ceiling(b);
    const wanted = floor === ceiling ? `${floor}` : `${floor} to ${ceiling}`;
    return `${view.brokers.id(b)} holds ${layout.copies(b)} copies of ${view.resourceKeys[r]} where ${wanted} are its part`;
  };
  const set = view.finished(best.shard);
  const zones = zonesAfter(view, set);
  const zonesThen = zonesAfter(view, replaced(set, best.from, best.to));
  const chain = distances.length > 1 ? `; first of a chain of ${distances.length}` : '';
  const span = zonesThen < zones ? `; the shard spans ${zonesThen} zones instead of ${zones}` : '';
  return {
    shard: best.shard,
    from: best.from,
    to: best.to,
    reason: 'level',
    rule:
      distances.length > 1 ? 'chain' : mode === 'narrow' && zonesThen < zones ? 'copies_narrow' : 'copies',
    detail: `${say(best.from)}, ${say(best.to)}${chain}${span}`,
    rejected: rejectedFor(view, best.shard, best.to),
    runnerUp: second === null ? null : view.brokers.id(second.to),
  };
}

/** One move that brings the copies in total closer and leaves every resource as level as it is. */
export function totalsStep(
  view: View,
  targets: CopyTargets,
  ok: SlotCheck,
  movable: (s: number) => boolean,
): FollowerMove | null {
  const totals = targets.totals();
  const off = (b: number): number => {
    const count = view.tally.copies[b] ?? 0;
    const distance = outside(count, totals.floor[b] ?? 0, totals.ceiling[b] ?? 0);
    return count < (totals.floor[b] ?? 0) ? -distance : distance;
  };
  const live = [...view.brokers.liveList];
  const over = new Set(live.filter((b) => off(b) > 0));
  const under = new Set(live.filter((b) => off(b) < 0));
  if (over.size === 0 && under.size === 0) return null;
  const open = live.filter((b) => (view.tally.copies[b] ?? 0) < (totals.ceiling[b] ?? 0) && view.room(b) > 0);
  const quotas = targets.quotas();
  let best: Candidate | null = null;
  for (let r = 0; r < view.resourceCount && best?.key[0] !== 0; r++) {
    if ((view.tally.shards[r] ?? 0) === 0) continue;
    const layout = new Layout(view, targets, r, null);
    const { share } = targets.of(r);
    const gives = (b: number): boolean => view.tally.copiesOf(r, b) > (quotas(r, b) ?? share.floor(b));
    const takers = open.filter((b) => view.tally.copiesOf(r, b) < (quotas(r, b) ?? share.ceiling(b)));
    const needy = takers.filter((b) => under.has(b));
    if (needy.length === 0 && !live.some((b) => over.has(b) && gives(b))) continue;
    for (let s = view.firstShard[r] ?? 0; s < (view.firstShard[r + 1] ?? 0); s++) {
      if (view.counts[s] === 0 || !movable(s)) continue;
      const leader = view.nextLeader(s);
      for (const from of view.finished(s)) {
        if (from === leader || view.brokers.live[from] === 0 || !gives(from)) continue;
        for (const to of over.has(from) ? takers : needy) {
          const gain = moveChange(view, targets, { r, from, to });
          if (gain.totals >= 0 || gain.copies > 0) continue;
          if (!layout.allows(s, from, to, 'keep') || !ok(from, to)) continue;
          const candidate = { shard: s, from, to, key: [view.rows[s]?.failedMoves ?? 0, gain.totals] };
          if (better(targets, candidate, best)) best = candidate;
        }
      }
    }
  }
  if (best === null) return null;
  const { from, to, shard } = best;
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
