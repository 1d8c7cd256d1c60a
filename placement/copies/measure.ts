import type { View } from '../view.ts';
import type { CopyTargets } from './targets.ts';
import { copiesIn, zonesAfter } from './zones.ts';

/** Copies of a set above its zones' limits, and zones it misses under `zone`: component (3) for one shard. */
export function zoneFault(view: View, targets: CopyTargets, r: number, copies: readonly number[]): number {
  const { rule, limits } = targets.of(r);
  if (limits === null && rule.span === 0) return 0;
  let fault = 0;
  if (limits !== null) {
    for (let i = 0; i < copies.length; i++) {
      const zone = view.brokers.zone[copies[i] ?? 0] ?? 0;
      let before = 0;
      for (let j = 0; j < i; j++) if (view.brokers.zone[copies[j] ?? 0] === zone) before++;
      if (before >= (limits[zone] ?? 1)) fault++;
    }
  }
  if (rule.span > 0) fault += Math.max(0, Math.min(rule.span, copies.length) - zonesAfter(view, copies));
  return fault;
}

/** What one copy of the set going from `from` to `to` adds to `zoneFault`, and to the zones that the set spans. */
export function zoneChange(
  view: View,
  targets: CopyTargets,
  move: {
    readonly r: number;
    readonly copies: readonly number[];
    readonly from: number;
    readonly to: number;
  },
): { readonly fault: number; readonly zones: number } {
  const { r, copies, from, to } = move;
  const left = view.brokers.zone[from] ?? 0;
  const reached = view.brokers.zone[to] ?? 0;
  if (left === reached) return UNCHANGED;
  const { rule, limits } = targets.of(r);
  const inLeft = copiesIn(view, copies, left);
  const inReached = copiesIn(view, copies, reached);
  const zones = (inReached === 0 ? 1 : 0) - (inLeft === 1 ? 1 : 0);
  let fault = 0;
  if (limits !== null) {
    if (inReached >= (limits[reached] ?? 1)) fault++;
    if (inLeft > (limits[left] ?? 1)) fault--;
  }
  if (rule.span > 0 && zones !== 0) {
    const missing = Math.min(rule.span, copies.length) - zonesAfter(view, copies);
    fault += Math.max(0, missing - zones) - Math.max(0, missing);
  }
  return { fault, zones };
}

const UNCHANGED = { fault: 0, zones: 0 } as const;

/** No copy is on a broker that is leaving or lost: such a set is changed by a drain or a restore first. */
export function allLive(view: View, copies: readonly number[]): boolean {
  return copies.every((b) => view.brokers.live[b] === 1);
}

/** Copies outside floor…ceiling of `t_b`: 0 inside, else how many too many or too few. */
export function outside(count: number, floor: number, ceiling: number): number {
  return count > ceiling ? count - ceiling : Math.max(0, floor - count);
}

/** By how much `outside`, squared, changes when a count changes by one. */
export function squaredChange(count: number, by: 1 | -1, floor: number, ceiling: number): number {
  const before = outside(count, floor, ceiling);
  const after = outside(count + by, floor, ceiling);
  return after * after - before * before;
}

/** What moving one copy of resource `r` changes: components (4) and (6). */
export function moveChange(
  view: View,
  targets: CopyTargets,
  move: { readonly r: number; readonly from: number; readonly to: number },
): { readonly copies: number; readonly totals: number } {
  const { r, from, to } = move;
  const { share } = targets.of(r);
  const { tally } = view;
  const totals = targets.totals();
  const total = (b: number, by: 1 | -1): number =>
    squaredChange(tally.copies[b] ?? 0, by, totals.floor[b] ?? 0, totals.ceiling[b] ?? 0);
  return {
    copies:
      squaredChange(tally.copiesOf(r, from), -1, share.floor(from), share.ceiling(from)) +
      squaredChange(tally.copiesOf(r, to), 1, share.floor(to), share.ceiling(to)),
    totals: total(from, -1) + total(to, 1),
  };
}

/** Negative if broker `a` is further above its `t_b` of resource `r` than `b`; exact. */
export function compareAbove(view: View, targets: CopyTargets, r: number, a: number, b: number): number {
  const { share } = targets.of(r);
  const whole = (x: number): number =>
    view.tally.copiesOf(r, x) - (view.brokers.live[x] === 1 ? share.floor(x) : 0);
  const difference = whole(b) - whole(a);
  if (difference !== 0) return difference;
  const rest = (x: number): number => (view.brokers.live[x] === 1 ? share.remainder(x) : 0);
  return rest(a) * share.denominator(b) - rest(b) * share.denominator(a);
}

/** Negative if broker `a` is further above its share of all copies than `b`. */
export function compareTotals(view: View, targets: CopyTargets, a: number, b: number): number {
  const { exact } = targets.totals();
  const above = (x: number): number => (view.tally.copies[x] ?? 0) - (exact[x] ?? 0);
  return above(b) - above(a);
}

/** A set with one copy replaced; `NONE` for `from` adds. */
export function replaced(copies: readonly number[], from: number, to: number): number[] {
  const set = copies.filter((b) => b !== from);
  set.push(to);
  return set;
}

/** The broker holds more than its part: of some resource, or in total. */
export function holdsTooMany(view: View, targets: CopyTargets, b: number): boolean {
  if ((view.tally.copies[b] ?? 0) > (targets.totals().ceiling[b] ?? 0)) return true;
  for (let r = 0; r < view.resourceCount; r++) {
    if (view.tally.copiesOf(r, b) > targets.ceiling(r, b)) return true;
  }
  return false;
}
