import { conflicts, Foresight, isNearLevel, levelStep, unspread, zoneStep } from './copies/index.ts';
import { startFollower } from './copy-start.ts';
import { drainCopies, drainElsewhere, drainLeaders } from './drain.ts';
import { failuresEndMs } from './failures.ts';
import { admitNew, placeAll } from './first-placement.ts';
import { NO_HOLDS, type Holds } from './holds.ts';
import { LeaderMoves } from './leader-moves.ts';
import { levelBeyondTargets } from './level-beyond.ts';
import { levelLeaders } from './level.ts';
import { levelsOf } from './levels.ts';
import { lookAhead, type Candidate } from './lookahead.ts';
import { leadersWantMoves, minimumLeaderMoves } from './minimum.ts';
import { abandonMoves, finishMoves } from './moves.ts';
import { Pass } from './pass.ts';
import type { Levels, Plan, Reports, Snapshot } from './plan-types.ts';
import { findLost, promoteLost } from './promote.ts';
import { QuietCluster } from './quiet.ts';
import { awaited, belowTarget, makeWay } from './room.ts';
import { dropSurplus, findCopyWork, restoreCopies, type CopyWork } from './restore.ts';
import { leaderTargets } from './targets.ts';
import { View } from './view.ts';

/**
 * One pass over a snapshot: what should be written next, in order, and why. Pure: the same input gives the same plan
 * on every machine, whatever the order of its rows. A settled cluster yields no steps.
 */
export function plan(snapshot: Snapshot, reports: Reports): Plan {
  return passOver(snapshot, reports).plan;
}

/**
 * The same, and how to see without a pass that the cluster goes on wanting nothing; `null` where it wants something. Who
 * writes rows to `quiet` reads no levels of the plan any more.
 */
export function planAndFollow(
  snapshot: Snapshot,
  reports: Reports,
): { readonly plan: Plan; readonly quiet: QuietCluster | null } {
  const { pass, plan: made } = passOver(snapshot, reports);
  return { plan: made, quiet: QuietCluster.after(pass, made) };
}

function passOver(snapshot: Snapshot, reports: Reports): { pass: Pass; plan: Plan } {
  const { pass, minimum } = lookAhead(snapshot, {
    first: (holds) => decide(snapshot, reports, holds),
    later: (rows, told) => decide(rows, told, NO_HOLDS),
  });
  return { pass, plan: describe(pass, minimum) };
}

/** Everything that one pass decides. */
function decide(snapshot: Snapshot, reports: Reports, holds: Holds): Decided {
  const view = new View(snapshot, reports, holds);
  const pass = new Pass(view);
  assignLeaders(pass);
  const minimum = minimumLeaderMoves(pass);
  finishMoves(pass);
  if (!view.policy.paused) startMoves(pass);
  const { builder, nextDeadlineMs, isTight } = pass;
  return { pass, minimum, steps: builder.steps, nextDeadlineMs, isTight, shardCount: view.shardCount };
}

interface Decided extends Candidate {
  readonly pass: Pass;
  readonly minimum: number | null;
}

function describe(pass: Pass, minimum: number | null): Plan {
  const { view } = pass;
  let levels: Levels | null = null;
  return {
    steps: pass.builder.steps,
    waiting: pass.waiting,
    unplaceable: pass.unplaceable,
    unspread: unspread(view, pass.copyTargets),
    conflicts: conflicts(view, pass.copyTargets),
    minimumLeaderMoves: minimum,
    nextDeadlineMs: pass.nextDeadlineMs,
    // A table of resources by brokers: built only for who asks.
    get levels() {
      return (levels ??= levelsOf(view));
    },
  };
}

