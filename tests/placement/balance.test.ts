import { describe, expect, it } from 'vitest';
import {
  operator,
  plan,
  simulate,
  splitShard,
  type Assignment,
  type Broker,
  type ClusterFile,
  type Phase,
  type SimAction,
  type ZonePolicy,
} from '../../placement/index.ts';
import { judgeCalm, judgeEnd } from './support/judge.ts';
import { assignment, broker, brokers, clusterOf, resource } from './support/rows.ts';

type Counts = Record<string, number>;

/** Rows of a resource led as `leaders` says; the followers are the brokers after the leader, in turn. */
function led(name: string, leaders: Counts, ids: readonly string[], factor: number): Assignment[] {
  const order = Object.entries(leaders).flatMap(([id, n]) => Array.from({ length: n }, () => id));
  return order.map((leader, number) => {
    const others = ids.filter((id) => id !== leader);
    const followers = Array.from(
      { length: factor - 1 },
      (_, i) => others[(number + i) % others.length] ?? '',
    );
    return assignment(`${name}/${number}`, [leader, ...followers]);
  });
}

/** A cluster whose resources are led as given; names carry their kind. */
function skewed(rows: readonly Broker[], resources: Record<string, Counts>, factor: number): ClusterFile {
  const ids = rows.map((row) => row.id);
  return clusterOf({
    brokers: rows,
    resources: Object.entries(resources).map(([key, leaders]) => {
      const [kind, name] = key.split(':') as ['stream' | 'cache', string];
      const shards = Object.values(leaders).reduce((sum, n) => sum + n, 0);
      return resource(name, shards, { kind, replicationFactor: factor });
    }),
    assignments: Object.entries(resources).flatMap(([key, leaders]) => led(key, leaders, ids, factor)),
  });
}

function run(file: ClusterFile, ...actions: readonly SimAction[]): readonly Phase[] {
  const events = actions.map((action) => ({ action, afterMs: null, source: action }));
  const { phases } = simulate(file, { events, maxPasses: 4_000 }, { plan, ...operator });
  phases.forEach((phase, i) => judgeCalm(phases[i - 1]?.cluster ?? file, phase));
  return phases;
}

function last(phases: readonly Phase[]): Phase {
  const phase = phases.at(-1);
  if (phase === undefined) throw new Error('no phase');
  return phase;
}

/** Leaders of a resource, most first. */
function leadersOf(phase: Phase, key: string): number[] {
  const counts = new Map<string, number>();
  for (const row of phase.cluster.brokers) if (row.lifecycle === 'live') counts.set(row.id, 0);
  for (const row of phase.cluster.assignments) {
    if (splitShard(row.shard).resource === key) counts.set(row.leader, (counts.get(row.leader) ?? 0) + 1);
  }
  return [...counts.values()].sort((a, b) => b - a);
}

function copiesOf(phase: Phase): Counts {
  const counts: Counts = {};
  for (const row of phase.cluster.assignments)
    for (const id of row.replicas) counts[id] = (counts[id] ?? 0) + 1;
  return counts;
}

function moves(phase: Phase, role: 'leader' | 'follower'): number {
  return phase.moves.filter((move) => move.role === role).length;
}

/** Level, with the fewest leadership moves. */
function expectLevel(phase: Phase): void {
  judgeEnd(phase);
  expect(moves(phase, 'leader')).toBe(phase.minimumLeaderMoves);
}

