import type { View } from '../view.ts';

/** A follower that an optional step moves. */
export interface FollowerMove {
  readonly shard: number;
  readonly from: number;
  readonly to: number;
  readonly reason: 'zone' | 'level';
  /** Which rule decided; a stable code. */
  readonly rule: string;
  readonly detail: string;
  readonly rejected: readonly Rejected[];
  readonly runnerUp: string | null;
}

export interface Rejected {
  readonly broker: string;
  readonly by: string;
}

/** Whether the slots allow a copy out of `from` into `to` now. */
export type SlotCheck = (from: number, to: number) => boolean;

/** Whether a follower of the shard may start to move now. */
export type MoveCheck = (from: number, to: number, shard: number) => boolean;

/** Brokers named in one decision. */
const MAX_REJECTED = 16;

/** Live brokers that could not take a copy of the shard at all, and by what. */
export function rejectedFor(view: View, shard: number, chosen: number): Rejected[] {
  const rejected: Rejected[] = [];
  const { brokers } = view;
  for (const b of brokers.liveList) {
    if (rejected.length === MAX_REJECTED) break;
    if (b === chosen) continue;
    if (view.holds(shard, b)) rejected.push({ broker: brokers.id(b), by: 'holds a copy' });
    else if (view.room(b) <= 0) rejected.push({ broker: brokers.id(b), by: capText(view, b) });
  }
  return rejected;
}

/** `a1 at maxShards 2`. */
export function capText(view: View, b: number): string {
  return `at maxShards ${view.brokers.cap[b]}`;
}
