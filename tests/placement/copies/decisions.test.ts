import { describe, expect, it } from 'vitest';
import { NONE } from '../../../placement/broker-table.ts';
import {
  conflicts,
  copyTargets,
  copyThatGoes,
  levelStep,
  restoreDestination,
  surplusCopy,
  unspread,
  vectorTail,
  vectorTailAfter,
  zoneStep,
} from '../../../placement/copies/index.ts';
import type { View } from '../../../placement/view.ts';
import {
  cluster,
  compareTails,
  copiesById,
  place,
  racks,
  row,
  rowsOf,
  settle,
  shardsByZones,
  viewOf,
  withRows,
  type BrokerSpec,
} from './support.ts';

const any = (): boolean => true;

function laid(
  brokers: readonly BrokerSpec[],
  factor: number,
  sets: readonly string[][],
  policy: 'broker' | 'zone' | 'majority' = 'broker',
): View {
  const start = cluster(brokers, [{ name: 't', shards: sets.length, factor }], { zonePolicy: policy });
  return viewOf(
    withRows(
      start,
      sets.map((set, i) => row(`stream:t/${i}`, set)),
    ),
  );
}

function id(view: View, b: number): string {
  return b === NONE ? 'none' : view.brokers.id(b);
}

describe('which copy goes', () => {
  const six = [...racks('ABCABC')];
  it('none while the set is not over its factor', () => {
    const view = laid(six, 3, [['b1', 'b2', 'b3']]);
    expect(copyThatGoes(view, copyTargets(view), 0, 1, 0)).toBe(NONE);
  });

  it('never the new leader; lost before draining before out of sync before live', () => {
    const states = ['live', 'draining', 'down', 'live', 'live', 'live'] as const;
    const brokers = six.map((b, i) => ({ ...b, lifecycle: states[i] ?? 'live' }));
    const view = laid(brokers, 3, [
      ['b1', 'b2', 'b3'],
      ['b1', 'b2', 'b4'],
    ]);
    const targets = copyTargets(view);
    expect(id(view, copyThatGoes(view, targets, 0, 4, 0))).toBe('b3');
    expect(id(view, copyThatGoes(view, targets, 1, 4, 0))).toBe('b2');
    const start = cluster(six, [{ name: 't', shards: 1, factor: 3 }]);
    const lagging = viewOf(
      withRows(start, [{ ...row('stream:t/0', ['b1', 'b2', 'b3']), inSync: ['b1', 'b2'] }]),
    );
    expect(id(lagging, copyThatGoes(lagging, copyTargets(lagging), 0, 4, 0))).toBe('b3');
  });

  it('the one whose going keeps the most zones', () => {
    const view = laid(six, 3, [['b1', 'b2', 'b3']]);
    // b4 is in b1's zone: only b1 can go without a zone.
    expect(id(view, copyThatGoes(view, copyTargets(view), 0, 3, 1))).toBe('b1');
  });

  it('the one whose broker is the most above its part, before the old leader', () => {
    const view = laid(racks('----'), 2, [
      ['b1', 'b2'],
      ['b1', 'b2'],
      ['b2', 'b3'],
      ['b2', 'b4'],
    ]);
    expect(id(view, copyThatGoes(view, copyTargets(view), 0, 2, 0))).toBe('b2');
  });

  it('a surplus copy, never the leader', () => {
    const view = laid(
      [
        { id: 'a1', zone: 'a' },
        { id: 'a2', zone: 'a' },
        { id: 'b1', zone: 'b' },
        { id: 'c1', zone: 'c' },
      ],
      3,
      [['a1', 'b1', 'c1', 'a2']],
      'zone',
    );
    expect(id(view, surplusCopy(view, copyTargets(view), 0).broker)).toBe('a2');
  });
});

