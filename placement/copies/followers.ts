import type { View } from '../view.ts';
import { Dealer } from './deal.ts';
import { evenPairs } from './exchange.ts';
import { finishDealing } from './finish.ts';
import { PairCounts } from './pairs.ts';
import { SeatPlan } from './seats.ts';
import type { CopyTargets } from './targets.ts';

/** How pairs of brokers share the shards that are placed so far. */
function pairCounts(view: View): PairCounts {
  const pairs = new PairCounts(view.brokers.count);
  for (let s = 0; s < view.shardCount; s++) {
    const set = view.finished(s);
    if (set.length < 2) continue;
    const leader = view.nextLeader(s);
    pairs.add(set[0] === leader ? set : [leader, ...set.filter((b) => b !== leader)]);
  }
  return pairs;
}

/**
 * Chooses the followers of the shards that got their leader in this pass (rising indices); all leaders of the pass are
 * placed before. Each set gets `rf'` copies unless caps leave too few seats. Resource by resource, and at the end for all
 * of them what one alone cannot see.
 */
export function dealFollowers(view: View, targets: CopyTargets, shards: readonly number[]): void {
  const pairs = pairCounts(view);
  const plan = new SeatPlan(targets);
  const dealer = new Dealer(targets.field, pairs);
  for (let from = 0; from < shards.length;) {
    const r = view.resource(shards[from] ?? 0);
    let to = from;
    while (to < shards.length && view.resource(shards[to] ?? 0) === r) to++;
    dealResource(targets, r, shards.slice(from, to), { pairs, plan, dealer });
    from = to;
  }
  finishDealing(view, targets);
}

function dealResource(
  targets: CopyTargets,
  r: number,
  shards: readonly number[],
  { pairs, plan, dealer }: { pairs: PairCounts; plan: SeatPlan; dealer: Dealer },
): void {
  const { view, field } = targets;
  const factor = view.factor(r);
  if (factor < 2) return;
  const { seats, leads } = plan.of(r, shards);
  const sets = dealer.deal({
    factor,
    leaders: shards.map((s) => view.leader[s] ?? 0),
    seats,
    leads,
    ranking: (row) => targets.ranking(shards[row] ?? 0),
  });
  evenPairs(field, sets, pairs, view.shardCount);
  sets.forEach((set, row) => view.setCopies(shards[row] ?? 0, set));
}
