import { describe, expect, test } from 'vitest';
import { checkedLimits, DEFAULT_LIMITS } from '../../raft/index.ts';

describe('limits', () => {
  test('the defaults hang together', () => expect(checkedLimits()).toEqual(DEFAULT_LIMITS));

  test('any election timeout may be chosen by itself', () => {
    expect(checkedLimits({ electionTimeoutMs: 60_000 }).snapshotRetryMs).toBe(60_000);
    const short = checkedLimits({ electionTimeoutMs: 20, heartbeatMs: 5 });
    expect(short.failoverJitterMs).toBe(19);
    expect(short.snapshotRetryMs).toBe(DEFAULT_LIMITS.snapshotRetryMs);
  });

  test.each([
    [{ electionTimeoutMs: 299 }, /electionTimeoutMs >= 3 \* heartbeatMs/],
    [{ failoverJitterMs: 1_000 }, /failoverJitterMs < electionTimeoutMs/],
    [{ snapshotRetryMs: 999 }, /snapshotRetryMs >= electionTimeoutMs/],
    [{ maxInflightBytes: 1024 * 1024 - 1 }, /maxInflightBytes >= maxAppendBytes/],
    [{ maxEntryBytes: 17 * 1024 * 1024 }, /maxInflightBytes >= maxEntryBytes/],
    [{ maxUncommittedBytes: 1_000 }, /maxUncommittedBytes >= maxEntryBytes/],
    [{ trailingEntries: 50_001 }, /trailingEntries <= snapshotEveryEntries/],
    [{ maxApplyEntries: 0 }, /maxApplyEntries is 0/],
    [{ heartbeatMs: 1.5 }, /heartbeatMs is 1.5/],
  ])('%o is refused', (given, message) => {
    expect(() => checkedLimits(given)).toThrow(message);
  });
});
