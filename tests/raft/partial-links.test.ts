import { describe, expect, test } from 'vitest';
import { TimedCluster } from './support/timed-cluster.ts';

const FIVE = ['n1', 'n2', 'n3', 'n4', 'n5'];
const ELECTION_TIMEOUT_MS = 1_000;

/** Time until the center leads, once every link between two others is cut while one of them led. */
function starMs(center: string, options: { rttMs: number; seed: number; closes: boolean }): number {
  const cluster = new TimedCluster(FIVE, options);
  const leadsElsewhere = (): boolean => cluster.leader !== null && cluster.leader !== center;
  cluster.run(20_000, () => cluster.leader !== null);
  if (cluster.leader === center) cluster.act(center, (core) => core.stepDown());
  cluster.run(60_000, () => {
    if (cluster.leader === center) cluster.act(center, (core) => core.stepDown());
    return leadsElsewhere();
  });
  cluster.run(1_000);
  for (const from of FIVE) {
    for (const to of FIVE) {
      if (from !== to && from !== center && to !== center) cluster.cut(from, to, options.closes);
    }
  }
  return cluster.run(60_000, () => cluster.core(center).role === 'leader');
}

/** Part of the time with a leader that commits, while a link between the two that live breaks every 3 s. */
function flapping(breakMs: number, both: boolean): { ledPart: number; terms: number } {
  const cluster = new TimedCluster(['n1', 'n2', 'n3'], { rttMs: 2, seed: 7, dead: ['n2'] });
  const isLed = (): boolean => {
    const core = cluster.leader === null ? null : cluster.core(cluster.leader);
    return core !== null && core.log.commitIndex >= core.termStartIndex;
  };
  cluster.run(10_000);
  const before = cluster.core('n1').term;
  let ledMs = 0;
  const run = (ms: number): void => {
    for (let passed = 0; passed < ms; passed += 5) {
      if (isLed()) ledMs += 5;
      cluster.run(5);
    }
  };
  for (let flap = 0; flap < 40; flap++) {
    const leader = cluster.leader ?? 'n1';
    const other = leader === 'n1' ? 'n3' : 'n1';
    cluster.cut(leader, other, true);
    if (both) cluster.cut(other, leader, true);
    run(breakMs);
    cluster.mend(leader, other);
    if (both) cluster.mend(other, leader);
    run(3_000 - breakMs);
  }
  return { ledPart: ledMs / (40 * 3_000), terms: cluster.core('n1').term - before };
}

describe('links that only some members have', () => {
  test.each([2, 50, 100, 400])(
    'five members linked by the one in the center alone: it leads within six election timeouts (RTT %i ms)',
    (rttMs) => {
      for (const center of ['n1', 'n5']) {
        for (const closes of [true, false]) {
          for (const seed of [1, 2]) {
            const ms = starMs(center, { rttMs, seed: seed * 7_919, closes });
            expect(ms).toBeLessThan(6 * ELECTION_TIMEOUT_MS + 2 * rttMs);
          }
        }
      }
    },
  );

  test.each([true, false])(
    'a socket that breaks for 50 ms every 3 s costs no leadership where the third member is dead (both ways: %s)',
    (both) => {
      expect(flapping(50, both)).toEqual({ ledPart: 1, terms: 0 });
    },
  );

  test('a break of 800 ms every 3 s costs little more than itself', () => {
    expect(flapping(800, false).ledPart).toBeGreaterThan(0.8);
  });
});
