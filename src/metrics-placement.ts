import type { StateView } from './state/index.ts';
import { countSpreads, countReplication, perRevision, sumReplication } from './wire/index.ts';

/** What the metrics say of placement. */
export interface PlacementFigures {
  readonly maxLeaderSpread: number;
  readonly outOfLevel: number;
  readonly leaderSpreadTotal: number;
  readonly copySpreadTotal: number;
  readonly underReplicated: number;
  readonly leaderless: number;
  readonly moves: readonly MoveCount[];
}

interface MoveCount {
  readonly step: string;
  readonly reason: string;
  count: number;
}

/** The figures walk every assignment: they are taken again only when the state has changed. */
export const placementFigures = perRevision(takeFigures);

function takeFigures(state: StateView): PlacementFigures {
  const spreads = countSpreads(state);
  const { leaderless, short } = sumReplication(countReplication(state));
  return {
    maxLeaderSpread: spreads.maxLeaderSpreadPerResource,
    outOfLevel: spreads.resourcesOutOfLevel,
    leaderSpreadTotal: spreads.leaderSpreadTotal,
    copySpreadTotal: spreads.copySpreadTotal,
    underReplicated: short,
    leaderless,
    moves: countMoves(state),
  };
}

function countMoves(state: StateView): MoveCount[] {
  const counts = new Map<string, MoveCount>();
  for (const { move } of state.assignments.values()) {
    if (move === null) continue;
    const { step, reason } = move;
    const row = counts.get(`${step} ${reason}`) ?? { step, reason, count: 0 };
    row.count += 1;
    counts.set(`${step} ${reason}`, row);
  }
  return [...counts.values()];
}
