import { timesFailed } from '../failures.ts';
import type { View } from '../view.ts';
import { better, type Candidate } from './candidate.ts';
import { Layout, mayNarrow, shortestPath, type Path, type SpanMode } from './chain.ts';
import { moveChange, replaced, zoneChange } from './measure.ts';
import { rejectedFor, type FollowerMove, type MoveCheck, type SlotCheck } from './step.ts';
import type { CopyTargets } from './targets.ts';
import { totalsStep } from './totals-step.ts';
import { zonesAfter } from './zones.ts';

/**
 * Step 7: the next follower move that brings copies towards `t_b`, else the first link of a shortest chain, else
 * one that evens the totals and unlevels no resource; `null`: none is wanted, or the slots are in the way. It waits
 * while a leadership moves: those bring copies along and drop others, which would be moved twice or back. `mayMove`: moves
 * that are thought of at all; `ok`: those that may start now.
 */
export function levelStep(
  view: View,
  targets: CopyTargets,
  ok: SlotCheck,
  mayMove?: MoveCheck,
): FollowerMove | null {
  if (view.handsOver) return null;
  for (const mode of ['keep', 'narrow'] as const) {
    const paths = pathsOf(targets, mode, mayMove);
    if (paths.length > 0) return bestLink(paths, mode, ok);
  }
  const both: MoveCheck = (from, to, s) => ok(from, to) && mayMove?.(from, to, s) !== false;
  return totalsStep(view, targets, both, (s) => view.mayStart(s, 'follower'));
}

/** The resources that have a path of the shortest length there is. */
function pathsOf(targets: CopyTargets, mode: SpanMode, mayMove: MoveCheck | undefined): Path[] {
  const { view, faults } = targets;
  const path = (r: number): Path | null => {
    if (mayMove === undefined) return faults.path(r, mode);
    if (mode === 'narrow' && !mayNarrow(targets, r)) return null;
    return shortestPath(new Layout(view, targets, r, { mayMove }), mode);
  };
  let paths: Path[] = [];
  for (const r of faults.uneven()) {
    const found = path(r);
    if (found === null) continue;
    const shortest = paths[0]?.distances.length ?? found.distances.length;
    if (found.distances.length > shortest) continue;
    if (found.distances.length < shortest) paths = [];
    paths.push(found);
  }
  return paths;
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
const TOTALS = 5;

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
    if (!view.mayStart(s, 'follower')) continue;
    const leader = view.nextLeader(s);
    const set = view.finished(s);
    const failed = view.failedMoves(s);
    for (const from of set) {
      if (from === leader || !isFrom(from)) continue;
      for (const to of next) {
        if (!layout.allows(s, from, to, mode)) continue;
        const gain = moveChange(view, targets, { r, from, to });
        const { fault, zones } = zoneChange(view, targets, { r, copies: set, from, to });
        take({
          shard: s,
          from,
          to,
          key: [failed, timesFailed(view, s, to), gain.copies, fault, -zones, gain.totals],
        });
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
    rejected: rejectedFor(view, targets, best),
    runnerUp: second === null ? null : view.brokers.id(second.to),
  };
}
