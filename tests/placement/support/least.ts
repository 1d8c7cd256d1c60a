import { copyTargets, type CopyTargets } from '../../../placement/copies/index.ts';
import { resourceOutside } from '../../../placement/copies/faults.ts';
import type { Phase } from '../../../placement/index.ts';
import { View } from '../../../placement/view.ts';
import { Flow } from '../oracle.ts';
import { NO_REPORTS, snapshot } from './rows.ts';

/**
 * The least component (4) of one resource that any layout has which keeps who leads, every zone limit and, but under
 * `broker`, the number of zones each shard spans now. Moves of step 7 never leave these layouts, so that none of their
 * sequences ends lower. A minimum-cost flow: of a shard's followers as many as must stand in zones of their own are sent
 * to zones one by one, the rest to any zone up to its limit, and each zone's on to its brokers. (A follower of the rest
 * in an empty zone could change its part with one of the others: the zones that a flow spans are never fewer.)
 */
export function leastOutside(view: View, targets: CopyTargets, r: number): number {
  const flow = new Flow();
  const [source, sink] = [flow.node(), flow.node()];
  const shards = Array.from({ length: view.resourceRow(r).shards }, (_, i) => (view.firstShard[r] ?? 0) + i);
  const placed = shards.filter((s) => view.counts[s] === 1);
  const { liveList, live, zone } = view.brokers;
  // Sets with a copy on a broker that is leaving or lost stay as they are.
  const fixed = placed.filter((s) => view.copies(s).some((b) => live[b] === 0));
  let start = 0;
  const nodes = new Map<number, number>();
  for (const b of liveList) {
    const node = flow.node();
    nodes.set(b, node);
    const stays = placed.filter(
      (s) => view.leader[s] === b || (fixed.includes(s) && view.holds(s, b)),
    ).length;
    const outside = (n: number): number =>
      Math.max(0, n - targets.ceiling(r, b), targets.floor(r, b) - n) ** 2;
    start += outside(stays);
    for (let n = stays; n < placed.length; n++) flow.arc(node, sink, 1, outside(n + 1) - outside(n));
  }
  const keepsZones = view.zonePolicy(r) !== 'broker';
  let followers = 0;
  for (const s of placed.filter((shard) => !fixed.includes(shard))) {
    const set = view.copies(s);
    const leader = view.leader[s] ?? -1;
    const spanned = new Set(set.map((b) => zone[b])).size;
    const own = keepsZones ? spanned - 1 : 0;
    const [alone, rest] = [flow.node(), flow.node()];
    flow.arc(source, alone, own, 0);
    flow.arc(source, rest, set.length - 1 - own, 0);
    followers += set.length - 1;
    for (const z of new Set([...liveList].map((b) => zone[b] ?? 0))) {
      const most = targets.limit(r, z) - (zone[leader] === z ? 1 : 0);
      const [into, inside] = [flow.node(), flow.node()];
      flow.arc(alone, into, zone[leader] === z ? 0 : 1, 0);
      flow.arc(rest, into, Math.max(0, most), 0);
      flow.arc(into, inside, Math.max(0, most), 0);
      for (const b of liveList) if (zone[b] === z && b !== leader) flow.arc(inside, nodes.get(b) ?? 0, 1, 0);
    }
  }
  const { flow: sent, cost } = flow.run(source, sink);
  if (sent !== followers) throw new Error(`${sent} of ${followers} followers of ${view.resourceKeys[r]} fit`);
  return start + cost;
}

/** At the end each resource's copies are as level as its zones let any moves make them; for clusters without caps. */
export function judgeCopies(phase: Phase): void {
  const { version: _version, ...rows } = phase.cluster;
  const view = new View(snapshot({ ...rows, nowMs: phase.virtualMs }), NO_REPORTS);
  const targets = copyTargets(view);
  for (let r = 0; r < view.resourceCount; r++) {
    const outside = resourceOutside(view, targets, r);
    if (outside === 0) continue;
    const least = leastOutside(view, targets, r);
    if (outside > least)
      throw new Error(`${view.resourceKeys[r]}: (4) is ${outside}, ${least} can be reached`);
  }
}
