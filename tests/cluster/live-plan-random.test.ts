import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { operator, plan, planFile, type ClusterFile, type Plan } from '../../placement/index.ts';
import { parseClusterFile } from '../../src/cluster-file/index.ts';
import { dice, randomCluster } from '../placement/support/random-cluster.ts';
import { RUNS, SEED } from '../placement/support/seed.ts';
import { LivePlans } from '../support/live-plans.ts';
import type { Moment } from '../support/plan-witness.ts';
import { Stage } from '../support/stage.ts';

const CLUSTERS = 200 * RUNS;
/** Some 50 s of work: on a loaded machine it takes what it takes. */
const TIMEOUT_MS = 600_000 * RUNS;

/** One cluster of so many sees the Raft leader change under way. */
const CLUSTERS_PER_LEADER = 20;

const SHAPE = {
  ...{ brokers: 7, resources: 4, shards: 12, weights: true, zones: true, caps: true, troubles: true },
  ...{ outOfSync: true, fresh: true, ephemeral: true, skewed: true, failed: true },
};

/**
 * What only the leader's memory holds is in no export, and must not decide. How far copies are behind: the brokers report no
 * offsets, only that a copy holds everything. When they last came nearer: a move is over before it could have stalled. Leases:
 * who is down was down in the file. And a file's brokers have been there for longer than any `settleMs`. Whether leaders
 * have confirmed and drained is in the log: only moments are compared at which all have (`PlanWitness.isSaid`).
 */
const HELD_STILL = {
  ...{ fenceTimeoutMs: 3_600_000, moveTimeoutMs: 3_600_000, moveStallMs: 7_200_000 },
  ...{ settleMs: 0, passIntervalMs: 50 },
};
/** At once, or later than the test takes: on either side of the time between a plan and its export. */
const RESTORE_AFTER_MS = [0, 3_600_000];

/** What must have been compared for each cluster, on average: a third or less of what is, wherever it depends on the machine. */
const LEAST: Readonly<Record<string, number>> = {
  compared: 3,
  steps: 0.75,
  moving: 0.5,
  'steps while moving': 0.5,
  waiting: 0.25,
  moved: 0.5,
  failed: 0.5,
  'moved by hand': 0.25,
  'another leader': 0.01,
};

/** A plan as it is compared: all of it, but for the hour at which a step is written, which has gone on since. */
const plain = (planned: Plan & { paused?: boolean }): unknown =>
  JSON.parse(JSON.stringify(planned), (key, value: unknown) =>
    key === 'startedAtMs' || key === 'progressAtMs' ? undefined : value,
  );

class Seen {
  readonly counts: Record<string, number> = {};

  add(what: string, is: boolean): void {
    this.counts[what] = (this.counts[what] ?? 0) + (is ? 1 : 0);
  }

  judge({ revision, plan: live, file }: Moment): void {
    const [online, offline] = [plain(live), plain({ ...planOf(file), paused: file.policy.paused })];
    // What says how two plans differ takes long to see that they do not.
    if (!isDeepStrictEqual(online, offline)) expect(online, `revision ${revision}`).toEqual(offline);
    const isMoving = file.assignments.some(({ move }) => move !== null);
    this.add('compared', true);
    this.add('steps', live.steps.length > 0);
    this.add('moving', isMoving);
    this.add('steps while moving', isMoving && live.steps.length > 0);
    this.add('waiting', live.waiting.length > 0);
    this.add(
      'moved',
      file.assignments.some(({ moved }) => moved !== undefined),
    );
    this.add(
      'failed',
      file.assignments.some(({ failedMoves }) => failedMoves > 0),
    );
  }
}

/** What a user would plan, from what `export` prints. */
function planOf(file: ClusterFile): Plan {
  return planFile(parseClusterFile(JSON.stringify(file)), { plan, ...operator });
}

describe('the plan of a running quorum', () => {
  const stage = new Stage();

  it(
    `is the offline plan of its export, step by step (${CLUSTERS} clusters, seed ${SEED})`,
    { timeout: TIMEOUT_MS },
    async () => {
      const live = new LivePlans(stage);
      const seen = new Seen();
      await live.start();
      const property = fc.asyncProperty(
        randomCluster(SHAPE),
        fc.constantFrom(...RESTORE_AFTER_MS),
        fc.nat(),
        async (file, restoreAfterMs, seed) => {
          try {
            await live.import({ ...file, policy: { ...file.policy, ...HELD_STILL, restoreAfterMs } });
            await live.join(file);
            const changes = seed % CLUSTERS_PER_LEADER === 0;
            if (changes) await live.changeLeader();
            seen.add('another leader', changes);
            const isMoved = await live.moveByHand(await live.copy(), dice(seed));
            if (isMoved) await live.copy();
            seen.add('moved by hand', isMoved);
          } finally {
            // A wrong plan says more than that a cluster did not come to rest.
            for (const moment of live.take()) seen.judge(moment);
          }
        },
      );
      // A cluster that fails is not made smaller: each try takes its time.
      await fc.assert(property, { seed: SEED, numRuns: CLUSTERS, endOnFailure: true });
      live.close();
      for (const [what, least] of Object.entries(LEAST)) {
        expect(seen.counts[what], `${what} of ${JSON.stringify(seen.counts)}`).toBeGreaterThan(
          least * CLUSTERS,
        );
      }
      expect(stage.watcher.faults).toEqual([]);
      await stage.cluster.sameHash();
    },
  );
});
