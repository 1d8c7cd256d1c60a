import { NO_CAP, NONE } from './broker-table.ts';
import { holdsTooMany, levelStep, zoneFault, zoneStep } from './copies/index.ts';
import { startFollower } from './copy-start.ts';
import { fullTargets } from './drain.ts';
import type { Pass } from './pass.ts';
import type { View } from './view.ts';

/**
 * Where something waits for room on `brokers`, followers that are to leave the full ones anyway go first: what comes
 * changes who should hold how much, and moves made before would be made good. Answers whether the steps that follow wait
 * for it.
 */
export function makeWay(pass: Pass, brokers: Iterable<number>): boolean {
  const { view, copyTargets } = pass;
  const full = new Set([...brokers].filter((b) => view.room(b) <= 0));
  if (full.size === 0) return false;
  const leaving = leavingCopies(view);
  if ([...full].some((b) => view.room(b) + (leaving[b] ?? 0) > 0)) return true;
  const crowded = new Set([...full].filter((b) => copiesLeave(pass, b)));
  if (crowded.size === 0) return false;
  if (view.handsOver) return true;
  const leaves = (from: number, to: number): boolean => crowded.has(from) && !full.has(to);
  const free = (from: number, to: number): boolean => leaves(from, to) && pass.hasSlot(true, from, to);
  const slot = (from: number, to: number): boolean => pass.hasSlot(true, from, to);
  const move =
    zoneStep(view, copyTargets, free) ??
    levelStep(view, copyTargets, slot, leaves) ??
    levelStep(view, copyTargets, free);
  if (move !== null) return startFollower(pass, move);
  return (
    pass.moving && (zoneStep(view, copyTargets, leaves) ?? levelStep(view, copyTargets, leaves)) !== null
  );
}

/**
 * Some live broker may find no room under its cap on the way to level: what it holds, the leaderships it is to take and the
 * copies that are still to be made come to more. As the pass stands once its leaders are placed.
 */
export function mayRunShort(pass: Pass): boolean {
  const { view } = pass;
  const { brokers } = view;
  const capped = [...brokers.liveList].filter((b) => brokers.cap[b] !== NO_CAP);
  if (capped.length === 0) return false;
  const short = shortShards(view);
  return capped.some((b) => {
    const room = view.room(b) - leadersDue(pass, b);
    // Each of them may want one copy on it, but for those it holds.
    return room < short.length && room < short.filter((s) => !view.holds(s, b)).length;
  });
}

/** Shards that nobody leads yet, and those with fewer copies on live brokers than they are to have. */
function shortShards(view: View): number[] {
  const short: number[] = [];
  for (let s = 0; s < view.shardCount; s++) {
    const { live } = view.brokers;
    const kept = view.finished(s).reduce((sum, b) => sum + (live[b] ?? 0), 0);
    if (view.leader[s] === NONE || kept < view.factor(view.resource(s))) short.push(s);
  }
  return short;
}

function leadersDue({ view, targets }: Pass, b: number): number {
  if (targets.settled) return 0;
  let due = 0;
  for (let r = 0; r < view.resourceCount; r++)
    due += Math.max(0, targets.of(r, b) - view.tally.leadersOf(r, b));
  return due;
}

/** By broker: the copies that go once every move in flight has finished. */
function leavingCopies(view: View): Int32Array {
  const leaving = new Int32Array(view.brokers.count);
  for (let s = 0; s < view.shardCount; s++) {
    if (view.move(s) === null) continue;
    const stay = view.finished(s);
    for (const b of view.copies(s)) if (!stay.includes(b)) leaving[b] = (leaving[b] ?? 0) + 1;
  }
  return leaving;
}

/** Copies are to leave the broker: it holds more than its part, or one that is over its zone's limit. */
function copiesLeave({ view, copyTargets }: Pass, b: number): boolean {
  if (holdsTooMany(view, copyTargets, b)) return true;
  for (let s = 0; s < view.shardCount; s++) {
    const set = view.finished(s);
    if (view.counts[s] === 1 && set.includes(b) && zoneFault(view, copyTargets, view.resource(s), set) > 0)
      return true;
  }
  return false;
}

/** Live brokers that lead fewer of some resource than their target. */
export function belowTarget({ view, targets }: Pass): number[] {
  if (targets.settled || !targets.bounded) return [];
  return [...view.brokers.liveList].filter((b) => {
    for (let r = 0; r < view.resourceCount; r++) {
      if (view.tally.leadersOf(r, b) < targets.of(r, b)) return true;
    }
    return false;
  });
}

/** Brokers that are the full targets of waiting leaderships. */
export function awaited(pass: Pass, waiting: readonly number[]): number[] {
  return waiting.filter((s) => pass.view.mayStart(s, 'leader')).flatMap((s) => fullTargets(pass, s));
}
