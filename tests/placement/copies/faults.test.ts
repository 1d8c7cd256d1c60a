import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { copyTargets, levelStep, zoneStep, type CopyTargets } from '../../../placement/copies/index.ts';
import { BarrenResources } from '../../../placement/copies/barren.ts';
import type { View } from '../../../placement/view.ts';
import { dice } from '../support/random-cluster.ts';
import { RUNS, SEED } from '../support/seed.ts';
import { cluster, place, racks, row, viewOf, withRows } from './support.ts';

const CLUSTERS = 150 * RUNS;

/** Placed by its own rules, then moved about at random: whatever came of it has been counted bit by bit. */
function settled(roll: (below: number) => number): View {
  const caps = roll(3) === 0;
  const zones = 1 + roll(4);
  const brokers = Array.from({ length: 3 + roll(6) }, (_, i) => ({
    id: `b${i}`,
    zone: roll(6) === 0 ? null : `z${roll(zones)}`,
    weight: 1 + roll(2),
    cap: caps && roll(2) === 0 ? 4 + roll(16) : null,
  }));
  const resources = Array.from({ length: 1 + roll(12) }, (_, i) => ({
    name: `r${i}`,
    shards: 1 + roll(6),
    factor: 1 + roll(3),
    policy: (['broker', 'zone', 'majority'] as const)[roll(3)] ?? ('broker' as const),
  }));
  const empty = cluster(brokers, resources);
  const { view } = place(empty);
  const rows = Array.from({ length: view.shardCount }, (_, s) => s)
    .filter((s) => view.copies(s).length > 0)
    .map((s) =>
      row(
        view.shardKey(s),
        view.copies(s).map((b) => view.brokers.id(b)),
      ),
    );
  return viewOf(withRows(empty, rows));
}

function moveOne(view: View, roll: (below: number) => number): void {
  const s = roll(view.shardCount);
  if (view.counts[s] === 0) return;
  const copies = view.copies(s);
  const from = copies[1 + roll(Math.max(1, copies.length - 1))];
  const to = roll(view.brokers.count);
  if (from === undefined || copies.includes(to)) return;
  view.endMove(
    s,
    view.leader[s] ?? 0,
    copies.map((b) => (b === from ? to : b)),
  );
}

/** All that is known of the faults, in words. */
function known({ faults }: CopyTargets, resources: number): unknown {
  const path = (r: number, mode: 'keep' | 'narrow'): number => faults.path(r, mode)?.distances.length ?? 0;
  const uneven = faults.uneven();
  return {
    outside: faults.outside,
    zones: faults.zones,
    uneven,
    offQuotas: faults.offQuotas(),
    kept: uneven.map((r) => path(r, 'keep')),
    narrowed: uneven.map((r) => path(r, 'narrow')),
    each: Array.from({ length: resources }, (_, r) => faults.isUneven(r)),
  };
}

describe('faults of copies', () => {
  it(`are, kept move by move, what counting them anew says (${CLUSTERS} clusters, seed ${SEED})`, () => {
    let faulty = 0;
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1_000_000_000 }), (seed) => {
        const roll = dice(seed);
        const view = settled(roll);
        const kept = copyTargets(view);
        known(kept, view.resourceCount);
        for (let moves = 0; moves < 12; moves++) {
          moveOne(view, roll);
          kept.renewQuotas();
          expect(known(kept, view.resourceCount)).toEqual(known(copyTargets(view), view.resourceCount));
          if (kept.faults.outside > 0) faulty++;
        }
      }),
      { seed: SEED, numRuns: CLUSTERS },
    );
    expect(faulty).toBeGreaterThan(CLUSTERS);
  });
});

describe('steps 6 and 7', () => {
  it(`decide, from what was kept, as from nothing (${CLUSTERS} clusters, seed ${SEED})`, () => {
    const rules = new Set<string>();
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1_000_000_000 }), (seed) => {
        const roll = dice(seed);
        const view = settled(roll);
        const kept = copyTargets(view);
        const any = (): boolean => true;
        const decide = (targets: CopyTargets) =>
          zoneStep(view, targets, any) ?? levelStep(view, targets, any);
        for (let moves = 0; moves < 60; moves++) {
          // A look ahead keeps its quotas, dealing chooses them anew.
          if (moves % 3 === 0) kept.renewQuotas();
          const quotas = kept.quotas();
          const anew = copyTargets(view);
          anew.quotas = () => quotas;
          const move = decide(kept);
          expect(move).toEqual(decide(anew));
          if (move === null) {
            for (let n = roll(12); n >= 0; n--) moveOne(view, roll);
            continue;
          }
          rules.add(move.rule);
          const { shard, from, to } = move;
          const copies = view.finished(shard).map((b) => (b === from ? to : b));
          view.endMove(shard, view.nextLeader(shard), copies);
        }
      }),
      { seed: SEED, numRuns: CLUSTERS },
    );
    for (const rule of ['copies', 'copies_total', 'zone_limit']) expect(rules).toContain(rule);
  });
});

describe('what is looked at for the totals', () => {
  const three = (count: number) => racks('ABC'.repeat(count).slice(0, count));
  const old = Array.from({ length: 40 }, (_, i) => ({ name: `old${i}`, shards: 6, factor: 3 }));

  it('is, as new shards are dealt, their own resources alone', () => {
    const before = cluster(three(7), old);
    const { view } = place(before);
    const rows = Array.from({ length: view.shardCount }, (_, s) =>
      row(
        view.shardKey(s),
        view.copies(s).map((b) => view.brokers.id(b)),
      ),
    );
    // A broker more: the totals of the old are far off, and none of them may move here.
    const after = cluster(three(8), [...old, { name: 'young', shards: 5, factor: 3 }]);
    const { targets } = place(withRows(after, rows));
    expect(targets.view.shardCount).toBe(245);
    expect(targets.looked % 5).toBe(0);
    expect(targets.looked).toBeGreaterThan(0);
    expect(targets.looked).toBeLessThan(245);
  });

  it('is bounded, from the moment that a pass begins to move copies', () => {
    const { targets } = place(cluster(three(5), old));
    targets.looked = 10_000_000;
    expect(targets.isWeary).toBe(false);
    targets.beginLooking();
    targets.looked += 500_000;
    expect(targets.isWeary).toBe(false);
    targets.looked++;
    expect(targets.isWeary).toBe(true);
  });
});

describe('barren resources', () => {
  const ends = (...each: number[]): Uint8Array => Uint8Array.from(each);

  it('stay so while nobody gives or takes who did not the last time', () => {
    const barren = new BarrenResources(2);
    barren.begin(ends(1, 2, 3));
    barren.add(1);
    barren.begin(ends(1, 2, 0));
    expect([barren.has(0), barren.has(1)]).toEqual([false, true]);
    barren.add(0);
    barren.begin(ends(1, 0, 0));
    expect([barren.has(0), barren.has(1)]).toEqual([true, true]);
    // The first was never held against the third broker.
    barren.begin(ends(1, 2, 3));
    expect([barren.has(0), barren.has(1)]).toEqual([false, false]);
  });

  it('are looked at again once they, or what all are held against, have changed', () => {
    const barren = new BarrenResources(2);
    barren.begin(ends(1, 2));
    expect([barren.has(0), barren.has(1)]).toEqual([false, false]);
    barren.add(0);
    barren.add(1);
    barren.forget(0);
    expect([barren.has(0), barren.has(1)]).toEqual([false, true]);
    barren.forgetAll();
    expect(barren.has(1)).toBe(false);
  });
});
