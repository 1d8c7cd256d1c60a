import type { View } from '../view.ts';
import { Dealer } from './deal.ts';
import { evenPairs } from './exchange.ts';
import { PairCounts } from './pairs.ts';
import { seatsOf } from './seats.ts';
import type { CopyTargets } from './targets.ts';

const pairsOf = new WeakMap<CopyTargets, PairCounts>();

/** How pairs of brokers share the shards that are placed so far. */
function pairCounts(targets: CopyTargets): PairCounts {
  const known = pairsOf.get(targets);
  if (known !== undefined) return known;
  const { view } = targets;
  const pairs = new PairCounts(view.brokers.count);
  for (let s = 0; s < view.shardCount; s++) {
    const set = view.finished(s);
    if (set.length < 2) continue;
    const leader = view.nextLeader(s);
    pairs.add(set[0] === leader ? set : [leader, ...set.filter((b) => b !== leader)]);
  }
  pairsOf.set(targets, pairs);
  return pairs;
}

/**
 * Chooses the followers of the shards of resource `r` that got their leader in this pass (rising indices); all
 * leaders of the pass, of every resource, are placed before. Each set gets `rf'` copies unless caps leave too few
 * seats. Afterwards, once for all resources, `finishDealing` evens out what one resource alone cannot see.
 */
export function dealFollowers(view: View, targets: CopyTargets, r: number, shards: readonly number[]): void {
  const factor = view.factor(r);
  if (shards.length === 0 || factor < 2) return;
  const pairs = pairCounts(targets);
  const dealer = new Dealer({
    field: targets.field,
    factor,
    leaders: Int32Array.from(shards, (s) => view.leader[s] ?? 0),
    seats: seatsOf(targets, r, shards),
    pairs,
    ranking: (row) => targets.ranking(shards[row] ?? 0),
  });
  const sets = shards.map((_, row) => dealer.next(row));
  evenPairs(targets.field, sets, pairs, targets.view.shardCount);
  shards.forEach((s, row) => view.setCopies(s, sets[row] ?? []));
}
