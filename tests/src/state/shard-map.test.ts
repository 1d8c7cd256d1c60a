import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compareShards } from '../../../placement/index.ts';
import { MAX_RESOURCES, MAX_SHARDS, MAX_SHARDS_PER_RESOURCE } from '../../../src/command/index.ts';
import { StateHash } from '../../../src/state/hash.ts';
import { SHARD_NUMBERS, ShardMap } from '../../../src/state/shard-map.ts';
import { SHARDS_PER_SET, ShardSet } from '../../../src/state/shard-set.ts';
import { ShardTable } from '../../../src/state/table.ts';

interface Row {
  readonly shard: string;
  readonly value: number;
}

const shardArbitrary = fc
  .tuple(fc.constantFrom('stream:a', 'stream:a/1', 'cache:a', 'stream:'), fc.integer({ min: 0, max: 12 }))
  .map(([resource, number]) => `${resource}/${number}`);
const writes = fc.array(fc.tuple(shardArbitrary, fc.option(fc.integer({ min: 0, max: 99 }))));
const everyShard = fc.sample(shardArbitrary, 500);

function sorted(rows: Iterable<Row>): Row[] {
  return [...rows].sort((x, y) => compareShards(x.shard, y.shard));
}

/** How many entries the largest native map or set had that was written meanwhile. */
function largest(write: () => void): number {
  let most = 0;
  type Sized = { readonly size: number };
  const watch = (prototype: object, name: string) => {
    const original = Reflect.get(prototype, name) as (this: Sized, ...args: unknown[]) => unknown;
    Reflect.set(prototype, name, function (this: Sized, ...args: unknown[]): unknown {
      const answer = Reflect.apply(original, this, args);
      most = Math.max(most, this.size);
      return answer;
    });
    return () => Reflect.set(prototype, name, original);
  };
  const restore = [watch(Map.prototype, 'set'), watch(Set.prototype, 'add')];
  try {
    write();
  } finally {
    for (const each of restore) each();
  }
  return most;
}

describe('ShardMap', () => {
  it('holds what a map would, whatever is set and deleted', () => {
    fc.assert(
      fc.property(writes, (all) => {
        const map = new ShardMap<Row>();
        const twin = new Map<string, Row>();
        for (const [shard, value] of all) {
          if (value === null) {
            map.delete(shard);
            twin.delete(shard);
          } else {
            map.set(shard, { shard, value });
            twin.set(shard, { shard, value });
          }
          expect(map.size).toBe(twin.size);
        }
        for (const shard of everyShard) {
          expect(map.get(shard)).toEqual(twin.get(shard));
          expect(map.has(shard)).toBe(twin.has(shard));
        }
        expect(sorted(map.list())).toEqual(sorted(twin.values()));
      }),
    );
  });

  it('lists a resource together and by number, in a list of the caller’s own', () => {
    const map = new ShardMap<string>();
    for (const shard of ['stream:b/10', 'stream:a/2', 'stream:b/9', 'stream:a/0']) map.set(shard, shard);
    expect(map.list()).toEqual(['stream:b/9', 'stream:b/10', 'stream:a/0', 'stream:a/2']);
    map.list().pop();
    map.delete('stream:b/10');
    expect(map.list()).toEqual(['stream:b/9', 'stream:a/0', 'stream:a/2']);
  });

  it.each([
    ...[
      '',
      'stream:s',
      'stream:s/',
      'stream:s/x',
      'stream:s/1x',
      'stream:s/-1',
      'stream:s/ 1',
      'stream:s/1.0',
    ],
    ...['stream:s/01', 'stream:s/00', `stream:s/${SHARD_NUMBERS}`, 'stream:s/4294967296'],
  ])('has nothing under "%s", which names no shard, and takes nothing', (shard) => {
    const map = new ShardMap<number>();
    map.set('stream:s/0', 1);
    map.set('stream:s/1', 2);
    expect(map.get(shard)).toBeUndefined();
    map.delete(shard);
    expect(map.size).toBe(2);
    expect(() => map.set(shard, 3)).toThrow('does not name a shard');
  });

  it('takes every shard that a resource may have', () => {
    expect(SHARD_NUMBERS).toBe(MAX_SHARDS_PER_RESOURCE);
    const map = new ShardMap<number>();
    map.set(`stream:s/${SHARD_NUMBERS - 1}`, 1);
    expect(map.get(`stream:s/${SHARD_NUMBERS - 1}`)).toBe(1);
    expect(map.list()).toEqual([1]);
  });

  it.each([
    ['streams of a hundred', (i: number) => `stream:topic-${i % 10_000}/${Math.floor(i / 10_000)}`],
    ['the fewest streams', (i: number) => `stream:${i % 10}/${Math.floor(i / 10)}`],
    ['caches of one', (i: number) => `cache:x${i % MAX_RESOURCES}/0`],
  ])('moves no more at once than its resources when it grows, at a million writes: %s', (_name, shardOf) => {
    const map = new ShardMap<true>();
    const most = largest(() => {
      for (let i = 0; i < MAX_SHARDS; i++) map.set(shardOf(i), true);
    });
    expect(most).toBeLessThanOrEqual(MAX_RESOURCES);
    expect(map.list()).toHaveLength(map.size);
  });
});

