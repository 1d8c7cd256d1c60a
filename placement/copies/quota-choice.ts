import { chooseRemainders, COPIES, FORBIDDEN, KEEPS } from '../remainder-flow.ts';
import { Rendezvous } from '../hash.ts';
import type { CopyTargets } from './targets.ts';

/** Whole copies of each resource for each broker. */
export type CopyQuotas = (resource: number, broker: number) => number;

/**
 * Who takes each resource's remainder of copies, chosen over all resources at once, as leaders' targets are: every
 * broker's copies in total come to its share, and as many copies as possible stay. Moves from above a quota to below one
 * are then the fewest, and none is ever made good by another. Where a zone holds several brokers, rounding must follow
 * the zones, which this choice does not know: `null`.
 */
export function chooseQuotas(targets: CopyTargets): CopyQuotas | null {
  const { view, field } = targets;
  if (field.shared.length > 0) return null;
  const { count, liveList } = view.brokers;
  const open: number[] = [];
  const take: number[] = [];
  const fixed = new Float64Array(count);
  for (let r = 0; r < view.resourceCount; r++) {
    if ((view.tally.shards[r] ?? 0) === 0) continue;
    const { share } = targets.of(r);
    let left = share.total;
    let eligible = 0;
    for (const b of liveList) {
      const floor = share.floor(b);
      fixed[b] = (fixed[b] ?? 0) + floor;
      left -= floor;
      if (share.ceiling(b) > floor) eligible++;
    }
    if (left <= 0 || eligible === 0) continue;
    open.push(r);
    take.push(Math.min(left, eligible));
  }
  const cost = new Uint8Array(open.length * count).fill(FORBIDDEN);
  open.forEach((r, i) => {
    const { share } = targets.of(r);
    for (const b of liveList) {
      if (share.ceiling(b) === share.floor(b)) continue;
      cost[i * count + b] = view.tally.copiesOf(r, b) > share.floor(b) ? KEEPS : COPIES;
    }
  });
  const totals = targets.totals();
  const bound = (whole: Float64Array): Int32Array =>
    Int32Array.from(whole, (n, b) => Math.max(0, n - (fixed[b] ?? 0)));
  const rendezvous = new Rendezvous(view.brokers.ids);
  const rankings = open.map((r) => rendezvous.of(view.resourceKeys[r] ?? ''));
  const picked = chooseRemainders({
    rows: open.length,
    brokers: count,
    cost,
    take: Int32Array.from(take),
    least: bound(totals.floor),
    most: bound(totals.ceiling),
    score: (row, b) => rankings[row]?.high(b) ?? 0,
  });
  const rowOf = new Map(open.map((r, i) => [r, i]));
  return (r, b) => {
    const row = rowOf.get(r);
    return targets.floor(r, b) + (row === undefined ? 0 : (picked[row * count + b] ?? 0));
  };
}
