import { NONE } from '../broker-table.ts';
import { isBarred } from '../failures.ts';
import { reverses } from '../moved.ts';
import type { View } from '../view.ts';
import { allLive, outside, zoneChange } from './measure.ts';
import type { MoveCheck } from './step.ts';
import type { CopyTargets } from './targets.ts';

/** One shard's finished set, as a hypothetical move would leave it. */
export interface Overlay {
  readonly shard: number;
  readonly copies: readonly number[];
}

/** `keep`: no move lowers the zones a shard spans. `narrow`: it may, within its limits (policy `broker` only). */
export type SpanMode = 'keep' | 'narrow';

/**
 * The ways to bring a resource's copies closer to `t_b`: a copy leaves a broker that is a source and, link by link,
 * another arrives at a sink. Brokers between hold as many as before.
 */
export interface Gradient {
  /** Which end holds too many or too few: its link is made first, so that no link raises component (4). */
  readonly first: 'source' | 'sink';
  readonly isSource: (b: number) => boolean;
  readonly isSink: (b: number) => boolean;
}

/** Most gradients looked along beyond the four that end at floor or ceiling. */
const MAX_STEEPER = 8;

/** How one resource's copies lie, with an overlay. */
export class Layout {
  readonly view: View;
  readonly targets: CopyTargets;
  readonly r: number;
  readonly #overlay: Overlay | null;
  readonly #change: Int8Array | null;
  readonly #mayMove: MoveCheck | undefined;

