import type { Policy } from './model.ts';
import type { ShardReport } from './plan-types.ts';

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
