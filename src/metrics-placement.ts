import type { Clock } from '../raft/index.ts';
import type { StateView } from './state/index.ts';
import { countReplication, countSpreads, perRevisionInSlices, sumReplication } from './wire/index.ts';

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

/** The figures walk every assignment: in slices, and again only when the state has changed. */
export const placementFigures = perRevisionInSlices(takeFigures);

async function takeFigures(state: StateView, clock: Clock): Promise<PlacementFigures> {
  const moves = new Map<string, MoveCount>();
  for (const { move } of state.moving.values()) {
    if (move === null) continue;
    const { step, reason } = move;
    const row = moves.get(`${step} ${reason}`) ?? { step, reason, count: 0 };
    row.count += 1;
    moves.set(`${step} ${reason}`, row);
  }
  const spreads = await countSpreads(state, clock);
  const { leaderless, short } = sumReplication(await countReplication(state, clock));
  return {
    maxLeaderSpread: spreads.maxLeaderSpreadPerResource,
    outOfLevel: spreads.resourcesOutOfLevel,
    leaderSpreadTotal: spreads.leaderSpreadTotal,
    copySpreadTotal: spreads.copySpreadTotal,
    underReplicated: short,
    leaderless,
    moves: [...moves.values()],
  };
}