  /** `mayMove`: moves that are looked at at all. */
  constructor(
    view: View,
    targets: CopyTargets,
    r: number,
    { overlay = null, mayMove }: { overlay?: Overlay | null; mayMove?: MoveCheck } = {},
  ) {
    this.view = view;
    this.targets = targets;
    this.r = r;
    this.#mayMove = mayMove;
    this.#overlay = overlay !== null && view.resource(overlay.shard) === r ? overlay : null;
    this.#change = this.#overlay === null ? null : new Int8Array(view.brokers.count);
    if (this.#overlay === null || this.#change === null) return;
    for (const b of view.finished(this.#overlay.shard)) this.#change[b] = (this.#change[b] ?? 0) - 1;
    for (const b of this.#overlay.copies) this.#change[b] = (this.#change[b] ?? 0) + 1;
  }

  set(s: number): readonly number[] {
    return this.#overlay !== null && this.#overlay.shard === s ? this.#overlay.copies : this.view.finished(s);
  }

  copies(b: number): number {
    return this.view.tally.copiesOf(this.r, b) + (this.#change?.[b] ?? 0);
  }

  /** Copies above ceiling (positive) or below floor (negative). */
  off(b: number): number {
    const { share } = this.targets.of(this.r);
    const count = this.copies(b);
    const floor = share.floor(b);
    const off = outside(count, floor, share.ceiling(b));
    return count < floor ? -off : off;
  }

  isLevel(): boolean {
    const { liveList } = this.view.brokers;
    for (let i = 0; i < liveList.length; i++) if (this.off(liveList[i] ?? 0) !== 0) return false;
    return true;
  }

  /** May the shard's copy on `from` go to `to`, as far as sets, caps and zones are concerned? */
  allows(s: number, from: number, to: number, mode: SpanMode): boolean {
    const { view, targets, r } = this;
    const set = this.set(s);
    if (set.includes(to) || view.holds(s, to) || view.room(to) <= 0) return false;
    if (this.#mayMove?.(from, to, s) === false) return false;
    if (isBarred(view, s, to) || reverses(view, s, from, to) || !allLive(view, set)) return false;
    const change = zoneChange(view, targets, { r, copies: set, from, to });
    return change.fault <= 0 && (mode === 'narrow' || change.zones >= 0);
  }

  /** Where a path that lowers component (4) may begin and end, the steepest first. */
  *gradients(bound: 'quotas' | 'parts'): Generator<Gradient, void> {
    const { share } = this.targets.of(this.r);
    const above = (b: number, least: number): boolean => this.off(b) >= least;
    const below = (b: number, least: number): boolean => this.off(b) <= -least;
    const quotas = bound === 'quotas' ? this.targets.quotas() : null;
    // Where quotas are known, moves go only from above one to below one.
    const takes = (b: number): boolean => this.copies(b) < (quotas?.(this.r, b) ?? share.ceiling(b));
    const gives = (b: number): boolean => this.copies(b) > (quotas?.(this.r, b) ?? share.floor(b));
    yield { first: 'source', isSource: (b) => above(b, 1), isSink: takes };
    yield { first: 'sink', isSource: gives, isSink: (b) => below(b, 1) };
    yield {
      first: 'source',
      isSource: (b) => above(b, 2),
      isSink: (b) => this.copies(b) <= share.ceiling(b),
    };
    yield { first: 'sink', isSource: (b) => this.copies(b) >= share.floor(b), isSink: (b) => below(b, 2) };
    yield* this.#steeper();
  }

  /** Between brokers that are both above, or both below, by two apart or more: where zones keep all others out of reach. */
  #steeper(): Gradient[] {
    const offs = new Set<number>();
    for (const b of this.view.brokers.liveList) offs.add(this.off(b));
    const far = [...offs].filter((off) => Math.abs(off) > 2).sort((a, b) => Math.abs(b) - Math.abs(a));
    return far
      .slice(0, MAX_STEEPER)
      .map((off): Gradient =>
        off > 0
          ? { first: 'source', isSource: (b) => this.off(b) >= off, isSink: (b) => this.off(b) <= off - 2 }
          : { first: 'sink', isSource: (b) => this.off(b) >= off + 2, isSink: (b) => this.off(b) <= off },
      );
  }
}

/** How far brokers are from the end of a path whose link is made last. */
export interface Distances {
  /** By broker, in links; NONE: further than the shortest path is long. */
  readonly links: Int32Array;
  /** Of the shortest path; 0: there is none. */
  readonly length: number;
}

/** Breadth first, from the end whose link is made last to the other. */
export function distances(layout: Layout, gradient: Gradient, mode: SpanMode): Distances {
  const { view } = layout;
  const backward = gradient.first === 'source';
  const isStart = backward ? gradient.isSink : gradient.isSource;
  const isGoal = backward ? gradient.isSource : gradient.isSink;
  const links = new Int32Array(view.brokers.count).fill(NONE);
  const frontier: number[] = [];
  const open: number[] = [];
  for (const b of view.brokers.liveList) {
    if (isStart(b)) frontier.push(b);
    else open.push(b);
  }
  for (const b of frontier) links[b] = 0;
  if (frontier.length === 0 || !open.some(isGoal)) return { links, length: 0 };
  for (let length = 1; frontier.length > 0; length++) {
    const reached = backward
      ? reachBackward(layout, { links, frontier, open }, mode)
      : reachForward(layout, { links, open, length }, mode);
    let found = false;
    for (const b of reached) {
      links[b] = length;
      open.splice(open.indexOf(b), 1);
      if (isGoal(b)) found = true;
    }
    if (found) return { links, length };
    frontier.splice(0, frontier.length, ...reached);
  }
  return { links, length: 0 };
}

/** Brokers from which a copy can go to the frontier. */
function reachBackward(
  layout: Layout,
  state: { links: Int32Array; frontier: readonly number[]; open: readonly number[] },
  mode: SpanMode,
): number[] {
  const { view, r } = layout;
  const reached = new Set<number>();
  for (let s = view.firstShard[r] ?? 0; s < (view.firstShard[r + 1] ?? 0); s++) {
    if (view.counts[s] === 0) continue;
    if (reached.size === state.open.length) break;
    const leader = view.nextLeader(s);
    for (const from of layout.set(s)) {
      if (from === leader || state.links[from] !== NONE || view.brokers.live[from] === 0) continue;
      if (reached.has(from)) continue;
      if (state.frontier.some((to) => layout.allows(s, from, to, mode))) reached.add(from);
    }
  }
  return [...reached].sort((a, b) => a - b);
}

/** Brokers to which a copy on the frontier (the brokers at `length - 1`) can go. */
function reachForward(
  layout: Layout,
  state: { links: Int32Array; open: readonly number[]; length: number },
  mode: SpanMode,
): number[] {
  const { view, r } = layout;
  const left = new Set(state.open.filter((b) => view.room(b) > 0));
  const reached: number[] = [];
  for (let s = view.firstShard[r] ?? 0; s < (view.firstShard[r + 1] ?? 0); s++) {
    if (view.counts[s] === 0) continue;
    if (left.size === 0) break;
    const leader = view.nextLeader(s);
    for (const from of layout.set(s)) {
      if (from === leader || state.links[from] !== state.length - 1) continue;
      for (const to of [...left]) {
        if (!layout.allows(s, from, to, mode)) continue;
        left.delete(to);
        reached.push(to);
      }
    }
  }
  return reached.sort((a, b) => a - b);
}

/** How one resource's copies can be brought closer to `t_b` with the fewest links. */
export interface Path {
  readonly layout: Layout;
  readonly gradient: Gradient;
  readonly distances: Distances;
}

/** The shortest path over a resource's gradients; `null`: none. */
export function shortestPath(layout: Layout, mode: SpanMode): Path | null {
  let best: Path | null = null;
  // A quota may be out of reach, where leaders or sets stand in its way: then any way to floor…ceiling will do.
  for (const bound of ['quotas', 'parts'] as const) {
    for (const gradient of layout.gradients(bound)) {
      const found = distances(layout, gradient, mode);
      if (found.length === 0 || (best !== null && found.length >= best.distances.length)) continue;
      best = { layout, gradient, distances: found };
      if (found.length === 1) break;
    }
    if (best !== null) return best;
  }
  return null;
}

/**
 * Component (5): links of the shortest chain over all resources. Chains that lower a shard's zones (policy
 * `broker`) count as longer than any that do not; "no chain at all" as longer than any chain; 0: all are level.
 */
export function chainLength(targets: CopyTargets, overlay: Overlay | null = null): number {
  const { view, faults } = targets;
  const { count } = view.brokers;
  let shortest = Infinity;
  const own = overlay === null ? NONE : view.resource(overlay.shard);
  if (overlay !== null) {
    const layout = new Layout(view, targets, own, { overlay });
    const path = (mode: SpanMode): Path | null =>
      mode === 'keep' || mayNarrow(targets, own) ? shortestPath(layout, mode) : null;
    if (!layout.isLevel()) shortest = pathLength(path, count);
  }
  for (const r of faults.uneven()) {
    if (shortest === 1) break;
    if (r !== own)
      shortest = Math.min(
        shortest,
        pathLength((mode) => faults.path(r, mode), count),
      );
  }
  return shortest === Infinity ? 0 : shortest;
}

function pathLength(path: (mode: SpanMode) => Path | null, count: number): number {
  const kept = path('keep');
  if (kept !== null) return kept.distances.length;
  const narrow = path('narrow');
  return narrow === null ? 2 * count : count + narrow.distances.length;
}

/** Under `broker` a shard's zones may become fewer, where nothing else levels. */
export function mayNarrow(targets: CopyTargets, r: number): boolean {
  return targets.of(r).rule.policy === 'broker' && targets.field.shared.length > 0;
}