describe('every resource is level, not only the totals', () => {
  it('four streams and a cache, totals 21/21/19, one stream at 1/1/10: it ends 4/4/4', () => {
    const file = skewed(
      brokers('b1', 'b2', 'b3'),
      {
        'stream:perf': { b1: 1, b2: 1, b3: 10 },
        'stream:s1': { b1: 7, b2: 6, b3: 3 },
        'stream:s2': { b1: 6, b2: 7, b3: 3 },
        'stream:s3': { b1: 4, b2: 4, b3: 0 },
        'cache:kv': { b1: 3, b2: 3, b3: 3 },
      },
      3,
    );
    const phase = last(run(file));
    expect(leadersOf(phase, 'stream:perf')).toEqual([4, 4, 4]);
    expectLevel(phase);
    expect(copiesOf(phase)).toEqual({ b1: 61, b2: 61, b3: 61 });
    expect(moves(phase, 'follower')).toBe(0);
  });

  it('five differently skewed streams whose totals are level: each ends within one', () => {
    const file = skewed(
      brokers('b1', 'b2', 'b3', 'b4', 'b5'),
      {
        'stream:a': { b1: 8, b2: 0, b3: 0, b4: 0, b5: 0 },
        'stream:b': { b1: 0, b2: 8, b3: 0, b4: 0, b5: 0 },
        'stream:c': { b1: 0, b2: 0, b3: 8, b4: 0, b5: 0 },
        'stream:d': { b1: 0, b2: 0, b3: 0, b4: 8, b5: 0 },
        'stream:e': { b1: 0, b2: 0, b3: 0, b4: 0, b5: 8 },
      },
      3,
    );
    const phase = last(run(file));
    for (const name of ['a', 'b', 'c', 'd', 'e'])
      expect(leadersOf(phase, `stream:${name}`)).toEqual([2, 2, 2, 1, 1]);
    expectLevel(phase);
  });

  it('a new 12-shard stream beside 6/6/0 lands 4/4/4, and none of it moves when the old one is levelled', () => {
    const file = skewed(brokers('b1', 'b2', 'b3'), { 'stream:old': { b1: 6, b2: 6, b3: 0 } }, 3);
    const both = { ...file, resources: [...file.resources, resource('new', 12, { replicationFactor: 3 })] };
    const phase = last(run(both));
    expect(leadersOf(phase, 'stream:new')).toEqual([4, 4, 4]);
    expect(leadersOf(phase, 'stream:old')).toEqual([4, 4, 4]);
    expect(phase.moves.filter((move) => move.shard.startsWith('stream:new'))).toEqual([]);
    expectLevel(phase);
  });
});

describe('brokers come and go', () => {
  const three = { b1: 4, b2: 4, b3: 4 };
  const level = skewed(
    brokers('b1', 'b2', 'b3'),
    { 'stream:a': three, 'stream:b': three, 'stream:c': three },
    2,
  );

  it('a joining broker takes its part of every resource, and moves go to it alone', () => {
    const phase = last(run(level, { type: 'join', broker: broker('b4') }));
    for (const name of ['a', 'b', 'c']) expect(leadersOf(phase, `stream:${name}`)).toEqual([3, 3, 3, 3]);
    expectLevel(phase);
    expect(phase.moves.filter((move) => move.role === 'leader' && move.to !== 'b4')).toEqual([]);
    expect(copiesOf(phase)).toEqual({ b1: 18, b2: 18, b3: 18, b4: 18 });
  });

  it('a draining broker is emptied, and what it led is level on the others', () => {
    const phase = last(run(level, { type: 'join', broker: broker('b4') }, { type: 'drain', broker: 'b1' }));
    expect(phase.cluster.assignments.filter((row) => row.replicas.includes('b1'))).toEqual([]);
    for (const name of ['a', 'b', 'c']) expect(leadersOf(phase, `stream:${name}`)).toEqual([4, 4, 4]);
    expectLevel(phase);
    expect(phase.cluster.assignments.every((row) => row.replicas.length === 2)).toBe(true);
  });

  it('a broker with a cap takes what fits, the others share the rest', () => {
    const rows = [broker('b1', { maxShards: 6 }), broker('b2'), broker('b3')];
    const phase = last(run(skewed(rows, { 'stream:a': { b1: 0, b2: 12, b3: 12 } }, 1)));
    expect(leadersOf(phase, 'stream:a')).toEqual([9, 9, 6]);
    expect(copiesOf(phase)['b1']).toBe(6);
  });

  it('brokers in zones: leaders level, and no shard loses a zone on the way', () => {
    const rows = ['a', 'b', 'c'].flatMap((zone) => [
      broker(`${zone}1`, { zone }),
      broker(`${zone}2`, { zone }),
    ]);
    const file = clusterOf({
      brokers: rows,
      resources: [resource('a', 12, { replicationFactor: 3 })],
      assignments: Array.from({ length: 12 }, (_, i) =>
        assignment(`stream:a/${i}`, [
          'a1',
          ['b1', 'b2'][i % 2] ?? '',
          ['c1', 'c2'][Math.floor(i / 2) % 2] ?? '',
        ]),
      ),
    });
    const phase = last(run(file));
    expect(leadersOf(phase, 'stream:a')).toEqual([2, 2, 2, 2, 2, 2]);
    expectLevel(phase);
    expect(phase.levels.minZonesPerShard).toBe(3);
    expect(copiesOf(phase)).toEqual({ a1: 6, a2: 6, b1: 6, b2: 6, c1: 6, c2: 6 });
  });

  it('five brokers with a replication factor of 3: three skewed resources end within one', () => {
    const rows = brokers('b1', 'b2', 'b3', 'b4', 'b5');
    const phase = last(
      run(
        skewed(
          rows,
          {
            'stream:a': { b1: 10, b2: 1, b3: 1, b4: 0, b5: 0 },
            'stream:b': { b1: 0, b2: 0, b3: 5, b4: 6, b5: 0 },
            'cache:c': { b1: 0, b2: 4, b3: 0, b4: 0, b5: 3 },
          },
          3,
        ),
      ),
    );
    expect(leadersOf(phase, 'stream:a')).toEqual([3, 3, 2, 2, 2]);
    expect(leadersOf(phase, 'stream:b')).toEqual([3, 2, 2, 2, 2]);
    expect(leadersOf(phase, 'cache:c')).toEqual([2, 2, 1, 1, 1]);
    expectLevel(phase);
    expect(phase.levels.copySpreadTotal).toBeLessThanOrEqual(1);
    expect(phase.levels.maxCopySpreadPerResource).toBeLessThanOrEqual(1);
  });
});

