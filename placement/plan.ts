import { conflicts, levelStep, unspread, zoneStep } from './copies/index.ts';
import { startCopyMove, whyOf } from './copy-start.ts';
import { drainCopies, drainLeaders } from './drain.ts';
import { admitNew, placeAll } from './first-placement.ts';
import { LeaderMoves } from './leader-moves.ts';
import { levelLeaders } from './level.ts';
import { levelsOf } from './levels.ts';
import { leadersWantMoves, minimumLeaderMoves } from './minimum.ts';
import { abandonMoves, finishMoves } from './moves.ts';
import { Pass } from './pass.ts';
import type { Levels, Plan, Reports, Snapshot } from './plan-types.ts';
import { findLost, promoteLost } from './promote.ts';
import { dropSurplus, findCopyWork, restoreCopies, type CopyWork } from './restore.ts';
import { leaderTargets } from './targets.ts';
import { View } from './view.ts';

/**
 * One pass over a snapshot: what should be written next, in order, and why. Pure: the same input gives the same plan
 * on every machine, whatever the order of its rows. A settled cluster yields no steps.
 */
export function plan(snapshot: Snapshot, reports: Reports): Plan {
  const view = new View(snapshot, reports);
  const pass = new Pass(view);
  assignLeaders(pass);
  const minimum = minimumLeaderMoves(pass);
  finishMoves(pass);
  if (!view.policy.paused) startMoves(pass);
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
  abandonMoves(pass);
  const fresh = admitNew(pass);
  const unled = new Int32Array(view.resourceCount);
  for (const s of [...fresh, ...lost.ephemeral]) unled[view.resource(s)] = (unled[view.resource(s)] ?? 0) + 1;
  promoteLost(pass, lost, unled);
  pass.targets = leaderTargets(view, book, unled);
  placeAll(pass, fresh, lost.ephemeral);
}

/** Steps 2 to 7. Shards whose moves keep failing are at the back: all others have their turn first. */
function startMoves(pass: Pass): void {
  const { view } = pass;
  const work = findCopyWork(pass);
  const failures = new Set([0]);
  for (let s = 0; s < view.shardCount; s++) failures.add(view.failedMoves(s));
  for (const limit of [...failures].sort((a, b) => a - b)) {
    view.failedLimit = limit;
    startInOrder(pass, work);
  }
}

function startInOrder(pass: Pass, work: CopyWork): void {
  const moves = new LeaderMoves(pass);
  drainLeaders(pass, moves, work.drainLeaders);
  drainCopies(pass, work.drainCopies);
  dropSurplus(pass, work.surplus);
  const restoring = restoreCopies(pass, work.restore);
  levelLeaders(pass, moves);
  if (!restoring) levelCopies(pass);
}

/** Steps 6 and 7; the latter once leaders are where they go: which copy a leader move drops levels copies too. */
function levelCopies(pass: Pass): void {
  const { view } = pass;
  const unsettled = pass.moving && leadersWantMoves(pass);
  const ok = (from: number, to: number): boolean => pass.hasSlot(true, from, to);
  for (const next of unsettled ? [zoneStep] : [zoneStep, levelStep]) {
    while (pass.copySlotsLeft > 0) {
      const found = next(view, pass.copyTargets, ok);
      if (found === null) break;
      const { shard, from, to, reason } = found;
      if (!startCopyMove(pass, { shard, from, to, reason, why: whyOf(found), optional: true })) break;
    }
  }
}
