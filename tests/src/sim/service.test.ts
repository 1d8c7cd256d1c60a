import { describe, expect, it } from 'vitest';
import { ServiceChecks } from '../../../src/sim/service-checks.ts';

const SHARD = 'stream:s/0';
const view = (nowMs: number, well: readonly string[], inSync: readonly string[] | null) => ({
  nowMs,
  shards: inSync === null ? null : [{ shard: SHARD, inSync }],
  isWell: (broker: string) => well.includes(broker),
});

describe('ServiceChecks', () => {
  it('a shard that takes no write for too long while a copy in sync is well', () => {
    const checks = new ServiceChecks();
    expect(checks.look(view(0, ['b1'], ['b1', 'b2']))).toEqual([]);
    expect(checks.look(view(20_000, ['b2'], ['b1', 'b2']))).toEqual([SHARD]);
    expect(() => checks.look(view(36_000, ['b2'], ['b1', 'b2']))).toThrow(
      'unserved: stream:s/0 has taken no write for 36000 ms, though b2 of in sync [b1, b2] is well',
    );
  });

  it('begins again with each write, and whenever no well copy is in sync or no leader works', () => {
    const checks = new ServiceChecks();
    checks.look(view(0, ['b1'], ['b1']));
    checks.served(SHARD);
    checks.look(view(30_000, ['b1'], ['b1']));
    expect(checks.look(view(60_000, ['b1'], ['b1']))).toEqual([SHARD]);
    expect(checks.look(view(61_000, ['b2'], ['b1']))).toEqual([]);
    checks.look(view(62_000, ['b1'], ['b1']));
    expect(checks.look(view(90_000, ['b1'], null))).toEqual([]);
    checks.look(view(91_000, ['b1'], ['b1']));
    expect(checks.look(view(120_000, ['b1'], ['b1']))).toEqual([SHARD]);
  });

  it('cluster time that stands still under a leader that works', () => {
    const checks = new ServiceChecks();
    checks.lookAtTime(0, 5);
    checks.lookAtTime(9_000, 6);
    checks.lookAtTime(18_000, 6);
    checks.lookAtTime(19_000, null);
    checks.lookAtTime(20_000, 6);
    checks.lookAtTime(30_000, 6);
    expect(() => checks.lookAtTime(30_001, 6)).toThrow('unserved: cluster time stands still at 6');
  });
});
