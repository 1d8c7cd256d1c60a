import type { Broker, Failure } from './model.ts';
import type { View } from './view.ts';

/** Most destinations that a shard's row remembers; the oldest failure is dropped. */
export const MAX_FAILURES = 4;
/** After so many failed moves to one destination the shard is not sent there while they count. */
export const MOST_TRIES = 2;
/** How long a failure counts, ms. */
const COUNTS_FOR_MS = 3_600_000;

/** The failures of a shard with one more, the latest last. */
export function withFailure(failures: readonly Failure[], to: string, atMs: number): readonly Failure[] {
  const times = (failures.find((failure) => failure.to === to)?.times ?? 0) + 1;
  const others = failures.filter((failure) => failure.to !== to);
  return [...others, { to, times, atMs }].slice(-MAX_FAILURES);
}

/** The failures that still count: of a broker that has not registered since, and within the hour. */
export function failuresOf(view: View, s: number): readonly Failure[] {
  const failures = view.rows[s]?.failures;
  if (failures === undefined) return [];
  return failures.filter(({ to, atMs }) => {
    return failureCounts(atMs, view.brokers.rows[view.brokers.find(to)], view.nowMs);
  });
}

/** Whether a failed move to a broker still counts at a cluster time, ms. */
export function failureCounts(
  atMs: number,
  broker: Pick<Broker, 'registeredAtMs'> | undefined,
  nowMs: number,
): boolean {
  return broker !== undefined && broker.registeredAtMs <= atMs && nowMs < atMs + COUNTS_FOR_MS;
}

/** How often a move of the shard to the broker failed, as far as it counts. */
export function timesFailed(view: View, s: number, b: number): number {
  if (view.rows[s]?.failures === undefined) return 0;
  return failuresOf(view, s).find(({ to }) => to === view.brokers.id(b))?.times ?? 0;
}

/** No move of the shard goes to the broker while its failures count. */
export function isBarred(view: View, s: number, b: number): boolean {
  return timesFailed(view, s, b) >= MOST_TRIES;
}

/** Of the brokers, those to which no move of the shard failed; where there are none, those to which it may be tried again. */
export function leastFailed(view: View, s: number, brokers: readonly number[]): readonly number[] {
  if (view.rows[s]?.failures === undefined) return brokers;
  const unfailed = brokers.filter((b) => timesFailed(view, s, b) === 0);
  return unfailed.length > 0 ? unfailed : brokers.filter((b) => !isBarred(view, s, b));
}

/** When the first of a shard's failures ceases to count; `null`: none counts. */
export function failuresEndMs(view: View, s: number): number | null {
  const [first] = failuresOf(view, s);
  return first === undefined ? null : first.atMs + COUNTS_FOR_MS;
}

/** Why none of the brokers, all barred, is given the shard. */
export function barredText(view: View, s: number, brokers: readonly number[]): string {
  const told = brokers.map((b) => `${timesFailed(view, s, b)} to ${view.brokers.id(b)}`).join(', ');
  return `its moves failed: ${told}; each is tried again once its broker has registered anew or an hour has passed`;
}
