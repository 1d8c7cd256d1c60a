import { describe, expect, it } from 'vitest';
import { copyTargets } from '../../../placement/copies/index.ts';
import { Field } from '../../../placement/copies/field.ts';
import { zoneRule } from '../../../placement/copies/zone-limit.ts';
import { cluster, place, racks, viewOf, type BrokerSpec } from './support.ts';

function shares(
  brokers: readonly BrokerSpec[],
  shards: number,
  factor: number,
  policy: 'broker' | 'zone' | 'majority',
) {
  const start = cluster(brokers, [{ name: 't', shards, factor }], { zonePolicy: policy });
  const { view } = place(start);
  const targets = copyTargets(view);
  return [...view.brokers.liveList].map((b) => [targets.floor(0, b), targets.ceiling(0, b)]);
}

describe('t_b', () => {
  it('follows weight', () => {
    const brokers = [{ id: 'a', weight: 2 }, { id: 'b' }, { id: 'c' }, { id: 'd' }];
    expect(shares(brokers, 10, 2, 'broker')).toEqual([
      [8, 8],
      [4, 4],
      [4, 4],
      [4, 4],
    ]);
  });

  it('gives no broker more than one copy a shard; the rest share what is cut off', () => {
    const brokers = [
      { id: 'a', weight: 100 },
      { id: 'b', weight: 3 },
      { id: 'c', weight: 2 },
      { id: 'd', weight: 1 },
    ];
    expect(shares(brokers, 12, 2, 'broker')).toEqual([
      [12, 12],
      [6, 6],
      [4, 4],
      [2, 2],
    ]);
  });

  it('rounds what is no whole number down and up', () => {
    expect(shares(racks('-----'), 61, 3, 'broker')).toEqual(Array.from({ length: 5 }, () => [36, 37]));
  });

  it('counts a broker with a cap at its cap', () => {
    const brokers = [{ id: 'a', cap: 5 }, { id: 'b' }, { id: 'c' }, { id: 'd' }];
    expect(shares(brokers, 20, 2, 'broker')).toEqual([
      [5, 5],
      [11, 12],
      [11, 12],
      [11, 12],
    ]);
  });

  it('keeps a zone below its limit and shares the rest by weight', () => {
    expect(shares(racks('ABCDA'), 60, 3, 'zone')).toEqual([
      [30, 30],
      [40, 40],
      [40, 40],
      [40, 40],
      [30, 30],
    ]);
  });

  it('keeps a zone above its least where zones are fewer than copies', () => {
    expect(shares(racks('AAAAAAB'), 7, 2, 'zone')).toEqual([
      ...Array.from({ length: 6 }, () => [1, 2]),
      [7, 7],
    ]);
  });

  it('does not depend on where the copies of a capped broker lie', () => {
    const start = cluster(
      [{ id: 'a', cap: 4 }, { id: 'b' }, { id: 'c' }],
      [
        { name: 't', shards: 6, factor: 2 },
        { name: 'u', shards: 6, factor: 2 },
      ],
    );
    const { view } = place(start);
    const before = copyTargets(view);
    const parts = [0, 1].map((r) =>
      [...view.brokers.liveList].map((b) => [before.floor(r, b), before.ceiling(r, b)]),
    );
    expect(parts).toEqual([
      [
        [2, 2],
        [5, 5],
        [5, 5],
      ],
      [
        [2, 2],
        [5, 5],
        [5, 5],
      ],
    ]);
  });
});

describe('the parts of a cap', () => {
  /** Of broker a for two resources, of each of which it leads 2 and is to lead so many. */
  function parts(cap: number, toLead: readonly [number, number]): number[] {
    const sizes = { shards: 6, factor: 3 };
    const start = cluster(
      [{ id: 'a', cap }, { id: 'b' }, { id: 'c' }],
      [
        { name: 't', ...sizes },
        { name: 'u', ...sizes },
      ],
    );
    const { view } = place(start);
    const [a] = view.brokers.liveList;
    if (a === undefined) throw new Error('no broker is live');
    expect([view.tally.leadersOf(0, a), view.tally.leadersOf(1, a)]).toEqual([2, 2]);
    const targets = copyTargets(view, (r) => toLead[r] ?? 0);
    return [0, 1].map((r) => targets.ceiling(r, a));
  }

  it('hold what a broker is to lead, before it does', () => {
    expect(parts(6, [2, 2])).toEqual([3, 3]);
    expect(parts(6, [4, 2])).toEqual([4, 2]);
    expect(parts(6, [4, 0])).toEqual([4, 2]);
  });
});

describe('the most copies of a shard in one zone', () => {
  const field = (letters: string): Field => new Field(viewOf(cluster(racks(letters), [])).brokers);
  it.each([
    ['broker', 'AABBC', 3, 2, 2],
    ['broker', 'AAAAA', 3, 3, 3],
    ['broker', 'AAAAA', 1, 1, 1],
    ['zone', 'AABBC', 3, 1, 1],
    ['zone', 'AAABB', 3, 2, 2],
    ['zone', 'AAAAB', 5, 4, 4],
    ['majority', 'AABBC', 3, 1, 1],
    ['majority', 'AABBCC', 5, 2, 2],
    ['majority', 'AAAAB', 3, 1, 2],
    ['majority', 'AAAABBB', 7, 3, 4],
  ] as const)('`%s` in racks %s with %i copies', (policy, letters, factor, wanted, most) => {
    const rule = zoneRule(field(letters), policy, factor);
    expect([rule.wanted, rule.most]).toEqual([wanted, most]);
  });
});
