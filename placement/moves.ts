import { NONE } from './broker-table.ts';
import { dropAtCutOver } from './leader-start.ts';
import { failuresOf, withFailure } from './failures.ts';
import { canCutOver, isNearEnough, unconfirmedLeader } from './fence.ts';
import type { AssignmentState, Failure } from './model.ts';
import type { Pass } from './pass.ts';
import type { StepName, Why } from './plan-types.ts';
import type { ShardMove } from './shard-move.ts';
import type { View } from './view.ts';

/**
 * Gives moves up that cannot or should not go on: the destination is gone, there is no progress, the time is over, the
 * fence was not answered, or the copy that a restore replaces is back. Done before anything is placed: what they
 * counted for counts no more.
 */
export function abandonMoves(pass: Pass, promoted: ReadonlySet<number>): void {
  const { view } = pass;
  for (let s = 0; s < view.shardCount; s++) {
    const move = view.move(s);
    // What gets another leader ends or keeps its move in that very write.
    if (move === null || view.touched[s] === 1 || promoted.has(s)) continue;
    const cause = causeToAbandon(pass, s, move);
    if (cause !== null) abandon(pass, s, move, cause);
  }
}

/** Why a move ends. */
interface Cause {
  readonly rule: string;
  readonly detail: string;
  /** At whom the move failed, which sends the shard to the back of the queue; `null`: it did not fail. */
  readonly failedAt: 'destination' | 'leader' | null;
}

function causeToAbandon(pass: Pass, s: number, move: ShardMove): Cause | null {
  const { view } = pass;
  const fenced = move.step === 'fenced';
  // After the fence nobody serves: the old leader takes the shard again, and if it cannot, a promotion is due.
  if (fenced && !view.leaderServes(s)) return null;
  const leader = view.leader[s] ?? NONE;
  if (fenced && !view.isHeard(leader)) {
    // It may be dead. Then the destination leads, if it is in sync, once the old leader's lease is over.
    const detail = `${view.brokers.id(leader)}, which led it, was not heard within its lease; it is heard again or declared down`;
    pass.wait(s, 'leader_unheard', detail);
    return null;
  }
  if (view.brokers.live[move.to] === 0) {
    const detail = `destination ${view.brokers.id(move.to)} is ${view.brokers.lifecycle(move.to)}`;
    return { rule: 'destination_gone', detail, failedAt: null };
  }
  if (fenced && view.report(s)?.destinationRenewed === true) {
    const detail = `${view.brokers.id(move.to)} registered anew after the fence`;
    return { rule: 'destination_renewed', detail, failedAt: null };
  }
  if (fenced) return fenceTimedOut(pass, s, move);
  if (move.role === 'follower' && move.reason === 'restore' && lostCopyIsBack(view, s, move)) {
    return {
      rule: 'copy_returned',
      detail: `${view.brokers.id(move.drops)} is back and in sync`,
      failedAt: null,
    };
  }
  return timedOut(pass, s, move);
}

function lostCopyIsBack(view: View, s: number, move: ShardMove): boolean {
  return move.drops !== NONE && view.brokers.live[move.drops] === 1 && view.isInSync(s, move.drops);
}

function fenceTimedOut(pass: Pass, s: number, move: ShardMove): Cause | null {
  const { view } = pass;
  const until = move.progressAtMs + view.policy.fenceTimeoutMs;
  if (canCutOver(view, s)) return null;
  pass.wakeAt(until);
  if (until > view.nowMs) return null;
  const from = view.brokers.id(view.leader[s] ?? NONE);
  const detail = `${from} did not report drained within ${view.policy.fenceTimeoutMs} ms (fenceTimeoutMs) of the fence`;
  return { rule: 'fence_timeout', detail, failedAt: 'destination' };
}

