import { z } from 'zod';
import type { ControlPlane } from '../control-plane.ts';
import { MAX_STATE_BYTES } from '../command/index.ts';
import { EvenkeelError } from '../errors.ts';
import { counterSchema } from './rpc-schemas.ts';
import { defineRead, type RpcContext } from './rpc-types.ts';

/** The longest one member, or the leader, may take to say how it is, ms: an unreachable one must not hold the answer up. */
export const MEMBER_TIMEOUT_MS = 1_000;

const hashAt = z.object({ index: counterSchema, hash: z.string() });
const nodeStatus = z.object({
  role: z.enum(['leader', 'follower', 'candidate', 'learner']),
  term: counterSchema,
  commitIndex: counterSchema,
  appliedIndex: counterSchema,
  stateHash: z.string(),
  hashAt,
  ready: z.boolean(),
});
type NodeStatus = z.output<typeof nodeStatus>;

const memberRow = z.object({
  id: z.string(),
  address: z.string(),
  role: z.enum(['leader', 'follower', 'candidate', 'learner', 'unreachable']),
  voter: z.boolean(),
  term: counterSchema.nullable(),
  commitIndex: counterSchema.nullable(),
  appliedIndex: counterSchema.nullable(),
  stateHash: z.string().nullable(),
  hashAt: hashAt.nullable(),
  ready: z.boolean(),
});
export type MemberRow = z.output<typeof memberRow>;

const placementStatus = z.object({
  paused: z.boolean(),
  level: z.boolean().nullable(),
  leaderMovesLeft: counterSchema.nullable(),
  movesInFlight: counterSchema,
});

export type PlacementStatus = z.output<typeof placementStatus>;

/** Registers what other members ask this one for their `cluster.status`. */
export function serveNodeStatus(plane: ControlPlane): void {
  plane.serve('node.status', async () => ownStatus(plane));
}

function ownStatus(plane: ControlPlane): NodeStatus {
  const { role, term, commitIndex, ready } = plane.raftStatus();
  const { appliedIndex, stateHash, hashAt: at } = plane.state;
  return { role, term, commitIndex, appliedIndex, stateHash, hashAt: at, ready };
}

export async function askMembers(context: RpcContext): Promise<MemberRow[]> {
  const { plane } = context;
  const timeoutMs = Math.min(MEMBER_TIMEOUT_MS, context.remainingMs());
  const rows = plane.raftStatus().members.map(async ({ id, address, voter }): Promise<MemberRow> => {
    try {
      const answer =
        id === plane.nodeId ? ownStatus(plane) : await plane.askMember(id, 'node.status', {}, timeoutMs);
      return { id, address, voter, ...nodeStatus.parse(answer) };
    } catch (error) {
      if (!(error instanceof EvenkeelError)) throw error;
      const unknown = { term: null, commitIndex: null, appliedIndex: null, stateHash: null, hashAt: null };
      return { id, address, role: 'unreachable', voter, ...unknown, ready: false };
    }
  });
  return Promise.all(rows);
}

/** The leader's view of placement; without a leader what the state alone says, `level` unknown. */
async function askPlacement(context: RpcContext): Promise<PlacementStatus> {
  const timeoutMs = Math.min(MEMBER_TIMEOUT_MS, context.remainingMs());
  try {
    return placementStatus.parse(await context.plane.askLeader('placement.status', {}, timeoutMs));
  } catch (error) {
    if (!(error instanceof EvenkeelError)) throw error;
    const { policy, moving } = context.plane.state;
    return { paused: policy.paused, level: null, leaderMovesLeft: null, movesInFlight: moving.size };
  }
}

const status = defineRead({
  name: 'cluster.status',
  summary: 'Every member as it sees itself, and where placement stands',
  params: {},
  answer: {
    clusterId: z.string(),
    members: z.array(memberRow),
    placement: placementStatus,
    state: z.object({ bytes: counterSchema, maxBytes: counterSchema }),
  },
  http: { verb: 'GET', path: '/cluster/status' },
  async handler(context) {
    const [members, placement] = await Promise.all([askMembers(context), askPlacement(context)]);
    const { clusterId, state } = context.plane;
    return { clusterId, members, placement, state: { bytes: state.bytes, maxBytes: MAX_STATE_BYTES } };
  },
});

export const CLUSTER_METHODS = [status];