/** Step 0, after what cannot finish was given up: everyone who can lead a leaderless shard does. Needs no slot. */
function assignLeaders(pass: Pass): void {
  const { view, book } = pass;
  const lost = findLost(pass);
  const { promotable, lastChoice, ephemeral } = lost;
  const promoted = [...promotable, ...lastChoice].map(({ shard }) => shard);
  abandonMoves(pass, new Set([...promoted, ...ephemeral]));
  const fresh = admitNew(pass);
  const unled = new Int32Array(view.resourceCount);
  for (const shards of [fresh, lost.ephemeral]) {
    for (const s of shards) unled[view.resource(s)] = (unled[view.resource(s)] ?? 0) + 1;
  }
  promoteLost(pass, lost, unled);
  pass.targets = leaderTargets(view, book, unled);
  placeAll(pass, fresh, lost.ephemeral);
  // What was placed has taken room: where that is scarce, what is out of reach from here on is known only now.
  if (fresh.length > 0 && pass.targets.bounded) pass.targets = leaderTargets(view, book, unled.fill(0));
}

/** Steps 2 to 7. Shards whose moves keep failing are at the back: all others have their turn first. */
function startMoves(pass: Pass): void {
  const { view } = pass;
  for (const held of Object.values(view.held.waits)) {
    for (const [shard, detail] of held) pass.wait(view.indexOf(shard), 'moves_again', detail);
  }
  // Where this pass has placed every shard there is, none may start anything.
  if (pass.placed === view.shardCount) return;
  const work = findCopyWork(pass);
  const failures = new Set([0]);
  for (let s = 0; s < view.shardCount; s++) failures.add(view.failedMoves(s));
  for (const limit of [...failures].sort((a, b) => a - b)) {
    view.failedLimit = limit;
    startInOrder(pass, work);
  }
  levelBeyondTargets(pass);
  for (let s = 0; s < view.shardCount; s++) {
    const endMs = failuresEndMs(view, s);
    if (endMs !== null) pass.wakeAt(endMs);
  }
  // A copy that a failed hand-over has left is for the next try, which comes when others have had their turn.
  if (!pass.moving) dropSurplus(pass, work.surplus);
}

function startInOrder(pass: Pass, work: CopyWork): void {
  const moves = new LeaderMoves(pass);
  const waiting = drainLeaders(pass, moves, work.drainLeaders);
  const draining = drainCopies(pass, work.drainCopies);
  const unfailed = work.surplus.filter((s) => pass.view.failedMoves(s) === 0);
  const dropping = dropSurplus(pass, unfailed);
  const restoring = restoreCopies(pass, work.restore);
  if (pass.lacksRoom && makeWay(pass, pass.view.brokers.liveList)) return;
  levelLeaders(pass, moves);
  if (waiting.length > 0 && !pass.view.handsOver) {
    if (makeWay(pass, awaited(pass, waiting))) return;
    drainElsewhere(pass, waiting, () => false);
  }
  if (!restoring && !draining && !dropping && !work.later) levelCopies(pass);
}

/**
 * Steps 6 and 7, once leaders are where they go: which copy a leader move drops spreads and levels copies too, and what
 * was moved before would be moved twice or back.
 */
function levelCopies(pass: Pass): void {
  const { view, copyTargets } = pass;
  if ((pass.moving && leadersWantMoves(pass)) || view.handsOver) return;
  if (makeWay(pass, belowTarget(pass))) return;
  const any = (): boolean => true;
  if (zoneStep(view, copyTargets, any) === null && levelStep(view, copyTargets, any) === null) return;
  copyTargets.beginLooking();
  if (isNearLevel(copyTargets)) levelInOrder(pass);
  else levelBySlots(pass);
}

/** Whatever the slots allow, the best first; what a pass has no time for is left to the next. */
function levelBySlots(pass: Pass): void {
  for (const next of [zoneStep, levelStep]) {
    while (pass.copySlotsLeft > 0) {
      const found = next(pass.view, pass.copyTargets, (from, to) => pass.hasSlot(true, from, to));
      if (found === null || !startFollower(pass, found) || pass.copyTargets.isWeary) break;
    }
  }
}

/** Near the end: one move after the other, each foreseen to last; the next waits until slots and room allow it. */
function levelInOrder(pass: Pass): void {
  const { view } = pass;
  const foresight = new Foresight(view, pass.copyTargets);
  while (pass.copySlotsLeft > 0) {
    const move = foresight.next();
    if (move === null || !view.mayStart(move.shard, 'follower') || view.room(move.to) <= 0) break;
    if (!startFollower(pass, move) || pass.copyTargets.isWeary) break;
    foresight.made(move);
  }
}