describe('ShardTable', () => {
  it('shows rows that are held as they were, whatever is written or removed, until they are released', () => {
    fc.assert(
      fc.property(writes, writes, (earlier, later) => {
        const table = new ShardTable<Row>(new StateHash(), 'row', (row) => ({ ...row }));
        const apply = ([shard, value]: [string, number | null]): void => {
          if (value === null) table.delete(shard);
          else table.put(shard, { shard, value });
        };
        earlier.forEach(apply);
        const before = table.rows.list();
        const held = table.hold();
        for (const each of later) {
          apply(each);
          expect(held.size).toBe(before.length);
          expect(sorted(held.list())).toEqual(sorted(before));
        }
        const byShard = new Map(before.map((row) => [row.shard, row]));
        for (const shard of everyShard) {
          expect(held.get(shard)).toBe(byShard.get(shard));
          expect(held.has(shard)).toBe(byShard.has(shard));
        }
        table.release();
        apply(['stream:a/3', 7]);
        expect(table.rows.get('stream:a/3')).toEqual({ shard: 'stream:a/3', value: 7 });
      }),
    );
  });

  it('counts rows into the hash as any other order of writes does', () => {
    const digest = (write: (table: ShardTable<Row>) => void): string => {
      const hash = new StateHash();
      write(new ShardTable<Row>(hash, 'row', (row) => ({ ...row })));
      return hash.digest({ a: 0, b: 0, bytes: 0 });
    };
    const [one, two] = ['stream:s/0', 'stream:s/1'].map((shard) => ({ shard, value: 1 })) as [Row, Row];
    const straight = digest((table) => void [one, two].map((row) => table.put(row.shard, row)));
    const roundabout = digest((table) => {
      for (const row of [two, { ...one, value: 2 }, { ...two, shard: 'stream:s/2' }, one]) {
        table.put(row.shard, row);
      }
      table.delete('stream:s/2');
    });
    expect(roundabout).toBe(straight);
    expect(digest((table) => table.put(one.shard, one))).not.toBe(straight);
  });
});

describe('ShardSet', () => {
  it('holds each shard once, in native sets of a bounded size', () => {
    const set = new ShardSet();
    const count = 2 * SHARDS_PER_SET + 10;
    const most = largest(() => {
      for (let i = 0; i < count; i++) set.add(`stream:s/${i}`);
      for (let i = 0; i < count; i++) set.add(`stream:s/${i}`);
    });
    expect(most).toBe(SHARDS_PER_SET);
    expect([...set]).toHaveLength(count);
    for (let i = 0; i < count; i += 2) set.delete(`stream:s/${i}`);
    set.delete('stream:t/1');
    expect(new Set(set).size).toBe(count / 2);
    expect([...set].every((shard) => Number(shard.slice('stream:s/'.length)) % 2 === 1)).toBe(true);
    for (let i = 0; i < count; i++) set.delete(`stream:s/${i}`);
    expect([...set]).toEqual([]);
  });
});
