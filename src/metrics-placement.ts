import type { StateView } from './state/index.ts';
import { countLevels, countReplication, sumReplication } from './wire/index.ts';

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
export function oncePerRevision(state: StateView): () => PlacementFigures {
  let taken: { revision: number; figures: PlacementFigures } | null = null;
  return () => {
    const { revision } = state;
    if (taken?.revision !== revision) taken = { revision, figures: takeFigures(state) };
    return taken.figures;
  };
}

function takeFigures(state: StateView): PlacementFigures {
  const levels = countLevels(state);
  const live = [...state.brokers.values()].filter(({ lifecycle }) => lifecycle === 'live');
  let outOfLevel = 0;
  for (const counts of Object.values(levels.leaders)) {
    const values = live.map(({ id }) => counts[id] ?? 0);
    if (values.length > 0 && Math.max(...values) - Math.min(...values) >= 2) outOfLevel += 1;
  }
  const { leaderless, short } = sumReplication(countReplication(state));
  return {
    maxLeaderSpread: levels.maxLeaderSpreadPerResource,
    outOfLevel,
    leaderSpreadTotal: levels.leaderSpreadTotal,
    copySpreadTotal: levels.copySpreadTotal,
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