describe('weights', () => {
  it('2/1/1: every resource and the totals by weight, leaders and copies', () => {
    const rows = [broker('b1', { weight: 2 }), broker('b2'), broker('b3')];
    const file = skewed(
      rows,
      { 'stream:a': { b1: 0, b2: 8, b3: 0 }, 'stream:b': { b1: 12, b2: 0, b3: 0 } },
      1,
    );
    const phase = last(run(file));
    expect(leadersOf(phase, 'stream:a')).toEqual([4, 2, 2]);
    expect(leadersOf(phase, 'stream:b')).toEqual([6, 3, 3]);
    expect(copiesOf(phase)).toEqual({ b1: 10, b2: 5, b3: 5 });
    expectLevel(phase);
  });
});

/** Racks by size: `[2, 2, 1]` is A{a1, a2} B{b1, b2} C{c1}. `null`: no broker has one. */
function inRacks(sizes: readonly number[], zoned = true, weights: readonly number[] = []): Broker[] {
  return sizes.flatMap((size, z) =>
    Array.from({ length: size }, (_, i) =>
      broker(`${'abcdefgh'[z]}${i + 1}`, { zone: zoned ? `z${z}` : null, weight: weights[z] ?? 1 }),
    ),
  );
}

interface Racks {
  readonly sizes: readonly number[];
  readonly shards: number;
  readonly policy: ZonePolicy;
  readonly factor?: number;
  readonly zoned?: boolean;
  readonly weights?: readonly number[];
}

/** A first placement: everything is placed at once, full, level in leaders, and nothing moves afterwards. */
function placed({ sizes, shards, policy, factor = 3, zoned = true, weights = [] }: Racks): Phase {
  const phase = last(
    run(
      clusterOf({
        brokers: inRacks(sizes, zoned, weights),
        resources: [resource('t', shards, { replicationFactor: factor })],
        policy: { zonePolicy: policy },
      }),
    ),
  );
  expect(phase.moves).toEqual([]);
  expect(phase.steps.every((step) => step.step === 'place' && step.pass === 1)).toBe(true);
  expect(phase.unspread).toEqual([]);
  const full = Math.min(
    factor,
    sizes.reduce((sum, n) => sum + n, 0),
  );
  expect(phase.cluster.assignments.map((row) => row.replicas.length)).toEqual(Array(shards).fill(full));
  judgeEnd(phase);
  return phase;
}

function doubled(phase: Phase, zones: number): number {
  const zone = new Map(phase.cluster.brokers.map((row) => [row.id, row.zone ?? row.id]));
  return phase.cluster.assignments.filter(
    (row) => new Set(row.replicas.map((id) => zone.get(id))).size === zones,
  ).length;
}

