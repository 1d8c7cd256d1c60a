/** The passes of one layout, made in this process. Every row is printed as a line of JSON for `planner.ts`. */
import type * as Placement from '../placement/index.ts';
import type { Plan } from '../placement/index.ts';
import type * as Control from '../src/control/settled-plan.ts';
import { built } from './built.ts';
import { comparePlacers } from './planner-compare.ts';
import { NO_REPORTS, placedBy, type Layout } from './planner-layouts.ts';
import { emptyCluster, scenesOf, type Scene } from './planner-scenes.ts';
import type { PassRow, PlacerRow } from './planner-table.ts';
import { timed } from './planner-timing.ts';

type Made = Pick<Plan, 'steps' | 'minimumLeaderMoves'>;

export async function measurePasses(layout: Layout): Promise<void> {
  const { plan } = await built<typeof Placement>('placement/index.js');
  const { SettledPlan } = await built<typeof Control>('src/control/settled-plan.js');
  const base = emptyCluster(layout);
  const least = new Map<string, number | null>();
  const measure = <T extends Made>(name: string, run: () => T): T => {
    const { value, ...used } = timed(run);
    const { steps, minimumLeaderMoves } = value;
    least.set(name, minimumLeaderMoves);
    print({ kind: 'pass', name, ...used, steps: steps.length, leastMoves: minimumLeaderMoves });
    return value;
  };
  const settledSince = ({ snapshot, since }: Scene): (() => Made) => {
    const settled = new SettledPlan();
    if (since === undefined) return () => plan(snapshot, NO_REPORTS);
    settled.plan(since.settled, NO_REPORTS, () => since.settled);
    return () => {
      settled.rowsChanged(since.rows);
      const { steps, summary } = settled.plan(snapshot, NO_REPORTS, () => snapshot);
      return { steps, minimumLeaderMoves: summary.minimumLeaderMoves };
    };
  };
  const first = measure('first placement', () => plan(base, NO_REPORTS));
  const rows = placedBy(first);
  for (const scene of scenesOf(layout, base, rows)) measure(scene.name, settledSince(scene));
  const moves = {
    join: least.get('one broker joins') ?? null,
    skew: least.get('5 % skewed, as it is') ?? null,
  };
  for (const row of comparePlacers(layout, rows, moves)) print({ kind: 'placer', ...row });
}

function print(row: PassRow | PlacerRow): void {
  console.log(JSON.stringify(row));
}
