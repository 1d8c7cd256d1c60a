import { chooseRemainders, COPIES, FORBIDDEN, KEEPS } from '../remainder-flow.ts';
import { Rendezvous } from '../hash.ts';
import type { CopyTargets, ResourceTarget } from './targets.ts';

/** Whole copies of each resource for each broker; `null` for a resource whose rounding must follow its zones. */
export type CopyQuotas = (resource: number, broker: number) => number | null;

/**
 * Who takes each resource's remainder of copies, chosen over all resources at once, as leaders' targets are: every
 * broker's copies in total come to its share, and as many copies as possible stay. Moves from above a quota to below one
 * are then the fewest, and none is ever made good by another.
 */
export function chooseQuotas(targets: CopyTargets): CopyQuotas {
  const { view } = targets;
  const { count } = view.brokers;
  const open: number[] = [];
  const take: number[] = [];
  const bound = new Set<number>();
  const fixed = new Float64Array(count);
  /** Resources of one target have as many shards, and so the same answer. */
  const freely = new Map<ResourceTarget, boolean>();
  for (let r = 0; r < view.resourceCount; r++) {
    if ((view.tally.shards[r] ?? 0) === 0) continue;
    const target = targets.of(r);
    let free = freely.get(target);
    if (free === undefined) freely.set(target, (free = roundsFreely(targets, r)));
    if (!free) bound.add(r);
    const left = fixWhole(targets, r, free, fixed);
    if (left === 0) continue;
    open.push(r);
    take.push(left);
  }
  const cost = new Uint8Array(open.length * count).fill(FORBIDDEN);
  for (const [i, r] of open.entries()) putCosts(targets, r, cost.subarray(i * count, (i + 1) * count));
  const totals = targets.totals();
  const within = (whole: Float64Array): Int32Array =>
    Int32Array.from(whole, (n, b) => Math.max(0, n - (fixed[b] ?? 0)));
  const rendezvous = new Rendezvous(view.brokers.ids);
  const rankings = open.map((r) => rendezvous.of(view.resourceKeys[r] ?? ''));
  const picked = chooseRemainders({
    rows: open.length,
    brokers: count,
    cost,
    take: Int32Array.from(take),
    least: within(totals.floor),
    most: within(totals.ceiling),
    score: (row, b) => rankings[row]?.high(b) ?? 0,
  });
  const rowOf = new Map(open.map((r, i) => [r, i]));
  return (r, b) => {
    if (bound.has(r)) return null;
    const row = rowOf.get(r);
    return targets.floor(r, b) + (row === undefined ? 0 : (picked[row * count + b] ?? 0));
  };
}

/** Adds the copies that each broker takes whatever is chosen. Answers how many of the resource are to be chosen for. */
function fixWhole(targets: CopyTargets, r: number, free: boolean, fixed: Float64Array): number {
  const { liveList } = targets.view.brokers;
  const { floors, ceilings, total } = targets.of(r).share;
  const held = targets.view.tally.copiesRow(r);
  let left = total;
  let eligible = 0;
  for (let i = 0; i < liveList.length; i++) {
    const b = liveList[i] ?? 0;
    const floor = floors[b] ?? 0;
    const ceiling = ceilings[b] ?? 0;
    // Where zones decide, what the broker holds stands, within its part.
    const whole = free ? floor : Math.min(ceiling, Math.max(floor, held[b] ?? 0));
    fixed[b] = (fixed[b] ?? 0) + whole;
    left -= floor;
    if (ceiling > floor) eligible++;
  }
  return free ? Math.min(Math.max(0, left), eligible) : 0;
}

function putCosts(targets: CopyTargets, r: number, costs: Uint8Array): void {
  const { liveList } = targets.view.brokers;
  const { floors, ceilings } = targets.of(r).share;
  const held = targets.view.tally.copiesRow(r);
  for (let i = 0; i < liveList.length; i++) {
    const b = liveList[i] ?? 0;
    const floor = floors[b] ?? 0;
    if (ceilings[b] !== floor) costs[b] = (held[b] ?? 0) > floor ? KEEPS : COPIES;
  }
}

/** No zone could pass its limit, or lack what its policy asks for, however its brokers' parts are rounded. */
function roundsFreely(targets: CopyTargets, r: number): boolean {
  const { view, field } = targets;
  const { share, rule } = targets.of(r);
  const shards = view.tally.shards[r] ?? 0;
  return [...field.shared].every((z) => {
    let least = 0;
    let most = 0;
    for (let i = field.start[z] ?? 0; i < (field.start[z + 1] ?? 0); i++) {
      const b = field.members[i] ?? 0;
      least += share.floor(b);
      most += share.ceiling(b);
    }
    const limit = targets.limit(r, z);
    return (limit >= rule.factor || most <= limit * shards) && least >= rule.least * shards;
  });
}
