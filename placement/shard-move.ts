import type { BrokerTable } from './broker-table.ts';
import type { Move, MoveRole, MoveStep, Reason } from './model.ts';

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

/** A row's move. Throws where the table lacks the broker that it goes to. */
export function shardMove(move: Move, brokers: BrokerTable): ShardMove {
  return {
    role: move.role,
    step: move.step,
    reason: move.reason,
    from: brokers.find(move.from),
    to: brokers.indexOf(move.to),
    drops: brokers.find(move.drops),
    copied: move.copied,
    startedAtMs: move.startedAtMs,
    progressAtMs: move.progressAtMs,
  };
}
