import type { View } from '../view.ts';
import { levelStep } from './level-step.ts';
import { outside, replaced } from './measure.ts';
import type { FollowerMove, MoveCheck } from './step.ts';
import type { CopyTargets } from './targets.ts';
import { vectorTail, vectorTailAfter } from './vector.ts';
import { zoneStep } from './zone-step.ts';

/** How far from the end followers' moves are put in one order, in copies that are not where they should be. */
const HORIZON = 64;
/** Moves that one look ahead may hold: chains and totals come on top of what is out of place. */
const MAX_FORESEEN = 4 * HORIZON;
/** Resources times brokers, up to which quotas are chosen anew for every move that is foreseen; above they stay. */
const MAX_CHOICES = 16_384;
/** Moves passed over for one decision; then the best is made though it is made good later. */
const MAX_PASSED = 16;

/** Whether so few copies are out of place that every move to the end can be foreseen. */
export function isNearLevel(targets: CopyTargets): boolean {
  const { view, faults } = targets;
  const { liveList } = view.brokers;
  let out = faults.zones;
  for (const r of faults.uneven()) {
    if (out > HORIZON) break;
    const { share } = targets.of(r);
    for (const b of liveList) {
      out += outside(view.tally.copiesOf(r, b), share.floor(b), share.ceiling(b));
    }
  }
  return out <= HORIZON && totalsOff(targets) <= MAX_FORESEEN;
}

/** Copies that must go for the totals' sake, if zones and sets allow it. */
function totalsOff(targets: CopyTargets): number {
  const { tally, brokers } = targets.view;
  const { floor, ceiling } = targets.totals();
  let above = 0;
  let below = 0;
  for (const b of brokers.liveList) {
    above += Math.max(0, (tally.copies[b] ?? 0) - (ceiling[b] ?? 0));
    below += Math.max(0, (floor[b] ?? 0) - (tally.copies[b] ?? 0));
  }
  return Math.max(above, below);
}

/**
 * The followers' moves of steps 6 and 7 as they will be, whatever the slots: each on what the one before leaves. A
 * pass starts them in this order, as slots become free, so that what is foreseen comes true; and a move that one of
 * its successors would send back is not made: the next best is.
 */
export class Foresight {
  readonly #future: View;
  readonly #targets: CopyTargets;
  #known: FollowerMove[] | null = null;

  constructor(view: View, targets: CopyTargets) {
    this.#future = view.settled();
    this.#targets = targets;
  }

  next(): FollowerMove | null {
    this.#known ??= sequence(this.#future.settled(), this.#targets, []);
    const passed: FollowerMove[] = [];
    const first = this.#known[0] ?? null;
    while (passed.length < MAX_PASSED && !this.#targets.isWeary) {
      const [best, ...rest] = this.#known;
      if (best === undefined) break;
      if (!rest.some((later) => reverses(later, best))) return best;
      passed.push(best);
      this.#known = sequence(this.#future.settled(), this.#targets, passed);
    }
    if (first !== null) this.#known = null;
    return first;
  }

  /** The move has been started: it counts as made. */
  made(move: FollowerMove): void {
    carryOut(this.#future, move);
    this.#known = this.#known?.[0] === move ? this.#known.slice(1) : null;
  }
}

/** What follows from a view, which is carried along; the first move is none of those passed over, which may become more. */
function sequence(future: View, now: CopyTargets, passed: FollowerMove[]): FollowerMove[] {
  const moves: FollowerMove[] = [];
  const isNew: MoveCheck = (from, to, shard) =>
    !passed.some((move) => move.shard === shard && move.from === from && move.to === to);
  const any = (): boolean => true;
  const targets = now.over(future);
  while (moves.length < MAX_FORESEEN) {
    const isFirst = moves.length === 0 && passed.length > 0;
    const move =
      zoneStep(future, targets, isFirst ? isNew : any) ??
      levelStep(future, targets, any, isFirst ? isNew : undefined);
    if (move === null) break;
    // What is passed over still counts in component (5): a longer chain may not lower it.
    if (isFirst && !lowersTail(targets, move)) {
      passed.push(move);
      if (passed.length === MAX_PASSED) break;
      continue;
    }
    moves.push(move);
    carryOut(future, move);
    // As the pass that will be made then does.
    if (future.resourceCount * future.brokers.count <= MAX_CHOICES) targets.renewQuotas();
  }
  now.looked += targets.looked;
  return moves;
}

function lowersTail(targets: CopyTargets, { shard, from, to }: FollowerMove): boolean {
  const before = vectorTail(targets);
  const after = vectorTailAfter(targets, shard, replaced(targets.view.finished(shard), from, to));
  for (const part of ['zones', 'copies', 'chain', 'totals'] as const) {
    if (after[part] !== before[part]) return after[part] < before[part];
  }
  return false;
}

function reverses(later: FollowerMove, move: FollowerMove): boolean {
  return later.shard === move.shard && later.from === move.to && later.to === move.from;
}

function carryOut(view: View, { shard, from, to }: FollowerMove): void {
  const copies = view.finished(shard).map((b) => (b === from ? to : b));
  view.endMove(shard, view.nextLeader(shard), copies);
}
