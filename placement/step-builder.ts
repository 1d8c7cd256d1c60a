import { NONE } from './broker-table.ts';
import { failuresOf } from './failures.ts';
import type { AssignmentState, Failure, MoveRole, Reason } from './model.ts';
import type { Step, StepName, Vector, Why } from './plan-types.ts';
import type { View } from './view.ts';

/** What a decision adds to the view it has already changed. */
export interface StepFacts {
  readonly step: StepName;
  readonly role: MoveRole;
  /** Broker indices; NONE: no such broker. */
  readonly from: number;
  readonly to: number;
  readonly drops: number;
  readonly reason: Reason;
  readonly copies: boolean;
  readonly opensEpoch: boolean;
  readonly state: AssignmentState;
  readonly failedMoves: number;
  /** Absent: those of the row that still count. */
  readonly failures?: readonly Failure[];
  /** Brokers that must still be live in the incarnation decided for. */
  readonly needs: readonly number[];
  /** Of these, those that may be draining too. */
  readonly drainingToo?: readonly number[];
  readonly vector: { readonly before: Vector; readonly after: Vector } | null;
  readonly why: Why;
}

/** Turns the view's state of a shard into a decided row. Called after the view was changed. */
export class StepBuilder {
  readonly steps: Step[] = [];
  readonly #view: View;
  readonly #requirements: Step['requires'][] = [];

  constructor(view: View) {
    this.#view = view;
  }

  add(s: number, facts: StepFacts): void {
    const view = this.#view;
    const row = view.rows[s];
    if (view.touched[s] === 1) throw new Error(`two steps for ${view.shardKey(s)} in one pass`);
    view.touched[s] = 1;
    const copies = view.copies(s);
    const replicas = this.#ids(copies);
    const inSync = view.inSync(s) === copies ? replicas : this.#ids(view.inSync(s));
    const move = view.move(s);
    const failures = facts.failures ?? failuresOf(view, s);
    this.steps.push({
      step: facts.step,
      shard: view.shardKey(s),
      role: facts.role,
      from: this.#idOrNull(facts.from),
      to: this.#idOrNull(facts.to),
      drops: this.#idOrNull(facts.drops),
      reason: facts.reason,
      copies: facts.copies,
      vector: facts.vector,
      expect: row?.generation ?? 0,
      requires: this.#requires(facts),
      opensEpoch: facts.opensEpoch,
      next: {
        leader: view.brokers.id(view.leader[s] ?? NONE),
        replicas,
        inSync,
        state: facts.state,
        failedMoves: facts.failedMoves,
        ...(failures.length === 0 ? {} : { failures }),
        move: move && {
          role: move.role,
          from: this.#idOrNull(move.from),
          to: view.brokers.id(move.to),
          step: move.step,
          reason: move.reason,
          copied: move.copied,
          drops: this.#idOrNull(move.drops),
          startedAtMs: move.startedAtMs,
          progressAtMs: move.progressAtMs,
        },
      },
      why: facts.why,
    });
  }

  #ids(brokers: readonly number[]): string[] {
    return brokers.map((b) => this.#view.brokers.id(b));
  }

  #idOrNull(b: number): string | null {
    return b === NONE ? null : this.#view.brokers.id(b);
  }

  #requires({ needs, drainingToo = [] }: StepFacts): Step['requires'] {
    const live = needs.map((b) => this.#requirement(b, false));
    if (drainingToo.length === 0) return live;
    return [...live, ...drainingToo.map((b) => this.#requirement(b, true))];
  }

  /** One object a broker, shared by all steps that name it: a first placement has a million of them. */
  #requirement(b: number, allowDraining: boolean): Step['requires'][number] {
    const key = 2 * b + (allowDraining ? 1 : 0);
    const known = this.#requirements[key]?.[0];
    if (known !== undefined) return known;
    const incarnation = this.#view.brokers.rows[b]?.incarnation ?? 0;
    const requirement = { broker: this.#view.brokers.id(b), incarnation, allowDraining };
    this.#requirements[key] = [requirement];
    return requirement;
  }
}