/** Only what its leader serves can be fenced. */
function unconfirmed({ view }: Pass, s: number): Cause | null {
  if (unconfirmedLeader(view, s) === null) return null;
  const detail = `${view.brokers.id(view.leader[s] ?? NONE)} has not confirmed the shard within ${view.policy.fenceTimeoutMs} ms (fenceTimeoutMs)`;
  return { rule: 'leader_unconfirmed', detail, failedAt: 'leader' };
}

function timedOut(pass: Pass, s: number, move: ShardMove): Cause | null {
  const { view } = pass;
  if (view.isInSync(s, move.to)) return move.role === 'leader' ? unconfirmed(pass, s) : null;
  const progress = Math.max(move.progressAtMs, view.report(s)?.progressAtMs ?? 0);
  const stalled = progress + view.policy.moveStallMs;
  const over = move.startedAtMs + view.policy.moveTimeoutMs;
  pass.wakeAt(Math.min(stalled, over));
  const to = view.brokers.id(move.to);
  if (over <= view.nowMs) {
    const detail = `${to} was not in sync within ${view.policy.moveTimeoutMs} ms (moveTimeoutMs)`;
    return { rule: 'timeout', detail, failedAt: 'destination' };
  }
  if (stalled > view.nowMs) return null;
  const detail = `${to} made no progress for ${view.policy.moveStallMs} ms (moveStallMs)`;
  return { rule: 'stall', detail, failedAt: 'destination' };
}

/**
 * Takes a move back: the destination goes unless it was a copy before, may be needed, or was about to lead. After the
 * fence the old leader serves at a new epoch; a copy that is in sync or nearly stays, so that the next try has it.
 */
export function abandon(pass: Pass, s: number, move: ShardMove, { rule, detail, failedAt }: Cause): void {
  const { view } = pass;
  const fenced = move.step === 'fenced';
  const leader = view.leader[s] ?? NONE;
  const stays = (fenced && isNearlyThere(view, s, move)) || !view.mayDrop(s, move.to);
  const goes = move.copied && !stays ? move.to : NONE;
  const failures = failuresOf(view, s);
  view.endMove(
    s,
    leader,
    view.copies(s).filter((b) => b !== goes),
  );
  finish(pass, s, move, {
    step: 'abandon',
    drops: goes,
    opensEpoch: fenced,
    state: fenced ? 'assigning' : (view.rows[s]?.state ?? 'active'),
    failedMoves: view.failedMoves(s) + (failedAt === null ? 0 : 1),
    failures:
      failedAt === 'destination' ? withFailure(failures, view.brokers.id(move.to), view.nowMs) : failures,
    drainingToo: fenced ? [leader] : [],
    why: { rule, detail, rejected: [], runnerUp: null },
  });
}

/** The very process that was fenced for is in sync, or lacks no more than a fence waits for. */
function isNearlyThere(view: View, s: number, { to }: ShardMove): boolean {
  const report = view.report(s);
  if (view.brokers.live[to] === 0 || report?.destinationRenewed === true) return false;
  return view.isInSync(s, to) || (report?.lagRecords ?? Infinity) <= view.policy.fenceMaxLagRecords;
}

/** Step 1: fences what has caught up, cuts over what was drained, seats what has joined. */
export function finishMoves(pass: Pass): void {
  const { view } = pass;
  for (let s = 0; s < view.shardCount; s++) {
    const move = view.move(s);
    if (move === null || view.touched[s] === 1) continue;
    if (move.role === 'follower') seatIfJoined(pass, s, move);
    else if (move.step === 'staged') fenceIfReady(pass, s, move);
    else if (canCutOver(view, s)) cutOver(pass, s, move);
  }
}

