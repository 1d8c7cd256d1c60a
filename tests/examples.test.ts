import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseClusterFile } from '../src/cluster-file/index.ts';

const file = parseClusterFile(
  readFileSync(join(import.meta.dirname, '..', 'examples', 'lopsided.json'), 'utf8'),
);

/** Leaders of a resource on b1, b2 and b3; of all resources where none is given. */
const led = (prefix = ''): number[] =>
  ['b1', 'b2', 'b3'].map(
    (broker) =>
      file.assignments.filter(({ shard, leader }) => shard.startsWith(prefix) && leader === broker).length,
  );

describe('examples/lopsided.json', () => {
  it('has three brokers, four streams of 12 shards and a cache of 13, every shard thrice and in sync', () => {
    expect(file.brokers.map(({ id }) => id)).toEqual(['b1', 'b2', 'b3']);
    const shape = file.resources.map(({ kind, shards, replicationFactor }) => [
      kind,
      shards,
      replicationFactor,
    ]);
    expect(shape).toEqual([['cache', 13, 3], ...Array.from({ length: 4 }, () => ['stream', 12, 3])]);
    expect(file.assignments).toHaveLength(61);
    for (const { replicas, inSync } of file.assignments) {
      expect([...replicas].sort()).toEqual(['b1', 'b2', 'b3']);
      expect(inSync).toEqual(replicas);
    }
  });

  it('looks even by its totals, 21/21/19, while perf-quorum is led 1/1/10', () => {
    expect(led()).toEqual([21, 21, 19]);
    expect(led('stream:perf-quorum/')).toEqual([1, 1, 10]);
  });
});
