import { chooseRemainders } from '../remainder-flow.ts';
import { COPIES, FORBIDDEN, KEEPS } from '../remainder-problem.ts';
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
  // Where zones decide, what brokers hold stands: of all copies, those of the other resources are taken out.
  const fixed = Float64Array.from(view.tally.copies);
  const kinds = new Map<ResourceTarget, Kind>();
  for (let r = 0; r < view.resourceCount; r++) {
    if ((view.tally.shards[r] ?? 0) === 0) continue;
    const target = targets.of(r);
    let kind = kinds.get(target);
    if (kind === undefined) kinds.set(target, (kind = kindOf(targets, r)));
    if (!kind.isFree) bound.add(r);
    if (kind.isFree || targets.faults.isUneven(r)) fixWhole(targets, r, kind.isFree, fixed);
    if (kind.left === 0) continue;
    open.push(r);
    take.push(kind.left);
  }
  const totals = targets.totals();
  const within = (whole: Float64Array): Int32Array =>
    Int32Array.from(whole, (n, b) => Math.max(0, n - (fixed[b] ?? 0)));
  const rendezvous = new Rendezvous(view.brokers.ids);
  const picked = chooseRemainders({
    rows: open.length,
    brokers: count,
    costs: open.map((r) => costsOf(targets, r)),
    take: Int32Array.from(take),
    least: within(totals.floor),
    most: within(totals.ceiling),
    scores: (row) => rendezvous.of(view.resourceKeys[open[row] ?? 0] ?? ''),
  });
  const rowOf = new Map(open.map((r, i) => [r, i]));
  return (r, b) => {
    if (bound.has(r)) return null;
    const row = rowOf.get(r);
    return targets.floor(r, b) + (row === undefined ? 0 : (picked[row * count + b] ?? 0));
  };
}

/** What resources of one target, and so of as many shards, have in common. */
interface Kind {
  /** No zone stands in the way of any rounding. */
  readonly isFree: boolean;
  /** Copies of each that are to be chosen for. */
  readonly left: number;
}

function kindOf(targets: CopyTargets, r: number): Kind {
  if (!roundsFreely(targets, r)) return { isFree: false, left: 0 };
  const { floors, ceilings, total } = targets.of(r).share;
  let left = total;
  let eligible = 0;
  for (const b of targets.view.brokers.liveList) {
    left -= floors[b] ?? 0;
    if ((ceilings[b] ?? 0) > (floors[b] ?? 0)) eligible++;
  }
  return { isFree: true, left: Math.min(Math.max(0, left), eligible) };
}

/** Counts, instead of what each broker holds of a resource, what it takes whatever is chosen: its floor, or what is within its part. */
function fixWhole(targets: CopyTargets, r: number, isFree: boolean, fixed: Float64Array): void {
  const { liveList } = targets.view.brokers;
  const { floors, ceilings } = targets.of(r).share;
  const held = targets.view.tally.copiesRow(r);
  for (let i = 0; i < liveList.length; i++) {
    const b = liveList[i] ?? 0;
    const floor = floors[b] ?? 0;
    const n = held[b] ?? 0;
    const whole = isFree ? floor : Math.min(ceilings[b] ?? 0, Math.max(floor, n));
    fixed[b] = (fixed[b] ?? 0) + whole - n;
  }
}

function costsOf(targets: CopyTargets, r: number): Uint8Array {
  const { liveList } = targets.view.brokers;
  const { floors, ceilings } = targets.of(r).share;
  const held = targets.view.tally.copiesRow(r);
  const costs = new Uint8Array(targets.view.brokers.count).fill(FORBIDDEN);
  for (let i = 0; i < liveList.length; i++) {
    const b = liveList[i] ?? 0;
    const floor = floors[b] ?? 0;
    if (ceilings[b] !== floor) costs[b] = (held[b] ?? 0) > floor ? KEEPS : COPIES;
  }
  return costs;
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
