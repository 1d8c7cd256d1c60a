import type { MoveRole, MoveStep, Reason } from './model.ts';

/** A move in flight, by index. `from` and `drops` are NONE where no copy leaves. */
export interface ShardMove {
  readonly role: MoveRole;
  readonly step: MoveStep;
  readonly reason: Reason;
  readonly from: number;
  readonly to: number;
  readonly drops: number;
  readonly copied: boolean;
  readonly startedAtMs: number;
  readonly progressAtMs: number;
}
