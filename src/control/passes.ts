import type { Clock, Timer } from '../../raft/index.ts';
import type { Plan, Reports, Step } from '../../placement/index.ts';
import type { RowResult } from '../command/index.ts';
import type { StateView } from '../state/index.ts';
import { unawaited } from '../unawaited.ts';
import type { PlanInput, PlannerAnswers, PlannerHost, PlannerSubjects } from './planner-host.ts';
import type { ControlLog } from './log.ts';
import type { PlanSummary } from './plan-summary.ts';
import { entriesOf, type PlacementCommand } from './placement-rows.ts';

/** Entries of one pass that may wait for their turn in the log at once. */
const ENTRIES_IN_FLIGHT = 4;

export interface PassesOptions {
  readonly clock: Clock;
  readonly state: StateView;
  readonly host: PlannerHost;
  readonly log: ControlLog;
  /** Cluster time, whole ms. */
  readonly nowMs: () => number;
  readonly reports: (nowMs: number) => Reports;
  /** Proposes in this leader's term only; resolves with the applied rows' results. */
  readonly propose: (command: PlacementCommand) => Promise<readonly RowResult[]>;
  readonly stats: PassStats;
}

/** What is kept of a plan, and the state's revision it was made from. */
export interface LastPlan {
  readonly plan: PlanSummary;
  readonly revision: number;
}

/** Counters since the process started, for metrics. Keys are stable codes. */
export interface PassStats {
  passes: number;
  lastPassMs: number;
  failedPasses: number;
  /** By `<step>/<reason>`. */
  readonly accepted: Map<string, number>;
  /** By refusal code. */
  readonly refused: Map<string, number>;
}

export function newPassStats(): PassStats {
  return { passes: 0, lastPassMs: 0, failedPasses: 0, accepted: new Map(), refused: new Map() };
}

/**
 * One pass at a time: plan, write, wait until every row is applied or refused, then the next if anything has
 * changed meanwhile. While nothing changes and no deadline comes, nothing is planned.
 */
export class Passes {
  readonly #options: PassesOptions;
  #closed = false;
  #running = false;
  #changed = true;
  #timer: Timer | null = null;
  #notBeforeMs = 0;
  #last: LastPlan | null = null;

  constructor(options: PassesOptions) {
    this.#options = options;
  }

  /** The plan of the last pass; `null` before the first. */
  get last(): LastPlan | null {
    return this.#last;
  }

  start(): void {
    this.#arm(0);
  }

