import type { ClusterFile } from './cluster-file.ts';
import { applyAction, EventRefused, type Operator, type SimAction } from './events.ts';
import type {
  ConflictRow,
  Levels,
  Plan,
  Reports,
  Snapshot,
  Step,
  UnspreadRow,
  Vector,
  WaitingRow,
} from './plan-types.ts';
import { SimCluster, type FinishedMove } from './sim-cluster.ts';

/** Passes of a phase when the caller names no other number. */
export const DEFAULT_MAX_PASSES = 100_000;

export interface SimEvent {
  readonly action: SimAction;
  /** Applied so long after the event before it, settled or not; `null`: once settled. Virtual ms. */
  readonly afterMs: number | null;
  /** As it was written, for the answer. */
  readonly source: unknown;
}

export interface SimulateOptions {
  readonly events: readonly SimEvent[];
  /** Most passes of one phase. */
  readonly maxPasses: number;
}

/** The decisions that are simulated. */
export interface Planner extends Operator {
  plan(snapshot: Snapshot, reports: Reports): Plan;
}

/** One write, as `simulate` prints it. */
export interface SimStep {
  /** Counted from 1 in each phase; 0: made by the event itself. */
  readonly pass: number;
  readonly step: Step['step'];
  readonly shard: string;
  readonly role: Step['role'];
  readonly from: string | null;
  readonly to: string | null;
  readonly drops: string | null;
  readonly reason: Step['reason'];
  readonly copies: boolean;
  /** Optional steps only. */
  readonly vector?: { readonly before: Vector; readonly after: Vector };
}

export interface Phase {
  readonly event: unknown;
  readonly settled: boolean;
  readonly passes: number;
  /** The clock at the phase's end. */
  readonly virtualMs: number;
  readonly steps: readonly SimStep[];
  readonly moves: readonly FinishedMove[];
  readonly minimumLeaderMoves: number | null;
  readonly waiting: readonly WaitingRow[];
  readonly unplaceable: readonly WaitingRow[];
  readonly unspread: readonly UnspreadRow[];
  readonly conflicts: readonly ConflictRow[];
  readonly levels: Levels;
  readonly cluster: ClusterFile;
}

export interface Simulation {
  /** The last phase settled, and none ran out of passes. */
  readonly settled: boolean;
  readonly passes: number;
  readonly phases: readonly Phase[];
}

/**
 * Runs pass after pass over a cluster and carries every step out at once, until nothing is wanted, then lets the
 * next event happen (contract, section 3). Time is virtual: passes take none, and it goes on to the next
 * deadline only when a pass writes nothing. Throws `EventRefused` for an event that the cluster does not take.
 */
export function simulate(file: ClusterFile, options: SimulateOptions, planner: Planner): Simulation {
  const cluster = new SimCluster(file);
  const phases: Phase[] = [];
  let startMs = 0;
  const events: readonly (SimEvent | null)[] = [null, ...options.events];
  for (const [i, event] of events.entries()) {
    const steps = event === null ? [] : happen(cluster, event, i, planner);
    startMs = cluster.nowMs;
    const nextAfterMs = events[i + 1]?.afterMs ?? null;
    const untilMs = nextAfterMs === null ? null : startMs + nextAfterMs;
    const phase = new PhaseRun(cluster, planner, steps);
    const exhausted = !phase.run(options.maxPasses, untilMs);
    phases.push(phase.result(event?.source ?? null));
    if (exhausted) break;
    if (untilMs !== null) cluster.nowMs = Math.max(cluster.nowMs, untilMs);
  }
  const complete = phases.length === events.length;
  return {
    settled: complete && phases.at(-1)?.settled === true,
    passes: phases.reduce((sum, phase) => sum + phase.passes, 0),
    phases,
  };
}

/** What the next pass over a cluster would write, at the time of its export. */
export function planFile(file: ClusterFile, planner: Pick<Planner, 'plan'>): Plan {
  const cluster = new SimCluster(file);
  cluster.beginPass();
  return planner.plan(cluster.snapshot(), cluster.reports());
}

function happen(cluster: SimCluster, event: SimEvent, number: number, planner: Planner): SimStep[] {
  try {
    return applyAction(cluster, event.action, planner).map((step) => printed(step, 0));
  } catch (error) {
    if (!(error instanceof EventRefused)) throw error;
    throw new EventRefused(`event ${number} (${event.action.type}): ${error.message}`);
  }
}

/** One phase: from an event until nothing is wanted. */
class PhaseRun {
  readonly #cluster: SimCluster;
  readonly #planner: Planner;
  readonly #steps: SimStep[];
  readonly #moves: FinishedMove[] = [];
  #passes = 0;
  #settled = false;
  #first: Plan | null = null;
  #last: Plan | null = null;

  constructor(cluster: SimCluster, planner: Planner, steps: SimStep[]) {
    this.#cluster = cluster;
    this.#planner = planner;
    this.#steps = steps;
  }

  /** False: it ran out of passes. At `untilMs` the phase ends, settled or not. */
  run(maxPasses: number, untilMs: number | null): boolean {
    const cluster = this.#cluster;
    while (this.#passes < maxPasses) {
      const plan = this.#pass();
      if (plan.steps.length > 0 || cluster.awaitsCopies) continue;
      const deadlineMs = plan.nextDeadlineMs;
      if (deadlineMs === null) {
        this.#settled = true;
        return true;
      }
      if (deadlineMs <= cluster.nowMs) {
        throw new Error(
          `a pass at ${cluster.nowMs} ms wrote nothing and names a deadline at ${deadlineMs} ms`,
        );
      }
      if (untilMs !== null && deadlineMs >= untilMs) return true;
      cluster.nowMs = deadlineMs;
    }
    return false;
  }

  result(event: unknown): Phase {
    const cluster = this.#cluster;
    // A phase cut short ends on a plan that was carried out: the answer is about what came of it.
    const stale = this.#last === null || this.#last.steps.length > 0;
    const last =
      stale || this.#last === null ? this.#planner.plan(cluster.snapshot(), cluster.reports()) : this.#last;
    return {
      event,
      settled: this.#settled,
      passes: this.#passes,
      virtualMs: cluster.virtualMs,
      steps: this.#steps,
      moves: this.#moves,
      minimumLeaderMoves: (this.#first ?? last).minimumLeaderMoves,
      waiting: last.waiting,
      unplaceable: last.unplaceable,
      unspread: last.unspread,
      conflicts: last.conflicts,
      levels: last.levels,
      cluster: cluster.file(),
    };
  }

  #pass(): Plan {
    const cluster = this.#cluster;
    cluster.beginPass();
    this.#passes++;
    const plan = this.#planner.plan(cluster.snapshot(), cluster.reports());
    for (const step of plan.steps) {
      const finished = cluster.carryOut(step);
      if (finished !== null) this.#moves.push(finished);
      this.#steps.push(printed(step, this.#passes));
    }
    this.#first ??= plan;
    this.#last = plan;
    return plan;
  }
}

function printed(step: Step, pass: number): SimStep {
  return {
    pass,
    step: step.step,
    shard: step.shard,
    role: step.role,
    from: step.from,
    to: step.to,
    drops: step.drops,
    reason: step.reason,
    copies: step.copies,
    ...(step.vector === null ? {} : { vector: step.vector }),
  };
}
