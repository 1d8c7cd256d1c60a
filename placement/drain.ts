import { NONE } from './broker-table.ts';
import { restoreDestination } from './copies/index.ts';
import { startCopyMove, whyOf } from './copy-start.ts';
import { barredText, isBarred, leastFailed, timesFailed } from './failures.ts';
import type { LeaderMoves } from './leader-moves.ts';
import { canTake, mustCopy, shardToCopy, startLeaderMove } from './leader-start.ts';
import type { Pass } from './pass.ts';
import type { Why } from './plan-types.ts';

/**
 * Step 2, leaderships of brokers that are leaving: to an in-sync copy on a broker below its target where there is one,
 * then by copying towards targets; where caps or copies out of sync put targets out of reach, to the in-sync copy
 * that leads the least above its target, then to any broker with room. Answers the shards whose target is full but will
 * not stay so: they wait while other leaderships move.
 */
export function drainLeaders(pass: Pass, moves: LeaderMoves, shards: readonly number[]): readonly number[] {
  const { view } = pass;
  const resources = [...new Set(shards.map((s) => view.resource(s)))];
  for (const r of resources) {
    for (const { shard, from, to, copied } of moves.of(r).handovers) {
      if (view.brokers.live[from] === 1 || !view.mayStart(shard, 'leader')) continue;
      if (canTake(pass, shard, to) && pass.hasSlot(copied, from, to)) {
        start(pass, shard, to, copied ? 'copy_below_target' : 'in_sync_below_target');
      }
    }
  }
  for (const r of resources) drainByCopying(pass, moves, r);
  return drainElsewhere(
    pass,
    shards.filter((s) => view.mayStart(s, 'leader') && !reachable(pass, moves, s)),
    (s) => fullTargets(pass, s).length > 0,
  );
}

/** Targets are out of reach: any destination will do, but for the shards that had better wait. Answers those. */
export function drainElsewhere(
  pass: Pass,
  shards: readonly number[],
  waits: (s: number) => boolean,
): readonly number[] {
  const { view } = pass;
  const later: number[] = [];
  for (const s of shards) {
    if (!view.mayStart(s, 'leader')) continue;
    if (waits(s)) {
      later.push(s);
      continue;
    }
    const to = anyDestination(pass, s);
    if (to === NONE) {
      const { reason, detail } = nowhereToGo(pass, s);
      pass.wait(s, reason, detail);
    } else if (pass.hasSlot(mustCopy(pass, s, to), view.nextLeader(s), to))
      start(pass, s, to, 'targets_out_of_reach');
  }
  return later;
}

/** Brokers below their target of the shard's resource that hold none of it and are full. */
export function fullTargets(pass: Pass, s: number): number[] {
  const { view, targets } = pass;
  const r = view.resource(s);
  return [...view.brokers.liveList].filter(
    (b) => view.tally.leadersOf(r, b) < targets.of(r, b) && !view.holds(s, b) && view.room(b) <= 0,
  );
}

/** One of the resource's moves towards targets takes this shard, or could: it only waits for its turn. */
function reachable(pass: Pass, moves: LeaderMoves, s: number): boolean {
  const { view } = pass;
  const { handovers, supply, demand } = moves.of(view.resource(s));
  if (handovers.some((handover) => handover.shard === s)) return true;
  if ((supply[view.nextLeader(s)] ?? 0) <= 0) return false;
  return view.brokers.liveList.some(
    (b) => (demand[b] ?? 0) > 0 && view.room(b) > 0 && !view.holds(s, b) && timesFailed(view, s, b) === 0,
  );
}

function drainByCopying(pass: Pass, moves: LeaderMoves, r: number): void {
  const { view } = pass;
  const { handovers, supply, demand } = moves.of(r);
  const taken = new Set(handovers.map((handover) => handover.shard));
  for (let from = 0; from < view.brokers.count; from++) {
    if (view.brokers.draining[from] === 0) continue;
    const takers = [...view.brokers.liveList].filter((b) => (demand[b] ?? 0) > 0);
    takers.sort((a, b) => (demand[b] ?? 0) - (demand[a] ?? 0) || a - b);
    for (const to of takers) {
      while ((supply[from] ?? 0) > 0 && (demand[to] ?? 0) > 0 && pass.hasSlot(true, from, to)) {
        const shard = shardToCopy(pass, r, { from, to, takers, taken, optional: false });
        if (shard === NONE) break;
        start(pass, shard, to, 'copy_below_target');
        supply[from] = (supply[from] ?? 0) - 1;
        demand[to] = (demand[to] ?? 0) - 1;
      }
    }
  }
}

