import fc from 'fast-check';
import { drained } from '../../support/drained.ts';
import { describe, expect, it } from 'vitest';
import { operator, plan, planFile, type ClusterFile, type Plan } from '../../../placement/index.ts';
import { exportCluster, parseClusterFile } from '../../../src/cluster-file/index.ts';
import type { RowResult } from '../../../src/command/index.ts';
import { InlinePlanner } from '../../../src/control/index.ts';
import { rowOf } from '../../../src/control/placement-rows.ts';
import { ReportBook } from '../../../src/control/reports.ts';
import { randomCluster } from '../../placement/support/random-cluster.ts';
import { RUNS, SEED } from '../../placement/support/seed.ts';
import { Harness, importOf } from '../apply/harness.ts';

const CLUSTERS = 200 * RUNS;
/** Steps that one cluster is followed for; more than most need to settle. */
const MAX_PASSES = 12;

/** A cluster as its Raft leader holds it, with brokers that do at once what they are told. */
class Live {
  readonly h = new Harness();
  readonly #planner = new InlinePlanner(this.h.state, plan);

  constructor(file: ClusterFile, timeMs: number) {
    const { brokers, resources, assignments, policy } = file;
    const rows = { brokers: [...brokers], resources: [...resources], assignments: [...assignments] };
    for (const command of importOf(rows, { policy })) this.h.ok(command);
    // An imported broker is heard only once it has registered.
    for (const { id, lifecycle, zone, maxShards, weight } of brokers) {
      if (lifecycle === 'live' || lifecycle === 'draining') this.h.register(id, { zone, maxShards, weight });
    }
    this.h.timeMs = timeMs;
  }

  /** What the leader would plan, from the replicated state and its book of reports. */
  async plan(): Promise<Plan> {
    const { state, timeMs } = this.h;
    const book = new ReportBook(timeMs);
    const moving = state.assignments.list().filter(({ move }) => move !== null);
    const reports = book.view(moving, state.brokers, {
      leasedUntilMs: new Map(),
      unheard: new Set(),
      unconfirmed: new Map(),
    });
    return this.#planner.fullPlan(() => ({ nowMs: timeMs, reports }));
  }

  /** What a user would plan, from what `export` prints. */
  planOfExport(): Plan {
    const text = JSON.stringify(drained(exportCluster(this.h.state, this.h.timeMs)));
    return planFile(parseClusterFile(text), { plan, ...operator });
  }

  write(planned: Plan): void {
    for (const step of planned.steps) {
      const row = rowOf(step, this.h.state);
      if (row === null) throw new Error(`${step.shard} is no shard`);
      const [result] = this.h.ok({ type: 'placement', rows: [row] }) as RowResult[];
      expect(result, JSON.stringify(step)).toMatchObject({ result: 'accepted' });
    }
  }

  /** Leaders that live confirm; every destination is in sync at once; fenced leaders have drained. */
  actAsBrokers(): void {
    for (const row of [...this.h.state.assignments.list()]) {
      const serves = (id: string): boolean => ['live', 'draining'].includes(this.h.broker(id).lifecycle);
      if (!serves(row.leader) || !row.inSync.includes(row.leader)) continue;
      if (row.state === 'assigning') this.h.confirm(row.leader, row.shard);
      if (row.move === null || !serves(row.move.to)) continue;
      const inSync = [...new Set([...this.h.assignment(row.shard).inSync, row.move.to])];
      const drained = this.h.assignment(row.shard).state === 'draining';
      this.h.report(row.leader, [{ shard: row.shard, inSync, drained }]);
    }
  }
}

/** A plan as it is compared: all of it, as JSON has it, but for the hour at which a step is written. */
const plain = (planned: Plan): unknown =>
  JSON.parse(JSON.stringify(planned), (key, value: unknown) =>
    key === 'startedAtMs' || key === 'progressAtMs' ? undefined : value,
  );

// Younger than settleMs a cluster waits for brokers; the registrations of a file are older by rule.
describe('the plan of a running cluster', () => {
  // Some 14 s of work: on a loaded machine it takes what it takes.
  it(
    `is the offline plan of its export, step by step (${CLUSTERS} clusters, seed ${SEED})`,
    { timeout: 300_000 * RUNS },
    async () => {
      const shape = { brokers: 7, resources: 4, shards: 12, weights: true, zones: true, caps: true };
      const troubled = {
        ...shape,
        troubles: true,
        outOfSync: true,
        fresh: true,
        ephemeral: true,
        skewed: true,
      };
      let steps = 0;
      await fc.assert(
        fc.asyncProperty(
          randomCluster(troubled),
          fc.integer({ min: 10_000, max: 1_000_000 }),
          async (file, timeMs) => {
            const live = new Live(file, timeMs);
            live.actAsBrokers();
            for (let pass = 0; pass < MAX_PASSES; pass++) {
              const planned = await live.plan();
              expect(plain(live.planOfExport())).toEqual(plain(planned));
              steps += planned.steps.length;
              live.write(planned);
              live.actAsBrokers();
              live.h.timeMs += 40_000;
              if (planned.steps.length === 0 && planned.nextDeadlineMs === null) break;
            }
          },
        ),
        { seed: SEED, numRuns: CLUSTERS },
      );
      expect(steps).toBeGreaterThan(1_000);
    },
  );
});
