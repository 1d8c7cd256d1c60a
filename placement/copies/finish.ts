import type { View } from '../view.ts';
import { replaced, zoneFault } from './measure.ts';
import type { CopyTargets } from './targets.ts';
import { totalsStep } from './totals-step.ts';
import { zonesAfter } from './zones.ts';

/**
 * Single exchanges among the shards not yet written, once all resources of the pass are dealt: sets that caps left
 * short are filled by moving another shard's follower out of the way, and copies in total are brought level.
 */
export function finishDealing(view: View, targets: CopyTargets): void {
  fillShort(view, targets);
  const any = (): boolean => true;
  const unwritten = (s: number): boolean => view.rows[s] === undefined;
  const dealt = new Set<number>();
  for (let s = 0; s < view.shardCount; s++)
    if (unwritten(s) && view.counts[s] === 1) dealt.add(view.resource(s));
  // Until quotas chosen from the outcome want nothing more: then the next pass, which chooses so, wants nothing.
  for (let moved = true; moved;) {
    moved = false;
    targets.renewQuotas();
    for (;;) {
      const move = totalsStep(view, targets, any, unwritten, dealt);
      if (move === null) break;
      view.setCopies(move.shard, exchange(view.finished(move.shard), move.from, move.to));
      moved = true;
    }
  }
}

/** The set with one follower replaced in its place: the leader stays first. */
function exchange(copies: readonly number[], from: number, to: number): number[] {
  return copies.map((b) => (b === from ? to : b));
}

function fillShort(view: View, targets: CopyTargets): void {
  if (targets.field.capped.length === 0) return;
  for (let s = 0; s < view.shardCount; s++) {
    if (view.rows[s] !== undefined || view.counts[s] === 0) continue;
    while (view.copies(s).length < view.factor(view.resource(s)) && addCopy(view, targets, s));
  }
}

/** One more copy of the shard: on a broker with room, or on one whose copy of another unwritten shard can go elsewhere. */
function addCopy(view: View, targets: CopyTargets, s: number): boolean {
  const set = view.copies(s);
  const roomy = [...view.brokers.liveList].filter((b) => view.room(b) > 0);
  const direct = roomy.filter((b) => !set.includes(b));
  if (direct.length > 0) {
    view.setCopies(s, [...set, widest(view, targets, s, direct)]);
    return true;
  }
  for (let other = 0; other < view.shardCount; other++) {
    if (other === s || view.rows[other] !== undefined || view.counts[other] === 0) continue;
    const copies = view.copies(other);
    const to = roomy.find((b) => !copies.includes(b));
    if (to === undefined) continue;
    const from = copies.find((b, i) => i > 0 && !set.includes(b));
    if (from === undefined) continue;
    view.setCopies(other, exchange(copies, from, to));
    view.setCopies(s, [...set, from]);
    return true;
  }
  return false;
}

function widest(view: View, targets: CopyTargets, s: number, brokers: readonly number[]): number {
  const r = view.resource(s);
  const set = view.copies(s);
  const ranking = targets.ranking(s);
  const rows = brokers.map((broker) => {
    const after = replaced(set, broker, broker);
    return { broker, fault: zoneFault(view, targets, r, after), zones: zonesAfter(view, after) };
  });
  rows.sort((a, b) => a.fault - b.fault || b.zones - a.zones || ranking.compare(a.broker, b.broker));
  return rows[0]?.broker ?? 0;
}
