import { describe, expect, it } from 'vitest';
import { RecordChecks } from '../../../src/sim/record-checks.ts';

describe('RecordChecks', () => {
  it('takes records in their places, and reads of them', () => {
    const checks = new RecordChecks();
    checks.acknowledged('s', 0, 'a', 'b1');
    checks.acknowledged('s', 1, 'b', 'b1');
    checks.read(
      's',
      {
        records: [
          { offset: 0, value: 'a' },
          { offset: 1, value: 'b' },
        ],
        end: 2,
      },
      2,
      'b2',
    );
    expect(checks.count).toBe(2);
  });

  it('expects nothing more of a shard that is lost', () => {
    const checks = new RecordChecks();
    for (const shard of ['s', 't']) checks.acknowledged(shard, 0, 'a', 'b1');
    checks.lose('s');
    expect([checks.acknowledgedEnd('s'), checks.acknowledgedEnd('t')]).toEqual([0, 1]);
    checks.read('s', { records: [], end: 0 }, 1, 'b2');
    checks.acknowledged('s', 0, 'b', 'b2');
    checks.copy('s', [], 'b2');
    expect(() => checks.copy('t', [], 'b2')).toThrow('unsafe');
  });

  it('expects nothing at all once every shard was begun again', () => {
    const checks = new RecordChecks();
    checks.acknowledged('s/0', 0, 'a', 'b1');
    checks.loseAll();
    checks.read('s/0', { records: [], end: 0 }, 1, 'b1');
    checks.acknowledged('s/1', 0, 'b', 'b1');
    expect(checks.acknowledgedEnd('s/1')).toBe(0);
  });

  it('two records at one offset, of one shard only', () => {
    const checks = new RecordChecks();
    checks.acknowledged('s', 0, 'a', 'b1');
    checks.acknowledged('t', 0, 'b', 'b1');
    expect(() => checks.acknowledged('s', 0, 'b', 'b2')).toThrow('s has b at 0 on b2, and had a');
  });

  it('a read that misses what was acknowledged before it, or shows another record', () => {
    const checks = new RecordChecks();
    checks.acknowledged('s', 0, 'a', 'b1');
    const leastEnd = checks.acknowledgedEnd('s');
    expect(() => checks.read('s', { records: [], end: 0 }, leastEnd, 'b2')).toThrow(
      'up to 0, 1 was acknowledged',
    );
    const other = { records: [{ offset: 0, value: 'z' }], end: 1 };
    expect(() => checks.read('s', other, leastEnd, 'b2')).toThrow('s has z at 0 on b2, and had a');
  });

  it('a copy that lacks what was acknowledged, or has another record in its place', () => {
    const checks = new RecordChecks();
    checks.acknowledged('s', 0, 'a', 'b1');
    checks.acknowledged('s', 1, 'b', 'b1');
    checks.copy('s', ['a', 'b', 'not acknowledged'], 'b2');
    checks.copy('t', [], 'b2');
    expect(() => checks.copy('s', ['a'], 'b2')).toThrow('b2 keeps 1 records of s, 2 were acknowledged');
    expect(() => checks.copy('s', ['a', 'a', 'b'], 'b2')).toThrow('s has a at 1 on b2, and had b');
  });

  it('what a read showed is as good as acknowledged: no copy that counts may lack it', () => {
    const checks = new RecordChecks();
    checks.read('s', { records: [{ offset: 0, value: 'a' }], end: 1 }, 0, 'b1');
    expect(checks.acknowledgedEnd('s')).toBe(1);
    expect(() => checks.copy('s', [], 'b2')).toThrow('b2 keeps 0 records of s, 1 were acknowledged');
  });

  it('a record once read stays, acknowledged or not', () => {
    const checks = new RecordChecks();
    checks.read('s', { records: [{ offset: 0, value: 'a' }], end: 1 }, 0, 'b1');
    expect(() => checks.acknowledged('s', 0, 'b', 'b2')).toThrow('had a');
  });
});
