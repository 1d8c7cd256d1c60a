import type { View } from '../view.ts';
import { chainLength, type Overlay } from './chain.ts';
import { outside, squaredChange, zoneFault } from './measure.ts';
import type { CopyTargets } from './targets.ts';

/** Components (3) to (6) of the objective. */
export interface VectorTail {
  /** Copies over zone limits, and zones missing under `zone`. */
  readonly zones: number;
  /** Squared copies outside floor…ceiling of `t_b`, over all resources. */
  readonly copies: number;
  /** Links of the shortest chain; 0 when every broker is at floor or ceiling. */
  readonly chain: number;
  /** Squared copies in total outside floor…ceiling of the sum of `t_b`. */
  readonly totals: number;
}

/** The objective's part for copies, moves in flight counted as finished. Walks all shards. */
export function vectorTail(view: View, targets: CopyTargets): VectorTail {
  let zones = 0;
  if (zonesMatter(view, targets)) {
    for (let s = 0; s < view.shardCount; s++) {
      if (view.counts[s] === 1) zones += zoneFault(view, targets, view.resource(s), view.finished(s));
    }
  }
  let copies = 0;
  for (let r = 0; r < view.resourceCount; r++) copies += resourceOutside(view, targets, r);
  const chain = copies === 0 ? 0 : chainLength(view, targets);
  return { zones, copies, chain, totals: totalsOutside(view, targets) };
}

/** Squared copies in total outside floor…ceiling. */
export function totalsOutside(view: View, targets: CopyTargets): number {
  const share = targets.totals();
  let sum = 0;
  for (const b of view.brokers.liveList) {
    const off = outside(view.tally.copies[b] ?? 0, share.floor[b] ?? 0, share.ceiling[b] ?? 0);
    sum += off * off;
  }
  return sum;
}

/** As `vectorTail`, with one shard's finished set replaced; `before` spares counting everything again. */
export function vectorTailAfter(
  view: View,
  targets: CopyTargets,
  shard: number,
  finishedCopies: readonly number[],
  before: VectorTail = vectorTail(view, targets),
): VectorTail {
  if (view.counts[shard] === 0) return before;
  const r = view.resource(shard);
  const was = view.finished(shard);
  const { share } = targets.of(r);
  const sums = targets.totals();
  let copies = before.copies;
  let totals = before.totals;
  const change = (b: number, by: 1 | -1): void => {
    if (view.brokers.live[b] === 0) return;
    copies += squaredChange(view.tally.copiesOf(r, b), by, share.floor(b), share.ceiling(b));
    totals += squaredChange(view.tally.copies[b] ?? 0, by, sums.floor[b] ?? 0, sums.ceiling[b] ?? 0);
  };
  for (const b of was) if (!finishedCopies.includes(b)) change(b, -1);
  for (const b of finishedCopies) if (!was.includes(b)) change(b, 1);
  const zones = before.zones + zoneFault(view, targets, r, finishedCopies) - zoneFault(view, targets, r, was);
  const overlay: Overlay = { shard, copies: finishedCopies };
  return { zones, copies, chain: copies === 0 ? 0 : chainLength(view, targets, overlay), totals };
}

/** Squared copies outside floor…ceiling, of one resource. */
export function resourceOutside(view: View, targets: CopyTargets, r: number): number {
  if ((view.tally.shards[r] ?? 0) === 0) return 0;
  const { floors, ceilings } = targets.of(r).share;
  const held = view.tally.copiesRow(r);
  let sum = 0;
  for (const b of view.brokers.liveList) {
    const off = outside(held[b] ?? 0, floors[b] ?? 0, ceilings[b] ?? 0);
    sum += off * off;
  }
  return sum;
}

function zonesMatter(view: View, targets: CopyTargets): boolean {
  if (targets.field.shared.length > 0) return true;
  for (let r = 0; r < view.resourceCount; r++) if (view.zonePolicy(r) === 'zone') return true;
  return false;
}