describe('where a copy is restored', () => {
  it('in the lost copy own zone', () => {
    const brokers = racks('ABCABC').map((b) => (b.id === 'b1' ? { ...b, lifecycle: 'down' as const } : b));
    const view = laid(brokers, 2, [['b2', 'b1']]);
    const found = restoreDestination(view, copyTargets(view), 0, 0, any);
    expect(found).toMatchObject({ to: 3, rule: 'own_zone' });
  });

  it('in the widest spread that is left, never on a draining broker', () => {
    const states: Record<string, BrokerSpec['lifecycle']> = { b3: 'draining', b6: 'draining' };
    const brokers = racks('ABCABC').map((b) => ({ ...b, lifecycle: states[b.id] ?? ('live' as const) }));
    const view = laid(brokers, 2, [['b1', 'b3']]);
    const found = restoreDestination(view, copyTargets(view), 0, 2, any);
    expect(found).toMatchObject({ rule: 'widest_spread' });
    if (found === null || 'waiting' in found) throw new Error('no destination');
    expect(['b2', 'b5']).toContain(id(view, found.to));
    expect(found.rejected).toContainEqual({ broker: 'b1', by: 'holds a copy' });
  });

  it('waits with the reason where no live broker is outside the set', () => {
    const brokers = racks('---').map((b) => (b.id === 'b3' ? { ...b, lifecycle: 'draining' as const } : b));
    const view = laid(brokers, 3, [['b1', 'b2', 'b3']]);
    const found = restoreDestination(view, copyTargets(view), 0, 2, any);
    expect(found).toMatchObject({ waiting: { reason: 'no_destination' } });
    expect(JSON.stringify(found)).toContain('outside');
  });

  it('waits with the caps where all outside are full, and says how much room is missing', () => {
    const brokers: BrokerSpec[] = [{ id: 'a' }, { id: 'b', lifecycle: 'draining' }, { id: 'c', cap: 1 }];
    const view = laid(brokers, 2, [
      ['a', 'b'],
      ['a', 'c'],
    ]);
    const found = restoreDestination(view, copyTargets(view), 0, 1, any);
    expect(found).toMatchObject({ waiting: { reason: 'no_room' } });
    expect(JSON.stringify(found)).toContain('c at maxShards 1');
    expect(JSON.stringify(found)).toContain('1 copy');
  });

  it('is null while only the slots are in the way', () => {
    const view = laid(racks('----'), 3, [['b1', 'b2']]);
    expect(restoreDestination(view, copyTargets(view), 0, NONE, () => false)).toBeNull();
  });
});

describe('step 6', () => {
  it('replaces the copy that doubles up, with the vector falling', () => {
    const view = laid(racks('AABBCC'), 3, [['b1', 'b2', 'b3']], 'zone');
    const targets = copyTargets(view);
    const move = zoneStep(view, targets, any);
    expect(move).toMatchObject({ shard: 0, from: 1, reason: 'zone', rule: 'zone_missing' });
    expect(['b5', 'b6']).toContain(id(view, move?.to ?? NONE));
    const before = vectorTail(targets);
    const after = vectorTailAfter(targets, 0, [0, 2, move?.to ?? NONE]);
    expect(before.zones).toBe(2);
    expect(after.zones).toBe(0);
  });

  it('leaves a shard be whose missing zone is full, and lists it', () => {
    const brokers = [
      { id: 'a1', zone: 'a', cap: 2 },
      { id: 'b1', zone: 'b' },
      { id: 'b2', zone: 'b' },
    ];
    const view = laid(
      brokers,
      2,
      [
        ['a1', 'b1'],
        ['b2', 'a1'],
        ['b1', 'b2'],
      ],
      'zone',
    );
    const targets = copyTargets(view);
    expect(zoneStep(view, targets, any)).toBeNull();
    expect(levelStep(view, targets, any)).toBeNull();
    expect(unspread(view, targets)).toEqual([
      {
        shard: 'stream:t/2',
        zones: 1,
        possible: 2,
        reason: 'zone_full',
        detail: expect.stringContaining('a1 at maxShards 2'),
      },
    ]);
  });
});

