import type { ControlPlane } from '../control-plane.ts';
import type { Tenure } from './tenure.ts';

/** `placement.status`: how far the cluster is from level, by the last pass. */
export interface PlacementStatus {
  readonly paused: boolean;
  /** Nothing is wanted and nothing is under way. */
  readonly level: boolean;
  /** `null`: not known yet, or no minimum can be proven (a cap binds, a copy is out of sync). */
  readonly leaderMovesLeft: number | null;
  readonly movesInFlight: number;
}

interface AbandonParams {
  readonly shard: string;
  readonly expectedGeneration: number | null;
  readonly request: { readonly session: number; readonly n: number } | null;
}

/** What operators ask of the leader's planner. Params were checked by the admin surface. */
export function serveOperators(plane: ControlPlane, tenure: () => Tenure): void {
  const { state } = plane;
  plane.serve('placement.status', async () => status(tenure(), state.policy.paused));
  plane.serve('placement.plan', async () => {
    const { passes } = tenure();
    return passes.planNow();
  });
  plane.serve('shard.abandon', async (params) => {
    const { shard, expectedGeneration, request } = params as AbandonParams;
    const command = { type: 'abandonShard', shard, expectedGeneration } as const;
    const { revision } = await tenure().propose(command, request ?? undefined);
    return { revision, shard };
  });
}

function status(tenure: Tenure, paused: boolean): PlacementStatus {
  const plan = tenure.passes.last?.plan ?? null;
  const movesInFlight = tenure.moving.size;
  const leaderMovesLeft = plan?.minimumLeaderMoves ?? null;
  const level =
    plan !== null && plan.steps.length === 0 && movesInFlight === 0 && (leaderMovesLeft ?? 0) === 0;
  return { paused, level, leaderMovesLeft, movesInFlight };
}
