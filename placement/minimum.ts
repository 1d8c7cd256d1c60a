import { matchHandovers, type Offer } from './handover-matching.ts';
import { couldLead } from './leader-start.ts';
import type { Pass } from './pass.ts';

/**
 * The proven fewest leadership moves from here to level: those in flight, and what every broker leads above its target.
 * `null` where a cap binds or a copy out of sync blocks, for then the targets may be out of reach.
 */
export function minimumLeaderMoves(pass: Pass): number | null {
  const { view, targets } = pass;
  if (targets.capped) return null;
  let sum = 0;
  for (let s = 0; s < view.shardCount; s++) {
    if (view.counts[s] === 1 && view.nextLeader(s) !== view.leader[s]) sum++;
  }
  if (targets.settled) return sum;
  for (let r = 0; r < view.resourceCount; r++) {
    const moves = movesOf(pass, r);
    if (moves > 0 && isBlocked(pass, r, moves)) return null;
    sum += moves;
  }
  return sum;
}

function movesOf(pass: Pass, r: number): number {
  const { view } = pass;
  let moves = 0;
  for (let b = 0; b < view.brokers.count; b++) {
    moves += Math.max(0, view.tally.leadersOf(r, b) - targetOf(pass, r, b));
  }
  return moves;
}

function targetOf({ view, targets }: Pass, r: number, b: number): number {
  return view.brokers.live[b] === 1 ? targets.of(r, b) : 0;
}

/** Some move towards the targets has no shard that could make it: caps, or copies that are not in sync, stand in the way. */
function isBlocked(pass: Pass, r: number, moves: number): boolean {
  const { view } = pass;
  const { count, liveList } = view.brokers;
  const supply = new Int32Array(count);
  const demand = new Int32Array(count);
  let clear = true;
  for (let b = 0; b < count; b++) {
    const difference = view.tally.leadersOf(r, b) - targetOf(pass, r, b);
    if (difference > 0) supply[b] = difference;
    else demand[b] = -difference;
    if (difference < 0 && view.room(b) < -difference) clear = false;
  }
  const offers: Offer[] = [];
  const needing = [...liveList].filter((b) => (demand[b] ?? 0) > 0);
  const end = view.firstShard[r + 1] ?? 0;
  for (let s = view.firstShard[r] ?? 0; s < end; s++) {
    const from = view.nextLeader(s);
    if (view.counts[s] === 0 || (supply[from] ?? 0) === 0) continue;
    clear &&= view.finished(s).every((b) => view.brokers.live[b] === 1 && view.isInSync(s, b));
    const to = needing.filter((b) => couldLead(pass, s, b));
    offers.push({ shard: s, from, to });
  }
  if (clear) return false;
  return matchHandovers(offers, supply, demand).filter((b) => b !== -1).length < moves;
}
