import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { fnv1a64, shardOfKey } from '../../src/jump-hash.ts';

describe('key to shard', () => {
  it('hashes as FNV-1a does (the reference vectors of its authors)', () => {
    expect(fnv1a64('').toString(16)).toBe('cbf29ce484222325');
    expect(fnv1a64('a').toString(16)).toBe('af63dc4c8601ec8c');
    expect(fnv1a64('foobar').toString(16)).toBe('85944171f73967e8');
  });

  it('keeps the vectors of docs/protocol.md', () => {
    const page = readFileSync(join(import.meta.dirname, '../../docs/protocol.md'), 'utf8');
    const rows = [...page.matchAll(/^\| (`[^`]*`|\(empty\)) \|((?: +\d+ +\|){6})$/gm)];
    expect(rows).toHaveLength(5);
    for (const [, name = '', cells = ''] of rows) {
      const key = name === '(empty)' ? '' : name.slice(1, -1);
      const documented = cells.split('|').slice(0, 6).map(Number);
      expect(
        [1, 2, 3, 12, 100, 1_000].map((shards) => shardOfKey(key, shards)),
        name,
      ).toEqual(documented);
    }
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