describe('uneven racks (KAFKA-19507), at first placement and with no later move', () => {
  const LEADERS: Record<number, number[]> = {
    60: [12, 12, 12, 12, 12],
    61: [13, 12, 12, 12, 12],
    1_000: [200, 200, 200, 200, 200],
  };

  it.each([
    [60, 'broker', [36, 36, 36, 36, 36], 24],
    [60, 'zone', [60, 30, 30, 30, 30], 0],
    [61, 'broker', [37, 37, 37, 36, 36], null],
    [61, 'zone', [61, 31, 31, 30, 30], 0],
    [1_000, 'broker', [600, 600, 600, 600, 600], 400],
    [1_000, 'zone', [1_000, 500, 500, 500, 500], 0],
  ] as const)('racks of 2, 2 and 1, %i shards, `%s`', (shards, policy, copies, onTwo) => {
    const phase = placed({ sizes: [2, 2, 1], shards, policy });
    expect(leadersOf(phase, 'stream:t')).toEqual(LEADERS[shards]);
    expect(Object.values(copiesOf(phase)).sort((a, b) => b - a)).toEqual(copies);
    if (onTwo !== null) expect(doubled(phase, 2)).toBe(onTwo);
    expect(doubled(phase, 1)).toBe(0);
  });

  it.each([
    [60, 'broker', [36, 36, 36, 36, 36], 12],
    [60, 'zone', [40, 40, 40, 30, 30], 0],
    [61, 'broker', [37, 37, 37, 36, 36], null],
    [61, 'zone', [41, 41, 40, 31, 30], 0],
    [1_000, 'broker', [600, 600, 600, 600, 600], 200],
    [1_000, 'zone', [667, 667, 666, 500, 500], 0],
  ] as const)('racks of 2, 1, 1 and 1, %i shards, `%s`', (shards, policy, copies, onTwo) => {
    const phase = placed({ sizes: [2, 1, 1, 1], shards, policy });
    expect(leadersOf(phase, 'stream:t')).toEqual(LEADERS[shards]);
    expect(Object.values(copiesOf(phase)).sort((a, b) => b - a)).toEqual(copies);
    if (onTwo !== null) expect(doubled(phase, 2)).toBe(onTwo);
    expect(doubled(phase, 1)).toBe(0);
  });

  it.each(['broker', 'zone', 'majority'] as const)(
    'racks of 3, 2, 2 and 2 under `%s`: 20 each, three racks a shard',
    (policy) => {
      const phase = placed({ sizes: [3, 2, 2, 2], shards: 60, policy });
      expect(Object.values(copiesOf(phase))).toEqual(Array(9).fill(20));
      expect(doubled(phase, 3)).toBe(60);
      expect(phase.conflicts).toEqual([]);
    },
  );

  it.each(['broker', 'zone', 'majority'] as const)('racks of 10, 10 and 1 under `%s`', (policy) => {
    const phase = placed({ sizes: [10, 10, 1], shards: 63, policy });
    expect(leadersOf(phase, 'stream:t')).toEqual(Array(21).fill(3));
    if (policy === 'broker') expect(Object.values(copiesOf(phase))).toEqual(Array(21).fill(9));
    else expect(copiesOf(phase)['c1']).toBe(63);
    expect(phase.conflicts.length).toBeGreaterThan(0);
  });

  it.each(['broker', 'zone', 'majority'] as const)('racks of 1, 1 and 4 under `%s`', (policy) => {
    const phase = placed({ sizes: [1, 1, 4], shards: 60, policy });
    if (policy === 'broker') expect(Object.values(copiesOf(phase))).toEqual(Array(6).fill(30));
    else expect(copiesOf(phase)).toEqual({ a1: 60, b1: 60, c1: 15, c2: 15, c3: 15, c4: 15 });
    expect(doubled(phase, 1)).toBe(0);
  });

  it.each(['broker', 'zone', 'majority'] as const)('one rack, and none, under `%s`', (policy) => {
    for (const zoned of [true, false]) {
      const phase = placed({ sizes: [5], shards: 60, policy, zoned });
      expect(Object.values(copiesOf(phase))).toEqual(Array(5).fill(36));
      expect(leadersOf(phase, 'stream:t')).toEqual([12, 12, 12, 12, 12]);
    }
  });

  it.each(['broker', 'zone', 'majority'] as const)('more copies than racks under `%s`', (policy) => {
    const phase = placed({ sizes: [2, 3], shards: 60, policy, factor: 4 });
    expect(doubled(phase, 2)).toBe(60);
    if (policy === 'broker') expect(Object.values(copiesOf(phase))).toEqual(Array(5).fill(48));
  });

  it.each(['broker', 'zone', 'majority'] as const)('zones of weights 10 and 1+1 under `%s`', (policy) => {
    const phase = placed({ sizes: [1, 2], shards: 60, policy, weights: [10, 1] });
    expect(copiesOf(phase)).toEqual({ a1: 60, b1: 60, b2: 60 });
    expect(doubled(phase, 2)).toBe(60);
  });
});

