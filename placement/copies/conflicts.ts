import { compareStrings, type ZonePolicy } from '../model.ts';
import type { ConflictRow } from '../plan-types.ts';
import type { View } from '../view.ts';
import type { Share } from './share.ts';
import { shareByRule, type CopyTargets } from './targets.ts';
import { zoneRule, type ZoneRule } from './zone-limit.ts';

/** Resources that share a policy and a number of copies: what is said of one zone is said of all of them at once. */
interface Kind {
  readonly policy: ZonePolicy;
  readonly factor: number;
  /** By number of shards: how many resources. */
  readonly sizes: Map<number, number>;
}

/**
 * Where level brokers and spread zones cannot both be had, whether placed or not: a row a zone that would hold more
 * copies with level brokers than `zone` lets it, or than `majority` would if it could be kept. Caps are not looked at. Empty where both goals are reachable.
 */
export function conflicts(view: View, targets: CopyTargets): ConflictRow[] {
  const kinds = new Map<ZoneRule, Kind>();
  for (let r = 0; r < view.resourceCount; r++) {
    const factor = view.factor(r);
    const { shards } = view.resourceRow(r);
    if (factor < 2 || shards === 0) continue;
    const rule = targets.rule(r);
    let kind = kinds.get(rule);
    if (kind === undefined)
      kinds.set(rule, (kind = { policy: rule.policy, factor, sizes: new Map<number, number>() }));
    kind.sizes.set(shards, (kind.sizes.get(shards) ?? 0) + 1);
  }
  const inOrder = [...kinds.values()].sort(
    (a, b) => a.factor - b.factor || compareStrings(a.policy, b.policy),
  );
  return inOrder.flatMap((kind) => conflictsOf(view, targets, kind));
}

/** What one zone would hold over all resources of a kind. */
interface Sum {
  shards: number;
  doubled: number;
  losesMajority: number;
  limit: number;
}

function conflictsOf(view: View, targets: CopyTargets, kind: Kind): ConflictRow[] {
  const { field } = targets;
  const { factor, policy } = kind;
  const raised = zoneRule(field, policy, factor);
  const rules = { level: zoneRule(field, 'broker', factor), spread: zoneRule(field, 'zone', factor) };
  const sums = new Map<number, Sum>();
  const off = { least: Infinity, most: 0, floor: 0, ceiling: 0 };
  const clash = new Set<number>();
  for (const [shards, times] of [...kind.sizes].sort((a, b) => a[0] - b[0])) {
    const level = shareByRule(field, rules.level, shards, null).share;
    const spread = shareByRule(field, rules.spread, shards, null).share;
    const own = shareByRule(field, raised, shards, null).share;
    for (const z of field.shared) {
      const part = level.zone(z);
      const bound = spread.zone(z);
      // A whole number of copies decides: rounding alone is no conflict.
      if (part.floor > bound.floor + (bound.remainder > 0 ? 1 : 0)) clash.add(z);
      if (raised.most > raised.wanted && own.zoneCeiling(z) > raised.wanted * shards) clash.add(z);
      const sum = sums.get(z) ?? { shards: 0, doubled: 0, losesMajority: 0, limit: 0 };
      sum.shards += shards * times;
      sum.doubled += times * withAtLeast(level.zoneCeiling(z), shards, 2);
      sum.losesMajority += times * withAtLeast(level.zoneCeiling(z), shards, Math.ceil(factor / 2));
      sums.set(z, sum);
    }
    addLevels(field.members, { level, spread }, times, off);
  }
  return [...clash]
    .sort((a, b) => a - b)
    .map((z) => row(view, targets, kind, { z, sum: sums.get(z), off, raised }));
}

/** Shards with at least `n` copies in a zone that holds `copies` of `shards` shards as evenly as can be. */
function withAtLeast(copies: number, shards: number, n: number): number {
  return Math.max(0, Math.min(shards, copies - (n - 1) * shards));
}

function addLevels(
  members: Int32Array,
  shares: { level: Share; spread: Share },
  times: number,
  off: { least: number; most: number; floor: number; ceiling: number },
): void {
  let least = Infinity;
  let most = 0;
  let floor = Infinity;
  let ceiling = 0;
  for (const b of members) {
    least = Math.min(least, shares.spread.floor(b));
    most = Math.max(most, shares.spread.ceiling(b));
    floor = Math.min(floor, shares.level.floor(b));
    ceiling = Math.max(ceiling, shares.level.ceiling(b));
  }
  off.least = (off.least === Infinity ? 0 : off.least) + times * least;
  off.most += times * most;
  off.floor += times * floor;
  off.ceiling += times * ceiling;
}

function row(
  view: View,
  targets: CopyTargets,
  kind: Kind,
  found: {
    z: number;
    sum: Sum | undefined;
    off: { least: number; most: number; floor: number; ceiling: number };
    raised: { most: number; wanted: number };
  },
): ConflictRow {
  const { field } = targets;
  const { z, sum, off, raised } = found;
  const zone = view.brokers.zoneNames[z] ?? '';
  const share = fraction(field.weight(z), view.brokers.liveWeight);
  const limit = fraction(Math.max(1, kind.factor - field.zones.length + 1), kind.factor);
  const doubled = sum?.doubled ?? 0;
  const shards = sum?.shards ?? 0;
  const range = (a: number, b: number): string => (a === b ? `${a}` : `${a} to ${b}`);
  const detail = [
    `zone ${zone} has ${share} of the weight and can hold ${limit} of the copies without a shard's doubling up`,
    `with level brokers (policy broker) ${doubled} of ${shards} shards double up in it, and ${sum?.losesMajority ?? 0} lose their majority with it`,
    `with spread zones (policy zone) brokers hold ${range(off.least, off.most)} copies where level is ${range(off.floor, off.ceiling)}`,
  ];
  if (raised.most > raised.wanted) {
    detail.push(
      `the limit of ${raised.wanted} a zone is raised to ${raised.most}, the least that holds ${kind.factor} copies`,
    );
  }
  return {
    zone,
    brokersShare: share,
    limit,
    policy: kind.policy,
    shardsDoubled: doubled,
    detail: detail.join('; '),
  };
}

function fraction(a: number, b: number): string {
  let x = a;
  let y = b;
  while (y > 0) [x, y] = [y, x % y];
  return `${a / x}/${b / x}`;
}
