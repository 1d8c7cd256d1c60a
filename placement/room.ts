import { holdsTooMany, levelStep } from './copies/index.ts';
import { startFollower } from './copy-start.ts';
import { fullTargets } from './drain.ts';
import type { Pass } from './pass.ts';

/**
 * Where something waits for room on `brokers`, followers that are to leave the full ones anyway go first: what comes
 * changes who should hold how much, and moves made before would be made good. Answers whether the steps that follow wait
 * for it.
 */
export function makeWay(pass: Pass, brokers: Iterable<number>): boolean {
  const { view, copyTargets } = pass;
  const full = new Set([...brokers].filter((b) => view.room(b) <= 0));
  if (full.size === 0) return false;
  if ([...full].some((b) => view.settledRoom(b) > 0)) return true;
  const crowded = new Set([...full].filter((b) => holdsTooMany(view, copyTargets, b)));
  if (crowded.size === 0) return false;
  if (view.handsOver()) return true;
  const leaves = (from: number, to: number): boolean => crowded.has(from) && !full.has(to);
  const slot = (from: number, to: number): boolean => pass.hasSlot(true, from, to);
  const direct = levelStep(view, copyTargets, slot, leaves);
  if (direct !== null) return startFollower(pass, direct);
  const link = levelStep(view, copyTargets, (from, to) => leaves(from, to) && slot(from, to));
  if (link !== null) return startFollower(pass, link);
  return pass.moving && levelStep(view, copyTargets, leaves) !== null;
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

/** The full target of some waiting leadership will not stay full, and the next pass will know more. */
export function roomComes(pass: Pass, waiting: readonly number[]): boolean {
  const { view, copyTargets } = pass;
  if (!pass.moving) return false;
  const full = new Set(waiting.filter((s) => view.free(s)).flatMap((s) => fullTargets(pass, s)));
  return [...full].some((b) => view.settledRoom(b) > 0 || holdsTooMany(view, copyTargets, b));
}
