import type { Assignment, Broker, Plan, Policy, Resource } from '../../placement/index.ts';
import type { PlanInput, PlannerQuestion } from './planner-host.ts';

/** Rows of one message: one of 100,000 would hold the sender for 80 ms. */
export const ROWS_PER_MESSAGE = 1_000;
/** Steps of one message on the way back; they are larger. */
export const STEPS_PER_MESSAGE = 250;

/** The lists of a plan that grow with the cluster, fetched part by part. */
export type PlanList = 'steps' | 'waiting' | 'unplaceable' | 'unspread' | 'conflicts';

/** A part of the state as it is now; ids without a row are gone. */
export interface StatePart {
  readonly brokers: readonly Broker[];
  readonly resources: readonly Resource[];
  readonly assignments: readonly Assignment[];
  readonly gone: {
    readonly brokers: readonly string[];
    readonly resources: readonly string[];
    readonly assignments: readonly string[];
  };
}

export type ToPlanner =
  | { readonly type: 'reset' }
  | { readonly type: 'part'; readonly part: StatePart }
  | {
      readonly type: 'work';
      readonly id: number;
      readonly input: PlanInput;
      readonly policy: Policy;
      readonly firstRegisteredAtMs: number | null;
      /** A plan, with its levels or without; or an operator's question. */
      readonly work: 'plan' | 'fullPlan' | PlannerQuestion;
    }
  /** The next rows of a list of plan `id`. */
  | { readonly type: 'fetch'; readonly id: number; readonly list: PlanList; readonly from: number };

export type FromPlanner =
  | {
      readonly type: 'planned';
      readonly id: number;
      readonly lengths: Readonly<Record<PlanList, number>>;
      readonly minimumLeaderMoves: number | null;
      readonly nextDeadlineMs: number | null;
      readonly levels: Plan['levels'] | null;
    }
  | { readonly type: 'rows'; readonly id: number; readonly list: PlanList; readonly rows: readonly unknown[] }
  | { readonly type: 'answered'; readonly id: number; readonly answer: unknown }
  | { readonly type: 'failed'; readonly id: number; readonly message: string };