function anyDestination(pass: Pass, s: number): number {
  const { view, targets } = pass;
  const r = view.resource(s);
  const ranking = pass.rankings.of(s);
  const above = (b: number): number => view.tally.leadersOf(r, b) - targets.of(r, b);
  const inOrder = (a: number, b: number): number =>
    above(a) - above(b) ||
    (view.tally.leaders[a] ?? 0) - (view.tally.leaders[b] ?? 0) ||
    ranking.compare(a, b);
  const barred = view.held.barred.get(view.shardKey(s));
  const open = (b: number): boolean => barred?.has(view.brokers.id(b)) !== true;
  const fit = leastFailed(view, s, takersOf(pass, s).filter(open)).toSorted(inOrder);
  return fit.find((b) => view.holds(s, b)) ?? fit[0] ?? NONE;
}

/** Live brokers that hold a copy in sync, or none and have room. */
function takersOf(pass: Pass, s: number): number[] {
  const { view } = pass;
  return [...view.brokers.liveList].filter((b) =>
    view.holds(s, b) ? !mustCopy(pass, s, b) : view.room(b) > 0,
  );
}

function start(pass: Pass, s: number, to: number, rule: string): void {
  startLeaderMove(pass, { shard: s, to, reason: 'drain', why: drainWhy(pass, s, to, rule), optional: false });
}

function drainWhy(pass: Pass, s: number, to: number, rule: string): Why {
  const { view, targets } = pass;
  const r = view.resource(s);
  const id = (b: number): string => view.brokers.id(b);
  const others = view.copies(s).filter((b) => b !== to && b !== view.nextLeader(s));
  const by = (b: number): string =>
    view.brokers.live[b] === 0
      ? 'not_live'
      : !view.isInSync(s, b)
        ? 'out_of_sync'
        : view.tally.leadersOf(r, b) >= targets.of(r, b)
          ? 'at_target'
          : 'less_far_below_target';
  const led = `leads ${view.tally.leadersOf(r, to)} of ${view.resourceKeys[r]} (target ${targets.of(r, to)})`;
  return {
    rule,
    detail: `${id(view.nextLeader(s))} is draining; ${id(to)} ${led}`,
    rejected: others.map((b) => ({ broker: id(b), by: by(b) })),
    runnerUp: others.filter((b) => view.brokers.live[b] === 1).map(id)[0] ?? null,
  };
}

type Nowhere = 'no_destination' | 'no_room' | 'destination_failed';

/** `no_room`: room is all that is missing. */
function nowhereToGo(pass: Pass, s: number): { reason: Nowhere; detail: string } {
  const { view } = pass;
  const barred = takersOf(pass, s).filter((b) => isBarred(view, s, b));
  if (barred.length > 0) return { reason: 'destination_failed', detail: barredText(view, s, barred) };
  const { brokers } = view;
  const id = (b: number): string => brokers.id(b);
  const behind = view.copies(s).filter((b) => brokers.live[b] === 1 && !view.isInSync(s, b));
  const full = [...brokers.liveList].filter((b) => !view.holds(s, b));
  const parts = [
    behind.length > 0 ? `live but out of sync: ${behind.map(id).join(', ')}` : 'no live broker holds a copy',
    full.length > 0
      ? `outside its set at maxShards: ${full.map((b) => `${id(b)} ${view.tally.held[b]} of ${brokers.cap[b]}`).join(', ')}; room for 1 copy is missing`
      : 'no live broker is outside its set',
  ];
  return {
    reason: behind.length === 0 && full.length > 0 ? 'no_room' : 'no_destination',
    detail: `${id(view.nextLeader(s))} is draining and leads it; ${parts.join('; ')}`,
  };
}

/**
 * Step 2, copies: once the leaderships have what slots there are, each copy on a leaving broker is replaced. Answers
 * whether one is still to start: what it will bring is not known yet.
 */
export function drainCopies(pass: Pass, shards: readonly number[]): boolean {
  const { view } = pass;
  let pending = false;
  for (const s of shards) {
    if (!view.free(s)) {
      pending ||= view.failedMoves(s) <= view.failedLimit;
      continue;
    }
    const leaving = view.finished(s).find((b) => view.brokers.draining[b] === 1 && b !== view.nextLeader(s));
    if (leaving === undefined) continue;
    const found = restoreDestination(view, pass.copyTargets, s, leaving, pass.slotTest(s));
    if (found === null) pending = true;
    else if ('waiting' in found) pass.wait(s, found.waiting.reason, found.waiting.detail);
    else
      startCopyMove(pass, {
        shard: s,
        from: leaving,
        to: found.to,
        reason: 'drain',
        why: whyOf(found),
        optional: false,
      });
  }
  return pending;
}
