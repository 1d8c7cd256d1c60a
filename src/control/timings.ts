/** How long silence may last before it means something. All in ms. */
export interface BrokerTimings {
  /** How often a broker says that it lives. */
  readonly heartbeatMs: number;
  /** How long a broker may serve after it sent a heartbeat that was answered. */
  readonly leaseMs: number;
  /** Silence after which, with `marginMs` more, a broker is declared down. */
  readonly expiryMs: number;
  /** Also how far a broker lets its wall and monotonic clock drift apart before its lease is over. */
  readonly marginMs: number;
}

export const DEFAULT_BROKER_TIMINGS: BrokerTimings = {
  heartbeatMs: 1_000,
  leaseMs: 4_000,
  expiryMs: 6_000,
  marginMs: 500,
};

/** How much faster or slower than another machine's a machine's clocks may run. */
export const MAX_CLOCK_DRIFT = 0.01;

/**
 * The arithmetic of leases, asserted at start: a lease that began when a heartbeat was sent has ended, on any
 * clock within the drift, before anyone else may lead. A broker whose machine slept lets `marginMs` pass beyond
 * `leaseMs` before it notices. Throws what the operator has to change.
 */
export function checkTimings(timings: BrokerTimings): void {
  const { heartbeatMs, leaseMs, expiryMs, marginMs } = timings;
  for (const [name, value] of Object.entries({ heartbeatMs, leaseMs, expiryMs, marginMs })) {
    if (!Number.isFinite(value) || value <= 0) throw new Error(`${name} must be above 0, not ${value}`);
  }
  if ((leaseMs + marginMs) * (1 + MAX_CLOCK_DRIFT) >= expiryMs + marginMs) {
    throw new Error(
      `leaseMs ${leaseMs} + marginMs ${marginMs}, with 1 % of drift, must stay below expiryMs ${expiryMs} + marginMs ${marginMs}: ` +
        'lower leaseMs or raise expiryMs',
    );
  }
  if (heartbeatMs * 2 > leaseMs) {
    throw new Error(
      `heartbeatMs ${heartbeatMs} must fit twice into leaseMs ${leaseMs}, or one lost beat ends a lease`,
    );
  }
}

/** From a broker's last sign of life until nothing it leads can still be served by it, ms. */
export function silenceUntilFreeMs(timings: BrokerTimings): number {
  return timings.expiryMs + timings.marginMs;
}
