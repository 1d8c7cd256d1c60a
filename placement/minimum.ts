import { matchHandovers, type Offer } from './handover-matching.ts';
import { isClear, isHeldOff } from './leader-moves.ts';
import { couldLead, mustCopy } from './leader-start.ts';
import type { Pass } from './pass.ts';
import { hasLed } from './moved.ts';
import { mayRunShort } from './room.ts';

/**
 * The proven fewest leadership moves from here to level: those in flight, and what every broker leads above its target.
 * `null` where a copy out of sync blocks or a cap could bind on the way, for then the targets may be out of reach, and room
 * that a new shard finds only later changes them.
 */
export function minimumLeaderMoves(pass: Pass): number | null {
  const { view, targets } = pass;
  if (targets.capped || pass.lacksRoom || mayRunShort(pass)) return null;
  // Without caps every new shard has found a broker under its target.
  if (pass.placed === view.shardCount && !targets.bounded) return 0;
  let sum = 0;
  for (let s = 0; s < view.shardCount; s++) {
    if (view.counts[s] === 1 && view.nextLeader(s) !== view.leader[s]) sum++;
  }
  if (targets.settled) return sum;
  if (isHeldOff(pass)) return null;
  for (let r = 0; r < view.resourceCount; r++) {
    const moves = movesOf(pass, r);
    if (moves > 0 && (isBehind(pass, r) || possibleMoves(pass, r, couldLeadWhole) < moves)) return null;
    sum += moves;
  }
  return sum;
}

function movesOf(pass: Pass, r: number): number {
  const { targets, view } = pass;
  let moves = 0;
  // A broker that is not live has no target.
  for (let b = 0; b < view.brokers.count; b++) {
    const over = view.tally.leadersOf(r, b) - targets.of(r, b);
    if (over > 0) moves += over;
  }
  return moves;
}

/**
 * A leadership that is to move has a copy, out of sync, on a broker that is to take one: it cannot go there now, and who goes
 * there instead is found move by move.
 */
function isBehind(pass: Pass, r: number): boolean {
  const { view } = pass;
  const { live, liveList } = view.brokers;
  const gives = (b: number): boolean => live[b] === 0 || view.tally.leadersOf(r, b) > targetOf(pass, r, b);
  const needing = [...liveList].filter((b) => view.tally.leadersOf(r, b) < targetOf(pass, r, b));
  const end = view.firstShard[r + 1] ?? 0;
  for (let s = view.firstShard[r] ?? 0; s < end; s++) {
    if (view.counts[s] === 0 || !gives(view.nextLeader(s))) continue;
    if (needing.some((b) => view.holds(s, b) && mustCopy(pass, s, b))) return true;
  }
  return false;
}

function targetOf({ view, targets }: Pass, r: number, b: number): number {
  return view.brokers.live[b] === 1 ? targets.of(r, b) : 0;
}

/** Whether some leadership could still move towards its target, now or once what is in flight has finished. */
export function leadersWantMoves(pass: Pass): boolean {
  if (pass.targets.settled) return false;
  for (let r = 0; r < pass.view.resourceCount; r++) {
    if (movesOf(pass, r) > 0 && possibleMoves(pass, r, couldLead) > 0) return true;
  }
  return false;
}

/** As `couldLead`, once drains and restores have replaced the copies of brokers that leave or are lost: no zone hangs on those. */
function couldLeadWhole(pass: Pass, s: number, to: number): boolean {
  if (couldLead(pass, s, to)) return true;
  const { view } = pass;
  if (view.holds(s, to) || view.room(to) <= 0) return false;
  return view.finished(s).some((b) => view.brokers.live[b] === 0);
}

/**
 * How many of a resource's moves towards its targets have a shard that could make them, in flight or not: caps, copies that
 * are not in sync, and leaderships that have moved in this phase, may stand in the way.
 */
function possibleMoves(pass: Pass, r: number, could: typeof couldLead): number {
  const { view } = pass;
  const { count, liveList } = view.brokers;
  const supply = new Int32Array(count);
  const demand = new Int32Array(count);
  for (let b = 0; b < count; b++) {
    const difference = view.tally.leadersOf(r, b) - targetOf(pass, r, b);
    if (difference > 0) supply[b] = difference;
    else demand[b] = -difference;
  }
  const needing = [...liveList].filter((b) => (demand[b] ?? 0) > 0);
  const offers: Offer[] = [];
  const end = view.firstShard[r + 1] ?? 0;
  const gives = (s: number): boolean => view.counts[s] === 1 && (supply[view.nextLeader(s)] ?? 0) > 0;
  let stays = false;
  for (let s = view.firstShard[r] ?? 0; s < end && !stays; s++) stays = gives(s) && hasLed(view, s);
  if (!stays && isClear(view, r, supply, demand)) return supply.reduce((sum, n) => sum + n, 0);
  for (let s = view.firstShard[r] ?? 0; s < end; s++) {
    const from = view.nextLeader(s);
    if (!gives(s) || hasLed(view, s)) continue;
    offers.push({ shard: s, from, to: needing.filter((b) => could(pass, s, b)) });
  }
  // Room is for one copy each: what must be copied to a broker is bounded by what it can still hold.
  const given = matchHandovers(offers, supply, demand);
  const copied = new Int32Array(count);
  let possible = 0;
  given.forEach((b, i) => {
    const shard = offers[i]?.shard ?? 0;
    if (b === -1) return;
    if (!view.holds(shard, b)) copied[b] = (copied[b] ?? 0) + 1;
    if (view.holds(shard, b) || (copied[b] ?? 0) <= view.room(b)) possible++;
  });
  return possible;
}
