import { z } from 'zod';
import { MAX_STATE_BYTES } from '../command/index.ts';
import type { ControlPlane } from '../control-plane.ts';
import { EvenkeelError } from '../errors.ts';
import { askMembers, MEMBER_TIMEOUT_MS, type MemberRow } from './rpc-cluster.ts';
import { concernsSchema, shardChecks, type Concerns } from './health-shards.ts';
import { defineRead, type RpcContext } from './rpc-types.ts';

/** Health says so from here on, %. */
const MAX_STATE_PERCENT = 80;

const checkRow = z.object({ name: z.string(), ok: z.boolean(), detail: z.string() });
export type HealthCheck = z.output<typeof checkRow>;

const health = defineRead({
  name: 'cluster.health',
  summary:
    'Whether anything needs a person: leader, members, hashes, shards unserved or short of copies, brokers that are gone, moves that keep failing, placement that is paused or cannot go on',
  params: {},
  answer: { healthy: z.boolean(), checks: z.array(checkRow) },
  http: { verb: 'GET', path: '/cluster/health' },
  async handler(context) {
    const [members, concerns] = await Promise.all([askMembers(context), askConcerns(context)]);
    const checks = [
      leaderCheck(context.plane),
      membersCheck(members),
      hashesCheck(members),
      sizeCheck(context.plane),
      ...(await shardChecks(context.plane.state, context.clock, concerns)),
    ];
    return { healthy: checks.every(({ ok }) => ok), checks };
  },
});

/** What only the leader knows; the reason why where it does not say. */
async function askConcerns(context: RpcContext): Promise<Concerns | string> {
  const timeoutMs = Math.min(MEMBER_TIMEOUT_MS, context.remainingMs());
  try {
    return concernsSchema.parse(await context.plane.askLeader('cluster.concerns', {}, timeoutMs));
  } catch (error) {
    if (!(error instanceof EvenkeelError)) throw error;
    return error.message;
  }
}

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

export const HEALTH_METHODS = [health];
