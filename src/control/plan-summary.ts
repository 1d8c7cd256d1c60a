import type { Plan, Step, WaitingRow } from '../../placement/index.ts';

/** Rows of a list by the code of their reason, in the order in which the reasons first come. */
export type RowsByReason = ReadonlyMap<string, { readonly count: number; readonly first: WaitingRow }>;

/** What is kept of a pass's plan: its size does not grow with the cluster's. */
export interface PlanSummary {
  /** How many there are. */
  readonly steps: number;
  readonly waiting: RowsByReason;
  readonly unplaceable: RowsByReason;
  readonly unspread: RowsByReason;
  /** As in `Plan`. */
  readonly minimumLeaderMoves: number | null;
  readonly nextDeadlineMs: number | null;
}

/** What a pass needs of a plan: all that it writes, and a summary. */
export interface PassPlan {
  readonly summary: PlanSummary;
  readonly steps: readonly Step[];
}

/** Reads no levels: a plan makes that table, of resources by brokers, only for who asks. */
export function passPlanOf(plan: Plan): PassPlan {
  const { steps, waiting, unplaceable, unspread, minimumLeaderMoves, nextDeadlineMs } = plan;
  const summary = {
    steps: steps.length,
    waiting: byReason(waiting),
    unplaceable: byReason(unplaceable),
    unspread: byReason(unspread),
    minimumLeaderMoves,
    nextDeadlineMs,
  };
  return { summary, steps };
}

function byReason(rows: readonly WaitingRow[]): RowsByReason {
  const found = new Map<string, { count: number; first: WaitingRow }>();
  for (const row of rows) {
    const known = found.get(row.reason);
    if (known === undefined) found.set(row.reason, { count: 1, first: row });
    else known.count++;
  }
  return found;
}
