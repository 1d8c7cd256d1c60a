import {
  abandonRefusal,
  explainShard,
  operatorCancel,
  operatorMove,
  type Explanation,
  type MoveRequest,
  type OperatorAnswer,
  type Plan,
  type Reports,
  type Snapshot,
  type Step,
} from '../../placement/index.ts';
import type { StateView } from '../state/index.ts';
import { passPlanOf, type PlanSummary } from './plan-summary.ts';
import { STEPS_PER_MESSAGE } from './planner-messages.ts';

/** What a pass is planned from besides the state. */
export interface PlanInput {
  /** Cluster time, whole ms. */
  readonly nowMs: number;
  readonly reports: Reports;
}

/** A plan that is to be carried out: a million steps are not held by who carries them out. */
export interface OpenPlan {
  readonly summary: PlanSummary;
  /**
   * Its steps in order, at most 250 at once; not more than one slice is under way besides the one that is used. Read
   * once. Rejects where the host was stopped, or planned anew, before the last was read.
   */
  readonly slices: AsyncIterable<readonly Step[]>;
}

export type PlanFunction = (snapshot: Snapshot, reports: Reports) => Plan;

/** What operators ask of the planner, by name. */
export interface PlannerAnswers {
  move: OperatorAnswer;
  cancel: OperatorAnswer;
  /** Why not; `null`: it may be given up. */
  abandon: string | null;
  /** `null`: there is no such shard. */
  explain: Explanation | null;
}

/** What each question is about: the move asked for, or a shard. */
export interface PlannerSubjects {
  move: MoveRequest;
  cancel: string;
  abandon: string;
  explain: string;
}

export type PlannerQuestion = {
  [K in keyof PlannerSubjects]: { readonly kind: K; readonly subject: PlannerSubjects[K] };
}[keyof PlannerSubjects];

/** The one place where a question is answered, on whichever thread. */
export function answerQuestion(
  snapshot: Snapshot,
  reports: Reports,
  question: PlannerQuestion,
): PlannerAnswers[keyof PlannerAnswers] {
  switch (question.kind) {
    case 'move':
      return operatorMove(snapshot, reports, question.subject);
    case 'cancel':
      return operatorCancel(snapshot, reports, question.subject);
    case 'abandon':
      return abandonRefusal(snapshot, reports, question.subject);
    case 'explain':
      return explainShard(snapshot, reports, question.subject);
  }
}

/** A kind and its own subject, as one question. */
export function questionOf<K extends keyof PlannerSubjects>(
  kind: K,
  subject: PlannerSubjects[K],
): PlannerQuestion {
  return { kind, subject } as PlannerQuestion;
}

/** Where plans are made: on this thread, or in a worker that keeps its own copy of the state. */
export interface PlannerHost {
  /** A leadership begins: the host follows the state it was given until `stop`. */
  start(): void;
  /**
   * Plans from the state, and the input, as they are at one moment after the call. One at a time. Rejects where the
   * host is stopped meanwhile.
   */
  plan(input: () => PlanInput): Promise<OpenPlan>;
  /** All of it, with the lists and the levels that only people read. */
  fullPlan(input: () => PlanInput): Promise<Plan>;
  /** The answer to an operator's question, from the state and the input as they are then. */
  ask<K extends keyof PlannerSubjects>(
    kind: K,
    subject: PlannerSubjects[K],
    input: () => PlanInput,
  ): Promise<PlannerAnswers[K]>;
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
    assignments: state.assignments.list(),
    policy: state.policy,
    firstRegisteredAtMs: state.firstRegisteredAtMs,
    phase: state.phase,
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

  async plan(input: () => PlanInput): Promise<OpenPlan> {
    const { summary, steps } = passPlanOf(await this.fullPlan(input));
    return { summary, slices: slicesOf(steps) };
  }

  async fullPlan(input: () => PlanInput): Promise<Plan> {
    const { nowMs, reports } = input();
    return this.#plan(snapshotOf(this.#state, nowMs), reports);
  }

  async ask<K extends keyof PlannerSubjects>(
    kind: K,
    subject: PlannerSubjects[K],
    input: () => PlanInput,
  ): Promise<PlannerAnswers[K]> {
    const { nowMs, reports } = input();
    return answerQuestion(
      snapshotOf(this.#state, nowMs),
      reports,
      questionOf(kind, subject),
    ) as PlannerAnswers[K];
  }

  stop(): void {}

  async close(): Promise<void> {}
}

async function* slicesOf(steps: readonly Step[]): AsyncGenerator<readonly Step[], void> {
  for (let at = 0; at < steps.length; at += STEPS_PER_MESSAGE) yield steps.slice(at, at + STEPS_PER_MESSAGE);
}
