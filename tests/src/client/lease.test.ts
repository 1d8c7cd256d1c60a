import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Lease } from '../../../src/client/index.ts';
import { checkTimings, type BrokerTimings } from '../../../src/control/index.ts';
import { MAX_CLOCK_DRIFT, silenceUntilFreeMs } from '../../../src/control/timings.ts';

/** A machine's clocks after real time has passed, part of which it slept. */
class Machine {
  monotonicMs = 5_000;
  wallMs = 1_700_000_000_000;
  readonly clock = {
    now: () => this.monotonicMs,
    wallNow: () => this.wallMs,
    setTimeout: () => ({}),
    clearTimeout: () => {},
    defer: () => {},
  };

  /** Rates are ms of the clock a real ms; the monotonic clock stands still in sleep. */
  pass(realMs: number, { sleptMs = 0, monotonicRate = 1, wallRate = 1 } = {}): void {
    this.monotonicMs += (realMs - sleptMs) * monotonicRate;
    this.wallMs += realMs * wallRate;
  }
}

const accepts = (timings: BrokerTimings): boolean => {
  try {
    checkTimings(timings);
    return true;
  } catch {
    return false;
  }
};

/** The least expiry that is accepted with these. */
function leastExpiryMs(rest: Omit<BrokerTimings, 'expiryMs'>): number {
  let [refused, accepted] = [0, 1_000_000];
  while (accepted - refused > 1) {
    const expiryMs = Math.floor((refused + accepted) / 2);
    if (accepts({ ...rest, expiryMs })) accepted = expiryMs;
    else refused = expiryMs;
  }
  return accepted;
}

describe('a lease', () => {
  it('runs from the sending of the heartbeat, whenever its answer comes', () => {
    const machine = new Machine();
    const lease = new Lease(machine.clock);
    const sentAt = lease.moment();
    machine.pass(3_000);
    lease.renew(sentAt, { leaseMs: 4_000, marginMs: 500 });
    machine.pass(999);
    expect(lease.isValid()).toBe(true);
    machine.pass(1);
    expect(lease.isValid()).toBe(false);
  });

  it('is not shortened by the answer to an earlier heartbeat that comes after that to a later one', () => {
    const machine = new Machine();
    const lease = new Lease(machine.clock);
    const first = lease.moment();
    machine.pass(1_000);
    lease.renew(lease.moment(), { leaseMs: 4_000, marginMs: 500 });
    lease.renew(first, { leaseMs: 4_000, marginMs: 500 });
    machine.pass(3_999);
    expect(lease.isValid()).toBe(true);
    machine.pass(1);
    expect(lease.isValid()).toBe(false);
  });

  it('is over once the machine has slept for more than the margin that the cluster gave with it', () => {
    const machine = new Machine();
    const lease = new Lease(machine.clock);
    lease.renew(lease.moment(), { leaseMs: 4_000, marginMs: 200 });
    machine.pass(200, { sleptMs: 200 });
    expect(lease.isValid()).toBe(true);
    machine.pass(1, { sleptMs: 1 });
    expect(lease.isValid()).toBe(false);
  });

  it('under timings that are accepted has ended, on clocks within the drift and however long the machine slept, when others may lead', () => {
    const rate = fc.double({ min: 1 / (1 + MAX_CLOCK_DRIFT), max: 1 + MAX_CLOCK_DRIFT, noNaN: true });
    const given = fc.record({
      leaseMs: fc.integer({ min: 2, max: 60_000 }),
      marginMs: fc.integer({ min: 1, max: 10_000 }),
      sleptPart: fc.double({ min: 0, max: 1, noNaN: true }),
      monotonicRate: rate,
      wallRate: rate,
    });
    const worst = { sleptPart: 0.077, monotonicRate: 1, wallRate: 1 };
    fc.assert(
      fc.property(given, ({ leaseMs, marginMs, sleptPart, monotonicRate, wallRate }) => {
        const expiryMs = leastExpiryMs({ heartbeatMs: 1, leaseMs, marginMs });
        const freeMs = silenceUntilFreeMs({ heartbeatMs: 1, leaseMs, marginMs, expiryMs });
        // The sleep that the client notices least: what is left of the time over what the lease takes.
        for (const sleptMs of [sleptPart * freeMs, Math.max(0, freeMs - (leaseMs - 0.5) / monotonicRate)]) {
          const machine = new Machine();
          const lease = new Lease(machine.clock);
          lease.renew(lease.moment(), { leaseMs, marginMs });
          machine.pass(freeMs, { sleptMs, monotonicRate, wallRate });
          expect(lease.isValid()).toBe(false);
        }
      }),
      { numRuns: 500, examples: [[{ leaseMs: 6_400, marginMs: 500, ...worst }]] },
    );
  });
});
