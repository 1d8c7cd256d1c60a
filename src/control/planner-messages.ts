import type { Assignment, Broker, Plan, Policy, Resource } from '../../placement/index.ts';
import type { PlanInput, PlannerQuestion } from './planner-host.ts';
import type { PlanSummary } from './plan-summary.ts';

/** Rows of one message: one of 100,000 would hold the sender for 80 ms. */
export const ROWS_PER_MESSAGE = 1_000;
/** Rows of a plan's list in one message on the way back; they are larger. */
export const STEPS_PER_MESSAGE = 250;
/** Of the leaders by resource, each a number for every broker: as many numbers, but at least one resource. */
export const COUNTS_PER_MESSAGE = 5_000;

/** What of a plan grows with the cluster: read slice by slice, once, from the beginning. */
export interface PlanLists extends Pick<
  Plan,
  'steps' | 'waiting' | 'unplaceable' | 'unspread' | 'conflicts'
> {
  /** `Levels.leaders`. */
  readonly leaders: readonly (readonly [resource: string, byBroker: Readonly<Record<string, number>>])[];
}

/** The rest of it. */
export interface PlanRest extends Pick<Plan, 'minimumLeaderMoves' | 'nextDeadlineMs'> {
  readonly levels: Omit<Plan['levels'], 'leaders'>;
}

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

/** What is planned from besides the rows. */
export interface PlannerFacts {
  readonly input: PlanInput;
  readonly policy: Policy;
  readonly firstRegisteredAtMs: number | null;
  readonly phase: number;
}

/**
 * What is asked of the planner's thread, and what it answers. The steps of a plan, and the lists of a full one, stay there
 * under the plan's number until they are read, or until the next of the same kind is asked for.
 */
export interface PlannerCalls {
  plan: { params: PlannerFacts; answer: { readonly plan: number; readonly summary: PlanSummary } };
  fullPlan: { params: PlannerFacts; answer: { readonly plan: number; readonly rest: PlanRest } };
  question: { params: PlannerFacts & { readonly question: PlannerQuestion }; answer: unknown };
  /** The next rows of a list; `left`: how many come after them. */
  rows: {
    params: { readonly plan: number; readonly list: keyof PlanLists };
    answer: { readonly rows: readonly unknown[]; readonly left: number };
  };
}

export type PlannerCall = {
  [K in keyof PlannerCalls]: { readonly call: K; readonly params: PlannerCalls[K]['params'] };
}[keyof PlannerCalls];

export type ToPlanner =
  /** The copy of the state begins anew. */
  | { readonly type: 'reset' }
  | { readonly type: 'part'; readonly part: StatePart }
  | { readonly type: 'call'; readonly id: number; readonly call: PlannerCall };

export type FromPlanner =
  | { readonly type: 'answered'; readonly id: number; readonly answer: unknown }
  | { readonly type: 'failed'; readonly id: number; readonly message: string };