  /** Something that a step may wait for has changed. */
  wake(): void {
    if (this.#changed || this.#closed) return;
    this.#changed = true;
    if (!this.#running) this.#arm(this.#notBeforeMs - this.#options.clock.now());
  }

  /** What the next pass would write, and the revision of the state that this was planned from. Writes nothing. */
  async planNow(): Promise<Plan & { readonly revision: number }> {
    const { state, host } = this.#options;
    let { revision } = state;
    const plan = await host.fullPlan(() => {
      revision = state.revision;
      return this.#input();
    });
    return { ...plan, revision };
  }

  /** An operator's question, answered from what a pass would be planned from. */
  ask<K extends keyof PlannerSubjects>(kind: K, subject: PlannerSubjects[K]): Promise<PlannerAnswers[K]> {
    return this.#options.host.ask(kind, subject, this.#input);
  }

  close(): void {
    this.#closed = true;
    if (this.#timer !== null) this.#options.clock.clearTimeout(this.#timer);
    this.#timer = null;
  }

  #arm(delayMs: number): void {
    const { clock } = this.#options;
    if (this.#timer !== null) clock.clearTimeout(this.#timer);
    this.#timer = clock.setTimeout(
      () => {
        this.#timer = null;
        unawaited(this.#turn());
      },
      Math.max(0, delayMs),
    );
  }

  /** One pass where one is due, and the timer for the next. */
  async #turn(): Promise<void> {
    const { clock, state, log, stats } = this.#options;
    if (this.#closed) return;
    const deadline = this.#last?.plan.nextDeadlineMs ?? null;
    const isDue = this.#changed || (deadline !== null && this.#options.nowMs() >= deadline);
    if (isDue) {
      this.#running = true;
      this.#changed = false;
      const beganAtMs = clock.now();
      try {
        const { planned, accepted } = await this.#pass();
        stats.passes++;
        stats.lastPassMs = clock.now() - beganAtMs;
        if (planned > 0) this.#changed = true;
        // All refused: the state moves on in its own time. Else leave the thread as long as planning took it.
        const restMs = planned > 0 && accepted === 0 ? state.policy.passIntervalMs : stats.lastPassMs;
        this.#notBeforeMs = accepted > 0 ? 0 : clock.now() + restMs;
      } catch (error) {
        this.#changed = true;
        stats.failedPasses++;
        this.#notBeforeMs = clock.now() + state.policy.passIntervalMs;
        if (!this.#isClosed())
          log.warn({ error: String(error) }, 'a placement pass failed; it is tried again');
      }
      this.#running = false;
      if (this.#isClosed()) return;
    }
    this.#arm(this.#delayMs());
  }

  #delayMs(): number {
    const { clock, state, nowMs } = this.#options;
    if (this.#changed) return this.#notBeforeMs - clock.now();
    const deadline = this.#last?.plan.nextDeadlineMs ?? null;
    const untilDeadlineMs = deadline === null ? Infinity : deadline - nowMs();
    return Math.min(state.policy.passIntervalMs, Math.max(1, untilDeadlineMs));
  }

  async #pass(): Promise<{ planned: number; accepted: number }> {
    const { state, host, log } = this.#options;
    let { revision } = state;
    const { summary, slices } = await host.plan(() => {
      revision = state.revision;
      return this.#input();
    });
    const planned = summary.steps;
    if (this.#closed) return { planned, accepted: 0 };
    this.#last = { plan: summary, revision };
    if (planned === 0) return { planned, accepted: 0 };
    const { accepted, refused } = await this.#write(slices);
    log.info({ planned, accepted, refused }, 'placement pass written');
    return { planned, accepted };
  }

  /** Proposes the steps in order, a few entries at a time, and waits until each is applied or refused. */
  async #write(slices: AsyncIterable<readonly Step[]>): Promise<Totals> {
    const totals: Totals = { accepted: 0, refused: 0 };
    const inFlight = new Set<Promise<void>>();
    const failures: unknown[] = [];
    const send = async (command: PlacementCommand): Promise<void> => {
      const job: Promise<void> = this.#options
        .propose(command)
        .then((results) => this.#count(command, results, totals))
        .catch((error: unknown) => void failures.push(error))
        .finally(() => inFlight.delete(job));
      inFlight.add(job);
      if (inFlight.size >= ENTRIES_IN_FLIGHT) await Promise.race(inFlight);
      // Between any two entries, the thread sees to everything else.
      await new Promise<void>((resolve) => this.#options.clock.defer(resolve));
    };
    try {
      for await (const entry of entriesOf(slices, this.#options.state)) {
        if (this.#closed || failures.length > 0) break;
        await send(entry);
      }
    } catch (error) {
      // The rest of the plan is lost.
      failures.push(error);
    }
    await Promise.all(inFlight);
    if (failures.length > 0) throw failures[0];
    return totals;
  }

  #count(command: PlacementCommand, results: readonly RowResult[], totals: Totals): void {
    const { stats, log } = this.#options;
    command.rows.forEach((row, i) => {
      const result = results[i];
      if (result === undefined) throw new Error(`${row.shard}: the entry was applied without its result`);
      if (result.result === 'accepted') {
        totals.accepted++;
        increment(stats.accepted, `${row.step}/${row.reason}`);
        return;
      }
      totals.refused++;
      increment(stats.refused, result.result);
      const { shard, step } = row;
      log.warn({ shard, step, code: result.result, detail: result.detail }, 'placement row refused');
    });
  }

  readonly #input = (): PlanInput => {
    const nowMs = this.#options.nowMs();
    return { nowMs, reports: this.#options.reports(nowMs) };
  };

  /** Read after an await: `close` may have been called meanwhile. */
  #isClosed(): boolean {
    return this.#closed;
  }
}

interface Totals {
  accepted: number;
  refused: number;
}

function increment(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}
