import type { Plan, Reports, Snapshot } from '../../placement/index.ts';
import type { StateView } from '../state/index.ts';

/** What a pass is planned from besides the state. */
export interface PlanInput {
  /** Cluster time, ms. */
  readonly nowMs: number;
  readonly reports: Reports;
}

/** Where plans are made: on this thread, or in a worker that keeps its own copy of the state. */
export interface PlannerHost {
  /** From here on `plan` may be called. The host follows the state it was given. */
  start(): void;
  /** Plans from the state as it is at the call. */
  plan(input: PlanInput): Promise<Plan>;
  stop(): Promise<void>;
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
  readonly #plan: (snapshot: Snapshot, reports: Reports) => Plan;

  constructor(state: StateView, plan: (snapshot: Snapshot, reports: Reports) => Plan) {
    this.#state = state;
    this.#plan = plan;
  }

  start(): void {}

  async plan(input: PlanInput): Promise<Plan> {
    return this.#plan(snapshotOf(this.#state, input.nowMs), input.reports);
  }

  async stop(): Promise<void> {}
}