function seatIfJoined(pass: Pass, s: number, move: ShardMove): void {
  const { view } = pass;
  if (!view.isInSync(s, move.to) || !view.leaderServes(s)) return;
  const gone = view.holds(s, move.drops) ? move.drops : NONE;
  if (gone !== NONE && !view.mayDrop(s, gone)) return;
  view.endMove(
    s,
    view.leader[s] ?? NONE,
    view.copies(s).filter((b) => b !== gone),
  );
  const detail = `${view.brokers.id(move.to)} has caught up`;
  finish(pass, s, move, {
    step: 'seat',
    drops: gone,
    opensEpoch: false,
    state: view.rows[s]?.state ?? 'active',
    failedMoves: 0,
    failures: failuresOf(view, s).filter(({ to }) => to !== view.brokers.id(move.to)),
    why: { rule: 'caught_up', detail, rejected: [], runnerUp: null },
  });
}

function fenceIfReady(pass: Pass, s: number, move: ShardMove): void {
  const { view, builder } = pass;
  const state = view.rows[s]?.state;
  if (!view.leaderServes(s) || state !== 'active' || view.brokers.live[move.to] === 0) return;
  const report = view.report(s);
  const synced = view.isInSync(s, move.to);
  if (!synced && (report === null || !isNearEnough(report, view.policy))) return;
  // The time of the fence is what its time-out counts from.
  view.setMove(s, { ...withDrops(pass, s, move), step: 'fenced', progressAtMs: view.nowMs });
  const to = view.brokers.id(move.to);
  const rate = Math.round(report?.copiedPerSecond ?? 0);
  const detail = synced
    ? `${to} is in sync`
    : `${to} is ${report?.lagRecords} records behind and gets ${rate} a second`;
  builder.add(s, {
    step: 'fence',
    role: 'leader',
    from: move.from,
    to: move.to,
    drops: NONE,
    reason: move.reason,
    copies: false,
    opensEpoch: true,
    state: 'draining',
    failedMoves: view.failedMoves(s),
    needs: [move.to],
    vector: null,
    why: { rule: 'caught_up', detail, rejected: [], runnerUp: null },
  });
}

function cutOver(pass: Pass, s: number, staged: ShardMove): void {
  const { view } = pass;
  const move = withDrops(pass, s, staged);
  const copies = view.copies(s).filter((b) => b !== move.drops);
  view.endMove(s, move.to, copies);
  const detail = `${view.brokers.id(move.from)} has drained and ${view.brokers.id(move.to)} holds all of it`;
  finish(pass, s, move, {
    step: 'cutOver',
    drops: move.drops,
    opensEpoch: true,
    state: 'assigning',
    failedMoves: 0,
    failures: failuresOf(view, s).filter(({ to }) => to !== view.brokers.id(move.to)),
    needs: [move.to],
    why: { rule: 'drained', detail, rejected: [], runnerUp: null },
  });
}

/**
 * The copy that goes at the cut-over, as chosen at the stage: anew only if a set within its factor needs none any more,
 * none was chosen and one must go, or another copy has become less fit to stay.
 */
export function withDrops(pass: Pass, s: number, move: ShardMove): ShardMove {
  const { view } = pass;
  const factor = view.resourceRow(view.resource(s)).replicationFactor;
  if (view.copies(s).length <= factor) return { ...move, drops: NONE };
  const fit = (b: number): boolean => view.brokers.live[b] === 1 && view.isInSync(s, b);
  const unfit = view.copies(s).some((b) => b !== move.to && !fit(b));
  if (move.drops !== NONE && view.holds(s, move.drops) && (!fit(move.drops) || !unfit)) return move;
  return { ...move, drops: dropAtCutOver(pass, s, move.to) };
}

function finish(
  pass: Pass,
  s: number,
  move: ShardMove,
  facts: {
    step: StepName;
    drops: number;
    opensEpoch: boolean;
    state: AssignmentState;
    failedMoves: number;
    failures: readonly Failure[];
    needs?: readonly number[];
    drainingToo?: readonly number[];
    why: Why;
  },
): void {
  pass.freeSlot(move.copied, move.from, move.to);
  pass.builder.add(s, {
    role: move.role,
    from: move.from,
    to: move.to,
    reason: move.reason,
    copies: false,
    needs: [],
    vector: null,
    ...facts,
  });
}
