import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { operator, plan, simulate, type ClusterFile, type Phase } from '../../placement/index.ts';
import { fewestMoves } from './oracle.ts';
import { judgeCalm, judgeEnd, judgeHandOvers, leadersAfterFirstPass } from './support/judge.ts';
import { judgeCopies } from './support/least.ts';
import { judgeTotals } from './support/totals.ts';
import { dice, randomCluster, type Shape } from './support/random-cluster.ts';
import { NO_REPORTS, snapshot } from './support/rows.ts';
import { RUNS, SEED } from './support/seed.ts';

/** Passes that no cluster of these sizes may need. */
const MAX_PASSES = 4_000;
const TIMEOUT_MS = 240_000;

function run(file: ClusterFile, passes = MAX_PASSES): Phase {
  const phase = simulate(file, { events: [], maxPasses: passes }, { plan, ...operator }).phases[0];
  if (phase === undefined) throw new Error('no phase');
  return phase;
}

/** Judges a random cluster, from its start or from some passes in, where moves are in flight. */
function holds(
  name: string,
  clusters: number,
  shape: Shape,
  judge: (file: ClusterFile, phase: Phase) => void,
): void {
  const title = `${name} (${clusters * RUNS} clusters, seed ${SEED})`;
  it(title, { timeout: TIMEOUT_MS * RUNS }, () => {
    fc.assert(
      fc.property(randomCluster(shape), fc.nat({ max: 6 }), (start, passes) => {
        const file = passes === 0 ? start : run(start, passes).cluster;
        const phase = run(file);
        judgeCalm(file, phase);
        judgeTotals(phase);
        judgeHandOvers(phase);
        if (shape.caps !== true) judgeCopies(phase);
        expect(run(phase.cluster).steps, 'simulated again').toEqual([]);
        const isSound = shape.caps !== true && shape.outOfSync !== true;
        const isLive = file.brokers.some((row) => row.lifecycle === 'live');
        if (passes === 0 && isSound && isLive) expect(phase.minimumLeaderMoves).not.toBeNull();
        judge(file, phase);
      }),
      { seed: SEED, numRuns: clusters * RUNS },
    );
  });
}

/** Level at the end, with as few leadership moves as an independent flow finds; those in flight at the start are made. */
function levelAndMinimal(file: ClusterFile, phase: Phase): void {
  const live = file.brokers.some((row) => row.lifecycle === 'live');
  if (phase.minimumLeaderMoves === null || !live) return;
  judgeEnd(phase);
  const inFlight = file.assignments.filter((row) => row.move?.role === 'leader').length;
  const least = fewestMoves(file.brokers, leadersAfterFirstPass(file, phase)) + inFlight;
  const made = phase.moves.filter((move) => move.role === 'leader').length;
  expect({ made, minimum: phase.minimumLeaderMoves }).toEqual({ made: least, minimum: least });
}

describe('random clusters are calm, and level with the fewest leadership moves', () => {
  const skewed = { brokers: 12, resources: 6, shards: 14, skewed: true, fresh: true };

  holds('equal weights', 400, skewed, (file, phase) => {
    expect(phase.minimumLeaderMoves).not.toBeNull();
    levelAndMinimal(file, phase);
  });
  holds('weights', 400, { ...skewed, weights: true }, (file, phase) => {
    expect(phase.minimumLeaderMoves).not.toBeNull();
    levelAndMinimal(file, phase);
  });
  holds(
    'drains, down brokers, zones and weights',
    400,
    { ...skewed, resources: 5, weights: true, zones: true, troubles: true },
    levelAndMinimal,
  );
  holds(
    'copies out of sync and ephemeral shards besides',
    300,
    { ...skewed, resources: 5, weights: true, zones: true, troubles: true, outOfSync: true, ephemeral: true },
    levelAndMinimal,
  );
  holds(
    'up to 30 brokers',
    100,
    {
      brokers: 30,
      resources: 5,
      shards: 36,
      weights: true,
      zones: true,
      troubles: true,
      skewed: true,
      fresh: true,
    },
    levelAndMinimal,
  );
  // Where a cap could bind no minimum is claimed; where none could it is, and kept.
  holds(
    'caps and everything at once',
    400,
    {
      brokers: 14,
      resources: 5,
      shards: 12,
      weights: true,
      zones: true,
      caps: true,
      troubles: true,
      outOfSync: true,
      ephemeral: true,
      skewed: true,
      fresh: true,
    },
    levelAndMinimal,
  );
});

describe('a plan', () => {
  it(`is the same whatever the order of its rows (${200 * RUNS} clusters, seed ${SEED})`, () => {
    const shape = {
      ...{ brokers: 12, resources: 5, shards: 10, weights: true, zones: true, caps: true },
      skewed: true,
    };
    fc.assert(
      fc.property(randomCluster({ ...shape, troubles: true, fresh: true }), fc.nat(), (file, seed) => {
        const roll = dice(seed);
        const shuffled = <T>(rows: readonly T[]): T[] =>
          rows
            .map((row) => ({ row, key: roll(1_000_000) }))
            .sort((a, b) => a.key - b.key)
            .map(({ row }) => row);
        const other = {
          ...file,
          brokers: shuffled(file.brokers),
          resources: shuffled(file.resources),
          assignments: shuffled(file.assignments),
        };
        const made = (rows: ClusterFile): string => JSON.stringify(plan(snapshot(rows), NO_REPORTS));
        expect(made(other)).toBe(made(file));
      }),
      { seed: SEED, numRuns: 200 * RUNS },
    );
  });
});
