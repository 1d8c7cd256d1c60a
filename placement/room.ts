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
  if (view.handsOver()) return true;
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