describe('step 7', () => {
  it('from `zone` to `broker` on racks of 2, 2 and 1: 24 copies move, 36 each', () => {
    const start = cluster(racks('ABCAB'), [{ name: 't', shards: 60, factor: 3 }], { zonePolicy: 'zone' });
    const spread = withRows(start, rowsOf(place(start).view));
    const { taken, view } = settle({ ...spread, policy: { ...spread.policy, zonePolicy: 'broker' } });
    expect(taken.length).toBe(24);
    expect(new Set(taken.map((t) => t.move.rule))).toEqual(new Set(['copies_narrow']));
    expect(Object.values(copiesById(view))).toEqual([36, 36, 36, 36, 36]);
    expect(shardsByZones(view)).toEqual({ 2: 24, 3: 36 });
  });

  it('makes the first link of a chain where no single move helps', () => {
    // b1 holds one too many and b4 one too few, but b4 is in every set that b1 follows.
    const view = laid(racks('----'), 2, [
      ['b4', 'b1'],
      ['b4', 'b1'],
      ['b1', 'b2'],
      ['b1', 'b3'],
      ['b3', 'b2'],
      ['b2', 'b3'],
    ]);
    expect(copiesById(view)).toEqual({ b1: 4, b2: 3, b3: 3, b4: 2 });
    const start = cluster(racks('----'), [{ name: 't', shards: 6, factor: 2 }]);
    const { taken, view: end } = settle(withRows(start, rowsOf(view)));
    expect(taken.map((t) => t.move.rule)).toEqual(['chain', 'copies']);
    expect(taken.map((t) => [t.before.copies, t.before.chain])).toEqual([
      [2, 2],
      [2, 1],
    ]);
    expect(taken.at(-1)?.after).toMatchObject({ copies: 0, chain: 0 });
    expect(Object.values(copiesById(end))).toEqual([3, 3, 3, 3]);
    for (const { before, after } of taken) expect(compareTails(after, before)).toBeLessThan(0);
  });

  it('levels the copies in total by moves that unlevel no resource', () => {
    // Two streams, each level by itself, both with their extra copies on b1.
    const streams = ['t', 'u'].map((name) => ({ name, shards: 2, factor: 2 }));
    const start = cluster(racks('---'), streams);
    const rows = ['t', 'u'].flatMap((name) => [
      row(`stream:${name}/0`, ['b2', 'b1']),
      row(`stream:${name}/1`, ['b3', 'b1']),
    ]);
    const { taken, view } = settle(withRows(start, rows));
    expect(taken.map((t) => t.move.rule)).toEqual(['copies_total']);
    expect(Object.values(copiesById(view)).sort((a, b) => a - b)).toEqual([2, 3, 3]);
  });

  it('does nothing while a leadership moves', () => {
    const start = cluster(racks('---'), [{ name: 't', shards: 3, factor: 1 }]);
    const rows = [
      ['b1', 'b2'],
      ['b1', 'b2'],
      ['b1', 'b2'],
    ].map((set, i) => row(`stream:t/${i}`, set));
    const skewed = { ...start, resources: start.resources.map((r) => ({ ...r, replicationFactor: 2 })) };
    const idle = viewOf(withRows(skewed, rows));
    expect(levelStep(idle, copyTargets(idle), any)).not.toBeNull();
    const moving = rows.map((a, i) =>
      i > 0
        ? a
        : {
            ...a,
            move: {
              role: 'leader' as const,
              from: 'b1',
              to: 'b2',
              step: 'staged' as const,
              reason: 'balance' as const,
              copied: false,
              drops: null,
              startedAtMs: 0,
              progressAtMs: 0,
            },
          },
    );
    const busy = viewOf(withRows(skewed, moving));
    expect(levelStep(busy, copyTargets(busy), any)).toBeNull();
  });

  it('lets shards whose moves keep failing wait for the others', () => {
    const rows = [
      ['b1', 'b2'],
      ['b1', 'b2'],
      ['b1', 'b2'],
    ].map((set, i) => row(`stream:t/${i}`, set));
    const start = cluster(racks('---'), [{ name: 't', shards: 3, factor: 2 }]);
    const first = (failed: readonly number[]): number => {
      const view = viewOf(
        withRows(
          start,
          rows.map((a, i) => ({ ...a, failedMoves: failed[i] ?? 0 })),
        ),
      );
      return levelStep(view, copyTargets(view), any)?.shard ?? NONE;
    };
    const chosen = first([0, 0, 0]);
    const failed = [0, 1, 2].map((s) => (s === chosen ? 1 : 0));
    expect(first(failed)).not.toBe(chosen);
  });
});

describe('conflicts', () => {
  const of = (letters: string, policy: 'broker' | 'zone' | 'majority', factor = 3) => {
    const view = viewOf(cluster(racks(letters), [{ name: 't', shards: 60, factor }], { zonePolicy: policy }));
    return conflicts(view, copyTargets(view));
  };

  it('say which zone, its part, the limit and what either policy costs, before anything is placed', () => {
    const found = of('ABCAB', 'broker');
    expect(found).toMatchObject([
      { zone: 'A', brokersShare: '2/5', limit: '1/3', policy: 'broker', shardsDoubled: 12 },
      { zone: 'B', brokersShare: '2/5', limit: '1/3', policy: 'broker', shardsDoubled: 12 },
    ]);
    expect(found[0]?.detail).toContain('12 lose their majority');
    expect(found[0]?.detail).toContain('30 to 60 copies where level is 36');
  });

  it('are none where the largest zone has at most its part', () => {
    expect(of('AAABBCCDD', 'broker')).toEqual([]);
    expect(of('ABCABC', 'zone')).toEqual([]);
    expect(of('-----', 'zone')).toEqual([]);
    expect(of('AAAA', 'zone')).toEqual([]);
    expect(of('ABCAB', 'broker', 1)).toEqual([]);
  });

  it('say that a majority cannot be kept, and what the limit is raised to', () => {
    const found = of('AAAAB', 'majority');
    expect(found.map((c) => c.zone)).toEqual(['A']);
    expect(found[0]?.detail).toContain('the limit of 1 a zone is raised to 2');
  });
});
