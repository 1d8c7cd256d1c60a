import fc from 'fast-check';
import { describe, it } from 'vitest';
import { operator, plan, simulate, type Assignment, type ClusterFile } from '../../placement/index.ts';
import { judgeCalm, judgeMinimum } from './support/judge.ts';
import { dice, randomCluster } from './support/random-cluster.ts';
import { RUNS, SEED } from './support/seed.ts';

const MAX_PASSES = 3_000;
const TIMEOUT_MS = 120_000;

/** Some leaderships are on their way to another copy, wherever that is: nobody planned them. */
function withMoves(file: ClusterFile, seed: number): ClusterFile {
  const roll = dice(seed);
  const assignments = file.assignments.map((row): Assignment => {
    const others = row.replicas.filter((id) => id !== row.leader);
    const to = others[roll(Math.max(1, others.length))];
    if (to === undefined || roll(3) > 0) return row;
    const times = { startedAtMs: 0, progressAtMs: 0 };
    const move = { from: row.leader, to, drops: null, copied: false, ...times };
    return { ...row, move: { role: 'leader', step: 'staged', reason: 'balance', ...move } };
  });
  return { ...file, assignments };
}

describe('moves in flight that nobody would make', () => {
  const clusters = 200 * RUNS;
  const shape = { brokers: 7, resources: 4, shards: 10, zones: true, skewed: true, fresh: true };

  it(
    `are not made good, and what is claimed as the fewest is made (${clusters} clusters, seed ${SEED})`,
    {
      timeout: TIMEOUT_MS * RUNS,
    },
    () => {
      fc.assert(
        fc.property(randomCluster(shape), fc.nat(), (cluster, seed) => {
          const file = withMoves(cluster, seed);
          const [phase] = simulate(file, { events: [], maxPasses: MAX_PASSES }, { plan, ...operator }).phases;
          if (phase === undefined) throw new Error('no phase');
          judgeCalm(file, phase);
          judgeMinimum(phase);
        }),
        { seed: SEED, numRuns: clusters },
      );
    },
  );
});
