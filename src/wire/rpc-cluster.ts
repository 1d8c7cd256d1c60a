import { z } from 'zod';
import type { ControlPlane } from '../control-plane.ts';
import { MAX_STATE_BYTES } from '../command/index.ts';
import { EvenkeelError } from '../errors.ts';
import { countReplication, sumReplication } from './rpc-replication.ts';
import { counterSchema } from './rpc-schemas.ts';
import { defineRead, type RpcContext } from './rpc-types.ts';

/** The longest one member, or the leader, may take to say how it is, ms: an unreachable one must not hold the answer up. */
const MEMBER_TIMEOUT_MS = 1_000;

/** Health says so from here on, %. */
const MAX_STATE_PERCENT = 80;

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

const blockedPlacement = z.object({
  reasons: z.record(z.string(), counterSchema),
  example: z.string().nullable(),
});

/** Registers what other members ask this one for their `cluster.status`. */
export function serveNodeStatus(plane: ControlPlane): void {
  plane.serve('node.status', async () => ownStatus(plane));
}

function ownStatus(plane: ControlPlane): NodeStatus {
  const { role, term, commitIndex, ready } = plane.raftStatus();
  const { appliedIndex, stateHash, hashAt: at } = plane.state;
  return { role, term, commitIndex, appliedIndex, stateHash, hashAt: at, ready };
}

async function askMembers(context: RpcContext): Promise<MemberRow[]> {
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

const checkRow = z.object({ name: z.string(), ok: z.boolean(), detail: z.string() });
export type HealthCheck = z.output<typeof checkRow>;

const health = defineRead({
  name: 'cluster.health',
  summary:
    'Whether anything needs a person: leader, members, hashes, shards without a leader or short of copies, placement that cannot go on',
  params: {},
  answer: { healthy: z.boolean(), checks: z.array(checkRow) },
  http: { verb: 'GET', path: '/cluster/health' },
  async handler(context) {
    const [members, placement] = await Promise.all([askMembers(context), placementCheck(context)]);
    const checks = [
      leaderCheck(context.plane),
      membersCheck(members),
      hashesCheck(members),
      sizeCheck(context.plane),
      ...(await shardChecks(context)),
      placement,
    ];
    return { healthy: checks.every(({ ok }) => ok), checks };
  },
});

function leaderCheck(plane: ControlPlane): HealthCheck {
  const { leaderId, term } = plane.leadership();
  const detail = leaderId === null ? `no leader in term ${term}` : `${leaderId} leads term ${term}`;
  return { name: 'leader', ok: leaderId !== null, detail };
}

function membersCheck(members: readonly MemberRow[]): HealthCheck {
  const lacking = members.filter(({ ready }) => !ready);
  const detail =
    lacking.length === 0
      ? `all ${members.length} members are ready`
      : lacking.map(({ id, role }) => `${id} is ${role === 'unreachable' ? role : 'behind'}`).join(', ');
  return { name: 'members', ok: lacking.length === 0, detail };
}

/** Past its bound the state takes nothing new; a person has to make it smaller, before that. */
function sizeCheck({ state }: ControlPlane): HealthCheck {
  const percent = Math.ceil((100 * state.bytes) / MAX_STATE_BYTES);
  const ok = percent <= MAX_STATE_PERCENT;
  const advice = ok ? '' : ': delete resources, shorten labels or abort imports before it is full';
  return {
    name: 'stateSize',
    ok,
    detail: `the state takes ${percent} % of its ${MAX_STATE_BYTES} bytes${advice}`,
  };
}

/** Members at the same index must hold the same state: a difference is a broken invariant. */
function hashesCheck(members: readonly MemberRow[]): HealthCheck {
  const byIndex = new Map<string, string>();
  for (const member of members) {
    const points = [
      member.hashAt === null ? null : { at: `mark ${member.hashAt.index}`, hash: member.hashAt.hash },
      member.stateHash === null ? null : { at: `index ${member.appliedIndex}`, hash: member.stateHash },
    ];
    for (const point of points) {
      if (point === null) continue;
      const other = byIndex.get(point.at) ?? point.hash;
      if (other !== point.hash) {
        const detail = `${member.id} holds another state than a member at the same ${point.at}`;
        return { name: 'hashes', ok: false, detail };
      }
      byIndex.set(point.at, point.hash);
    }
  }
  return { name: 'hashes', ok: true, detail: 'members at equal indexes hold equal states' };
}

async function shardChecks({ plane: { state }, clock }: RpcContext): Promise<HealthCheck[]> {
  const { leaderless, short } = sumReplication(await countReplication(state, clock));
  return [
    { name: 'leaders', ok: leaderless === 0, detail: `${leaderless} shards without a serving leader` },
    { name: 'copies', ok: short === 0, detail: `${short} shards short of in-sync copies` },
  ];
}

/** Drains, restores and placements that wait for room or a broker: nothing but an operator ends that. */
async function placementCheck(context: RpcContext): Promise<HealthCheck> {
  const name = 'placement';
  const timeoutMs = Math.min(MEMBER_TIMEOUT_MS, context.remainingMs());
  try {
    const answer = await context.plane.askLeader('placement.blocked', {}, timeoutMs);
    const { reasons, example } = blockedPlacement.parse(answer);
    if (example === null) return { name, ok: true, detail: 'no shard waits for room or for a broker' };
    const counts = Object.entries(reasons).map(([reason, count]) => `${count} ${reason}`);
    return {
      name,
      ok: false,
      detail: `shards that wait for room or a broker: ${counts.join(', ')}; ${example}`,
    };
  } catch (error) {
    if (!(error instanceof EvenkeelError)) throw error;
    return { name, ok: false, detail: `the leader does not say: ${error.message}` };
  }
}

export const CLUSTER_METHODS = [status, health];
