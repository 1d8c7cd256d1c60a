import {
  planAndFollow,
  type Assignment,
  type QuietCluster,
  type Reports,
  type Snapshot,
} from '../../placement/index.ts';
import { passPlanOf, type PassPlan } from './plan-summary.ts';

/** The rows of a snapshot, and what else is in it. */
type Rows = Pick<Snapshot, 'brokers' | 'resources' | 'assignments'>;
type Facts = Omit<Snapshot, keyof Rows>;

interface Kept {
  readonly plan: PassPlan;
  /** Of the policy and what else but time and rows the plan was made from. */
  readonly rules: string;
  /** What has moved in it was held: in another one it may go. */
  readonly phase: number;
  /** The cluster wants nothing: sees whether that stays so as rows change. */
  readonly quiet: QuietCluster | null;
}

/**
 * Plans, and keeps the answer while it stands. Where the cluster wants nothing the answer stands as long as the rows that
 * change leave it so. Where it wants nothing now but waits, and no report is under way, the same rows want nothing until
 * the plan's own deadline, however often they are asked.
 */
export class SettledPlan {
  #kept: Kept | null = null;

  /** These rows have changed, and nothing else. */
  rowsChanged(rows: readonly Assignment[]): void {
    const quiet = this.#kept?.quiet ?? null;
    if (quiet === null) this.#kept = null;
    else for (const row of rows) quiet.write(row);
  }

  /** Brokers, resources or which shards have a row have changed. */
  forget(): void {
    this.#kept = null;
  }

  /** `rows` is asked for only where they are to be planned from. */
  plan(facts: Facts, reports: Reports, rows: () => Rows): PassPlan {
    const rules = JSON.stringify([facts.policy, facts.firstRegisteredAtMs]);
    const kept = this.#kept;
    if (kept?.rules === rules && stands(kept, facts, reports)) return kept.plan;
    this.#kept = null;
    const { plan, quiet } = planAndFollow({ ...facts, ...rows() }, reports);
    const made = passPlanOf(plan);
    if (made.steps.length === 0 && reports.unconfirmed.size === 0 && (quiet !== null || isQuiet(reports)))
      this.#kept = { plan: made, rules, phase: facts.phase, quiet };
    return made;
  }
}

function stands({ plan, phase, quiet }: Kept, facts: Facts, reports: Reports): boolean {
  if (reports.unconfirmed.size > 0) return false;
  if (quiet !== null) return quiet.wantsNothing();
  return phase === facts.phase && isQuiet(reports) && facts.nowMs < (plan.summary.nextDeadlineMs ?? Infinity);
}

function isQuiet(reports: Reports): boolean {
  return reports.shards.size === 0 && reports.leasedUntilMs.size === 0 && reports.unheard.size === 0;
}