describe('nowhere to go', () => {
  const wanted = [resource('t', 6, { replicationFactor: 3 })];

  it('no live broker: every shard says so, nothing is written, and they are placed once one is back', () => {
    const rows = [broker('b1', { lifecycle: 'down', downSinceMs: 0 }), broker('b2', { lifecycle: 'left' })];
    const [before, after] = run(clusterOf({ brokers: rows, resources: wanted }), {
      type: 'up',
      broker: 'b1',
    });
    expect(before?.steps).toEqual([]);
    expect(before?.unplaceable.map((row) => row.reason)).toEqual(Array(6).fill('no_live_broker'));
    expect(after?.cluster.assignments.map((row) => row.leader)).toEqual(Array(6).fill('b1'));
  });

  it('no broker at all', () => {
    const phase = last(run(clusterOf({ resources: wanted })));
    expect(phase.steps).toEqual([]);
    expect(phase.unplaceable).toHaveLength(6);
  });

  it('a replication factor above the live brokers: sets as full as they can be, and whole once a third joins', () => {
    const file = clusterOf({ brokers: brokers('b1', 'b2'), resources: wanted });
    const [before, after] = run(file, { type: 'join', broker: broker('b3') });
    expect(before?.cluster.assignments.every((row) => row.replicas.length === 2)).toBe(true);
    expect(before?.waiting.map((row) => row.reason)).toEqual(Array(6).fill('no_destination'));
    expect(after?.cluster.assignments.every((row) => row.replicas.length === 3)).toBe(true);
    expect(after?.waiting).toEqual([]);
  });

  it('all at their cap: what is there stays, what is new says what is missing', () => {
    const rows = ['b1', 'b2', 'b3'].map((id) => broker(id, { maxShards: 4 }));
    const file = skewed(rows, { 'stream:old': { b1: 2, b2: 1, b3: 1 } }, 3);
    const phase = last(run({ ...file, resources: [...file.resources, ...wanted] }));
    expect(phase.steps.filter((step) => step.shard.startsWith('stream:t'))).toEqual([]);
    expect(phase.unplaceable.map((row) => row.reason)).toEqual(Array(6).fill('no_room'));
    expect(phase.unplaceable[0]?.detail).toContain('b1');
    expect(copiesOf(phase)).toEqual({ b1: 4, b2: 4, b3: 4 });
  });
});

describe('the fewest moves are known while a broker leaves, though moves wait for its copies', () => {
  // While b1's copies go first, a copy on a2 costs a shard zone b: until they are replaced a1 cannot hand over to it.
  const rows = [0, 1, 2, 3].map((n) => assignment(`stream:s/${n}`, ['a1', 'b1', 'c1']));
  const zones = [
    ['a1', 'a'],
    ['a2', 'a'],
    ['b2', 'b'],
    ['c1', 'c'],
  ] as const;
  const staying = zones.map(([id, zone]) => broker(id, { zone }));

  it.each([
    ['drained', broker('b1', { zone: 'b', drain: true }), rows],
    [
      'lost',
      broker('b1', { zone: 'b', lifecycle: 'down', downSinceMs: 0 }),
      rows.map((row) => ({ ...row, inSync: ['a1', 'c1'] })),
    ],
  ])('%s', (_, leaving, assignments) => {
    const file = clusterOf({
      brokers: [...staying, leaving],
      resources: [resource('s', 4, { replicationFactor: 3 })],
      assignments,
      policy: { zonePolicy: 'zone' },
    });
    const phase = last(run(file));
    expect(phase.minimumLeaderMoves).toBe(3);
    expect(moves(phase, 'leader')).toBe(3);
  });
});
