import { describe, expect, it } from 'vitest';
import { fnv1a64, shardOfKey } from '../../src/jump-hash.ts';

describe('key to shard', () => {
  it('hashes as FNV-1a does (the reference vectors of its authors)', () => {
    expect(fnv1a64('').toString(16)).toBe('cbf29ce484222325');
    expect(fnv1a64('a').toString(16)).toBe('af63dc4c8601ec8c');
    expect(fnv1a64('foobar').toString(16)).toBe('85944171f73967e8');
  });

  it('keeps the documented vectors', () => {
    const vectors = ['', 'a', 'orders', 'customer-42', 'zażółć'].map((key) => [
      key,
      ...[1, 2, 3, 12, 100, 1_000].map((shards) => shardOfKey(key, shards)),
    ]);
    expect(vectors).toMatchInlineSnapshot(`
      [
        [
          "",
          0,
          1,
          1,
          10,
          90,
          266,
        ],
        [
          "a",
          0,
          1,
          2,
          2,
          31,
          163,
        ],
        [
          "orders",
          0,
          0,
          0,
          10,
          37,
          520,
        ],
        [
          "customer-42",
          0,
          1,
          1,
          1,
          61,
          478,
        ],
        [
          "zażółć",
          0,
          0,
          0,
          3,
          81,
          487,
        ],
      ]
    `);
  });

  it('spreads keys evenly, and growing moves only what the new shard takes', () => {
    const keys = Array.from({ length: 12_000 }, (_, i) => `key-${i}`);
    const counts = Array.from({ length: 12 }, () => 0);
    let moved = 0;
    for (const key of keys) {
      const before = shardOfKey(key, 12);
      const after = shardOfKey(key, 13);
      counts[before] = (counts[before] ?? 0) + 1;
      if (before !== after) {
        moved++;
        expect(after).toBe(12);
      }
    }
    for (const count of counts) expect(Math.abs(count - 1_000)).toBeLessThan(150);
    expect(Math.abs(moved - 12_000 / 13)).toBeLessThan(150);
  });
});
