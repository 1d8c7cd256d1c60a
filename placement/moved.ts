import type { Assignment, Moved } from './model.ts';
import type { DecidedStep } from './write.ts';
import type { View } from './view.ts';

/** What has moved of the shard once the step is written: finished moves are noted, as long as their phase lasts. */
export function movedBy(
  current: Assignment | undefined,
  { step }: Pick<DecidedStep, 'step'>,
  phase: number,
): Moved | undefined {
  const before = current?.moved?.phase === phase ? current.moved : undefined;
  const move = current?.move;
  if (!move || (step !== 'cutOver' && step !== 'seat')) return before;
  const { from, to } = move;
  const copies = before?.copies ?? [];
  if (step === 'cutOver') return { phase, leader: true, copies };
  if (from === null) return before;
  return { phase, leader: before?.leader ?? false, copies: [...copies, { from, to }] };
}

/** The shard's leadership has moved in this phase, or is on its way, to a broker that it may stay on. */
export function hasLed(view: View, s: number): boolean {
  const next = view.nextLeader(s);
  if (view.brokers.live[next] !== 1) return false;
  return next !== view.leader[s] || movedOf(view, s)?.leader === true;
}

/** The move would take a copy back that a follower's move has brought in this phase. */
export function reverses(view: View, s: number, from: number, to: number): boolean {
  const moved = movedOf(view, s);
  if (moved === undefined || moved.copies.length === 0) return false;
  const [here, there] = [view.brokers.id(from), view.brokers.id(to)];
  return moved.copies.some((copy) => copy.from === there && copy.to === here);
}

function movedOf(view: View, s: number): Moved | undefined {
  const moved = view.rows[s]?.moved;
  return moved?.phase === view.phase ? moved : undefined;
}
