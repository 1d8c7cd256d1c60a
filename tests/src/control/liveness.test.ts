import { describe, expect, it } from 'vitest';
import { checkTimings, DEFAULT_BROKER_TIMINGS } from '../../../src/control/index.ts';

describe('timings', () => {
  it('take the defaults', () => expect(() => checkTimings(DEFAULT_BROKER_TIMINGS)).not.toThrow());

  it('refuse a lease that drift could carry past the promotion', () => {
    const timings = { ...DEFAULT_BROKER_TIMINGS, leaseMs: 6_436 };
    expect(() => checkTimings(timings)).toThrow(/leaseMs 6436 plus 1 % of drift must stay below/);
    expect(() => checkTimings({ ...timings, leaseMs: 6_435 })).not.toThrow();
  });

  it('refuse a heartbeat that does not fit twice into a lease, and what is no time', () => {
    expect(() => checkTimings({ ...DEFAULT_BROKER_TIMINGS, heartbeatMs: 2_001 })).toThrow(/must fit twice/);
    expect(() => checkTimings({ ...DEFAULT_BROKER_TIMINGS, marginMs: 0 })).toThrow(
      /marginMs must be above 0/,
    );
    expect(() => checkTimings({ ...DEFAULT_BROKER_TIMINGS, expiryMs: Number.NaN })).toThrow(/expiryMs/);
  });
});
