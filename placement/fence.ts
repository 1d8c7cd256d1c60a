import type { Policy } from './model.ts';
import type { ShardReport } from './plan-types.ts';
import type { View } from './view.ts';

/** The part of `fenceTimeoutMs` that what is missing may take at the measured rate: nobody serves the shard meanwhile. */
const FENCED_PART = 0.5;

/**
 * A destination that is not in sync yet is near enough for the fence: it lacks at most `fenceMaxLagRecords`, and at the rate
 * at which records reached it lately it has them within half of `fenceTimeoutMs`. Where no rate is known yet it must lack nothing.
 */
export function isNearEnough(
  { lagRecords, copiedPerSecond }: Pick<ShardReport, 'lagRecords' | 'copiedPerSecond'>,
  { fenceMaxLagRecords, fenceTimeoutMs }: Pick<Policy, 'fenceMaxLagRecords' | 'fenceTimeoutMs'>,
): boolean {
  if (lagRecords === null || lagRecords > fenceMaxLagRecords) return false;
  const seconds = (fenceTimeoutMs * FENCED_PART) / 1_000;
  return lagRecords <= (copiedPerSecond ?? 0) * seconds;
}

/** The fenced leader has drained, and the destination holds all of it, may lead and is heard. */
export function canCutOver(view: View, s: number): boolean {
  const move = view.move(s);
  const report = view.report(s);
  if (move?.step !== 'fenced' || report?.drained !== true || report.destinationRenewed === true) return false;
  return view.isInSync(s, move.to) && view.brokers.live[move.to] === 1 && view.isHeard(move.to);
}

/** The leader has not confirmed in time; who has served the shard. `null`: it has, or has time left. */
export function unconfirmedLeader(view: View, s: number): 'never' | 'before' | 'leader' | null {
  const rows = view.reports.unconfirmed;
  return rows.size === 0 ? null : (rows.get(view.shardKey(s)) ?? null);
}
