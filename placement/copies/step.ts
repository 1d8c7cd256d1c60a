import { timesFailed } from '../failures.ts';
import type { View } from '../view.ts';
import type { CopyTargets } from './targets.ts';
import { copiesIn } from './zones.ts';

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

/** Live brokers that could not take the copy that leaves `from` (NONE: one more) at all, and by what. */
export function rejectedFor(
  view: View,
  targets: CopyTargets,
  { shard, from, to: chosen }: { readonly shard: number; readonly from: number; readonly to: number },
): Rejected[] {
  const rejected: Rejected[] = [];
  const { brokers } = view;
  const r = view.resource(shard);
  const rest = view.finished(shard).filter((b) => b !== from);
  for (const b of brokers.liveList) {
    if (rejected.length === MAX_REJECTED) break;
    if (b === chosen) continue;
    if (view.holds(shard, b)) {
      rejected.push({ broker: brokers.id(b), by: 'holds a copy' });
      continue;
    }
    if (view.room(b) <= 0) {
      rejected.push({ broker: brokers.id(b), by: capText(view, b) });
      continue;
    }
    const failed = timesFailed(view, shard, b);
    if (failed > 0) {
      rejected.push({ broker: brokers.id(b), by: `${failed} of its moves there failed` });
      continue;
    }
    const zone = brokers.zone[b] ?? 0;
    if (copiesIn(view, rest, zone) >= targets.limit(r, zone)) {
      rejected.push({
        broker: brokers.id(b),
        by: `zone ${brokers.zoneNames[zone] ?? ''} is at its limit of ${targets.limit(r, zone)}`,
      });
    }
  }
  return rejected;
}

/** `a1 at maxShards 2`. */
export function capText(view: View, b: number): string {
  return `at maxShards ${view.brokers.cap[b]}`;
}
