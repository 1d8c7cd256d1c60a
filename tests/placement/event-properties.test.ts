import fc from 'fast-check';
import { describe, it } from 'vitest';
import {
  operator,
  plan,
  simulate,
  splitShard,
  type ClusterFile,
  type SimAction,
} from '../../placement/index.ts';
import { judgeCalm, judgeMinimum } from './support/judge.ts';
import { judgeCopies } from './support/least.ts';
import { randomCluster, type Shape } from './support/random-cluster.ts';
import { randomEvents } from './support/random-events.ts';
import { RUNS, SEED } from './support/seed.ts';
import { judgeTotals } from './support/totals.ts';

const MAX_PASSES = 4_000;
const MAX_EVENTS = 4;
const TIMEOUT_MS = 240_000;

/** Every phase of a cluster that things happen to: calm on the way, level at its end, and no cap passed. */
function judgeEvents(file: ClusterFile, seed: number, caps: boolean): void {
  const events = randomEvents(file, { seed, most: MAX_EVENTS, caps });
  const { phases } = simulate(file, { events, maxPasses: MAX_PASSES }, { plan, ...operator });
  if (phases.length !== events.length + 1) throw new Error(`only ${phases.length} phases ran`);
  let before = file;
  for (const [i, phase] of phases.entries()) {
    // An event that comes before a restore is due ends the phase unsettled.
    const cutShort = (events[i]?.afterMs ?? null) !== null && !phase.settled;
    const at = `phase ${i}, ${JSON.stringify(phase.event)}`;
    try {
      judgeCalm(before, cutShort ? { ...phase, settled: true } : phase);
      if (!cutShort) {
        judgeTotals(phase);
        if (!caps) judgeCopies(phase);
        judgeMinimum(phase);
      }
    } catch (error) {
      throw new Error(`${at}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
    }
    before = without(phase.cluster, events[i]?.action);
  }
}

/** The rows that a phase begins with: those of a deleted resource are gone. */
function without(file: ClusterFile, action: SimAction | undefined): ClusterFile {
  if (action?.type !== 'delete') return file;
  const assignments = file.assignments.filter((row) => splitShard(row.shard).resource !== action.resource);
  return { ...file, assignments };
}

describe('a cluster that things happen to is calm, and level after each', () => {
  const shape = { brokers: 10, resources: 4, shards: 16, zones: true, skewed: true, fresh: true };

  const holds = (name: string, clusters: number, of: Shape): void => {
    const title = `${name} (${clusters * RUNS} clusters, seed ${SEED})`;
    it(title, { timeout: TIMEOUT_MS * RUNS }, () => {
      fc.assert(
        fc.property(randomCluster(of), fc.nat(), (file, seed) => judgeEvents(file, seed, of.caps === true)),
        { seed: SEED, numRuns: clusters * RUNS },
      );
    });
  };

  holds('zones', 200, shape);
  holds('weights, drains, down brokers, copies out of sync', 150, {
    ...shape,
    weights: true,
    troubles: true,
    outOfSync: true,
    ephemeral: true,
  });
  holds('caps besides', 150, { ...shape, weights: true, troubles: true, caps: true });
});
