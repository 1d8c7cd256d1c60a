import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { plan, simulate, type ClusterFile, type Phase } from '../../placement/index.ts';
import { bestPromotions, fewestMoves, levelness } from './oracle.ts';
import { judgeCalm, judgeEnd, leadersAfterFirstPass, operator } from './support/judge.ts';
import { randomCluster } from './support/random-cluster.ts';

/** Passes that no cluster of these sizes may need. */
const MAX_PASSES = 4_000;

/** Printed with every failure; set EVENKEEL_SEED to look for others. */
const SEED = Number(process.env['EVENKEEL_SEED'] ?? 19_507);
const RUNS = Number(process.env['EVENKEEL_RUNS'] ?? 1);

function check(
  name: string,
  runs: number,
  shape: Parameters<typeof randomCluster>[0],
  judge: (file: ClusterFile, phase: Phase) => void,
): void {
  it(`${name} (${runs * RUNS} clusters, seed ${SEED})`, () => {
    fc.assert(
      fc.property(randomCluster(shape), fc.nat({ max: 6 }), (start, passes) => {
        // Some passes in, moves are in flight: what goes on from there must be as good.
        const file =
          passes === 0
            ? start
            : (simulate(start, { events: [], maxPasses: passes }, { plan, ...operator }).phases[0]?.cluster ??
              start);
        const { phases } = simulate(file, { events: [], maxPasses: MAX_PASSES }, { plan, ...operator });
        const phase = phases[0];
        if (phase === undefined) throw new Error('no phase');
        judgeCalm(file, phase);
        judge(file, phase);
      }),
      { seed: SEED, numRuns: runs * RUNS },
    );
  });
}

describe('random clusters', () => {
  check(
    'weights and skews: level with the fewest leadership moves',
    300,
    { brokers: 12, resources: 6, shards: 14, weights: true, skewed: true, fresh: true },
    (file, phase) => {
      const least = fewestMoves(file.brokers, leadersAfterFirstPass(file, phase));
      const made = phase.moves.filter((move) => move.role === 'leader').length;
      const inFlight = file.assignments.filter((row) => row.move?.role === 'leader').length;
      judgeEnd(phase);
      expect({ made, minimum: phase.minimumLeaderMoves }).toEqual({
        made: least + inFlight,
        minimum: least + inFlight,
      });
    },
  );
  check(
    'equal weights: the same',
    300,
    { brokers: 12, resources: 6, shards: 14, skewed: true, fresh: true },
    (file, phase) => {
      const least = fewestMoves(file.brokers, leadersAfterFirstPass(file, phase));
      const made = phase.moves.filter((move) => move.role === 'leader').length;
      const inFlight = file.assignments.filter((row) => row.move?.role === 'leader').length;
      judgeEnd(phase);
      expect({ made, minimum: phase.minimumLeaderMoves }).toEqual({
        made: least + inFlight,
        minimum: least + inFlight,
      });
    },
  );
  check(
    'drains, down brokers, zones and weights',
    300,
    {
      brokers: 12,
      resources: 5,
      shards: 12,
      weights: true,
      skewed: true,
      zones: true,
      troubles: true,
      fresh: true,
    },
    (file, phase) => {
      const leaders = leadersAfterFirstPass(file, phase);
      const live = file.brokers.filter((row) => row.lifecycle === 'live').length;
      if (phase.minimumLeaderMoves === null || live === 0) return;
      const least = fewestMoves(file.brokers, leaders);
      const made = phase.moves.filter((move) => move.role === 'leader').length;
      const inFlight = file.assignments.filter((row) => row.move?.role === 'leader').length;
      judgeEnd(phase);
      expect({ made, minimum: phase.minimumLeaderMoves }).toEqual({
        made: least + inFlight,
        minimum: least + inFlight,
      });
    },
  );
  check(
    'everything at once stays calm',
    300,
    {
      brokers: 14,
      resources: 5,
      shards: 12,
      weights: true,
      skewed: true,
      zones: true,
      troubles: true,
      fresh: true,
      caps: true,
      outOfSync: true,
      ephemeral: true,
    },
    () => {},
  );
});
void bestPromotions;
void levelness;
