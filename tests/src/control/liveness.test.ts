import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../../raft/support/virtual-clock.ts';
import { brokerRow } from '../apply/harness.ts';
import { Liveness } from '../../../src/control/liveness.ts';
import type { BrokerRow } from '../../../src/state/index.ts';
import { checkTimings, DEFAULT_BROKER_TIMINGS } from '../../../src/control/index.ts';

describe('timings', () => {
  it('take the defaults', () => expect(() => checkTimings(DEFAULT_BROKER_TIMINGS)).not.toThrow());

  it('refuse a lease that drift could carry past the promotion', () => {
    const timings = { ...DEFAULT_BROKER_TIMINGS, leaseMs: 5_936 };
    expect(() => checkTimings(timings)).toThrow(
      /leaseMs 5936 \+ marginMs 500, with 1 % of drift, must stay below expiryMs 6000/,
    );
    expect(() => checkTimings({ ...timings, leaseMs: 5_935 })).not.toThrow();
  });

  it('refuse a heartbeat that does not fit twice into a lease, and what is no time', () => {
    expect(() => checkTimings({ ...DEFAULT_BROKER_TIMINGS, heartbeatMs: 2_001 })).toThrow(/must fit twice/);
    expect(() => checkTimings({ ...DEFAULT_BROKER_TIMINGS, marginMs: 0 })).toThrow(
      /marginMs must be above 0/,
    );
    expect(() => checkTimings({ ...DEFAULT_BROKER_TIMINGS, expiryMs: Number.NaN })).toThrow(/expiryMs/);
  });
});

describe('silence', () => {
  async function silentAfterMs(imported: boolean): Promise<number> {
    const clock = new VirtualClock();
    const liveness = new Liveness(clock, DEFAULT_BROKER_TIMINGS);
    const row = { ...brokerRow('b1'), imported };
    const began = clock.now();
    while (!liveness.isSilent(row)) {
      await clock.advance(liveness.tickMs);
      liveness.tick();
    }
    return clock.now() - began;
  }

  it('of a registered broker is long enough after expiry and margin', async () => {
    expect(await silentAfterMs(false)).toBe(6_500);
  });

  it('of one that only a cluster file knows leaves it time to be started', async () => {
    expect(await silentAfterMs(true)).toBe(60_000);
  });
});

function registered(): BrokerRow {
  const kept = { addresses: {}, labels: {}, storeId: null, starts: null, revision: 1 };
  return { ...brokerRow('b1'), ...kept, imported: false };
}

describe('the session of a broker', () => {
  it('is over when its connection closes, until the broker is heard on another', () => {
    const liveness = new Liveness(new VirtualClock(), DEFAULT_BROKER_TIMINGS);
    const row = registered();
    liveness.heard('b1', row.incarnation, { term: 1, n: 1 });
    expect(liveness.sessionLives(row)).toBe(true);
    liveness.disconnected('b1', row.incarnation, { term: 1, n: 1 });
    expect(liveness.sessionLives(row)).toBe(false);
    expect(liveness.unheard([row])).toEqual(['b1']);
    liveness.heard('b1', row.incarnation, { term: 1, n: 2 });
    expect(liveness.sessionLives(row)).toBe(true);
    expect(liveness.unheard([row])).toEqual([]);
    // The old connection's end comes late.
    liveness.disconnected('b1', row.incarnation, { term: 1, n: 1 });
    expect(liveness.sessionLives(row)).toBe(true);
  });
});

it('a stall of this process is no silence of the brokers', async () => {
  const clock = new VirtualClock();
  const liveness = new Liveness(clock, DEFAULT_BROKER_TIMINGS);
  const row = registered();
  liveness.heard('b1', row.incarnation, { term: 1, n: 1 });
  await clock.advance(20_000);
  expect(liveness.isSilent(row)).toBe(false);
  liveness.tick();
  expect(liveness.isSilent(row)).toBe(false);
});
