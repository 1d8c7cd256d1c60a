import type { Plan, Reports, Snapshot } from '../../placement/index.ts';
import type { StateView } from '../state/index.ts';

/** What a pass is planned from besides the state. */
export interface PlanInput {
  /** Cluster time, whole ms. */
  readonly nowMs: number;
  readonly reports: Reports;
}

/** A plan without its table of levels, which grows with resources times brokers and is made for who asks. */
export type PassPlan = Omit<Plan, 'levels'>;

export type PlanFunction = (snapshot: Snapshot, reports: Reports) => Plan;

/** Where plans are made: on this thread, or in a worker that keeps its own copy of the state. */
export interface PlannerHost {
  /** A leadership begins: the host follows the state it was given until `stop`. */
  start(): void;
  /**
   * Plans from the state, and the input, as they are at one moment after the call. One at a time. Rejects where the
   * host is stopped meanwhile.
   */
  plan(input: () => PlanInput): Promise<PassPlan>;
  /** The same, with the levels. */
  fullPlan(input: () => PlanInput): Promise<Plan>;
  /** The leadership is over. */
  stop(): void;
  /** The node ends. */
  close(): Promise<void>;
}

/** The planner's input as this node's state has it. */
export function snapshotOf(state: StateView, nowMs: number): Snapshot {
  return {
    nowMs,
    brokers: [...state.brokers.values()],
    resources: [...state.resources.values()],
    assignments: [...state.assignments.values()],
    policy: state.policy,
    firstRegisteredAtMs: state.firstRegisteredAtMs,
  };
}

/** Plans on the calling thread: for the simulated world, tests and small clusters. */
export class InlinePlanner implements PlannerHost {
  readonly #state: StateView;
  readonly #plan: PlanFunction;

  constructor(state: StateView, plan: PlanFunction) {
    this.#state = state;
    this.#plan = plan;
  }

  start(): void {}

  plan(input: () => PlanInput): Promise<PassPlan> {
    return this.fullPlan(input);
  }

  async fullPlan(input: () => PlanInput): Promise<Plan> {
    const { nowMs, reports } = input();
    return this.#plan(snapshotOf(this.#state, nowMs), reports);
  }

  stop(): void {}

  async close(): Promise<void> {}
}
