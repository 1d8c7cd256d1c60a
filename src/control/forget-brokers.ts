import { MAX_BROKERS } from '../command/index.ts';
import type { BrokerRow, StateView } from '../state/index.ts';
import { silenceUntilFreeMs, type BrokerTimings } from './timings.ts';

/** How long a broker that is down or has left stays listed once no assignment names it, ms of cluster time. */
export const FORGET_BROKER_AFTER_MS = 3_600_000;
/** With more brokers than this, those that are gone are forgotten as soon as no lease of theirs can run. */
const CROWDED_BROKERS = MAX_BROKERS * 0.75;
/** Brokers of one call: each is an entry of the log. */
export const MAX_FORGOTTEN_AT_ONCE = 64;

/**
 * Lists the brokers to forget: gone for `FORGET_BROKER_AFTER_MS`, not drained, and named by no assignment. Without this, processes
 * that register under random names fill the cluster's limit, and no new broker can register.
 *
 * @param nowMs cluster time, ms
 * @returns at most `MAX_FORGOTTEN_AT_ONCE` rows, in no order
 */
export function brokersToForget(
  state: Pick<StateView, 'brokers' | 'copies'>,
  nowMs: number,
  timings: BrokerTimings,
): readonly BrokerRow[] {
  const isCrowded = state.brokers.size > CROWDED_BROKERS;
  const afterMs = isCrowded ? silenceUntilFreeMs(timings) : FORGET_BROKER_AFTER_MS;
  const found: BrokerRow[] = [];
  for (const row of state.brokers.values()) {
    if (found.length === MAX_FORGOTTEN_AT_ONCE) break;
    const isGone = row.lifecycle === 'down' || row.lifecycle === 'left';
    // A drain is an operator's intent, which outlives every absence.
    if (isGone && !row.drain && !state.copies.has(row.id) && forgetAtMs(row, afterMs) <= nowMs)
      found.push(row);
  }
  return found;
}

/** When a broker that is gone is forgotten if nothing names it, cluster time, ms. */
export function forgetAtMs(row: BrokerRow, afterMs = FORGET_BROKER_AFTER_MS): number {
  return (row.downSinceMs ?? row.registeredAtMs) + afterMs;
}
