import type { View } from '../view.ts';
import { chainLength } from './chain.ts';
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

/** The objective's part for copies, moves in flight counted as finished. */
export function vectorTail(targets: CopyTargets): VectorTail {
  const { zones, outside: copies } = targets.faults;
  const chain = copies === 0 ? 0 : chainLength(targets);
  return { zones, copies, chain, totals: totalsOutside(targets.view, targets) };
}

/** As `vectorTail`, with one shard's finished set replaced. */
export function vectorTailAfter(
  targets: CopyTargets,
  shard: number,
  finishedCopies: readonly number[],
): VectorTail {
  const { view, faults } = targets;
  if (view.counts[shard] === 0) return vectorTail(targets);
  const r = view.resource(shard);
  const was = view.finished(shard);
  const { share } = targets.of(r);
  const sums = targets.totals();
  let copies = faults.outside;
  let totals = totalsOutside(view, targets);
  const change = (b: number, by: 1 | -1): void => {
    if (view.brokers.live[b] === 0) return;
    copies += squaredChange(view.tally.copiesOf(r, b), by, share.floor(b), share.ceiling(b));
    totals += squaredChange(view.tally.copies[b] ?? 0, by, sums.floor[b] ?? 0, sums.ceiling[b] ?? 0);
  };
  for (const b of was) if (!finishedCopies.includes(b)) change(b, -1);
  for (const b of finishedCopies) if (!was.includes(b)) change(b, 1);
  const zones = faults.zones + zoneFault(view, targets, r, finishedCopies) - zoneFault(view, targets, r, was);
  const overlay = { shard, copies: finishedCopies };
  return { zones, copies, chain: copies === 0 ? 0 : chainLength(targets, overlay), totals };
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
