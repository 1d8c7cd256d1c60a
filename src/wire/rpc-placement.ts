import { z } from 'zod';
import type { Policy } from '../../placement/index.ts';
import { EvenkeelError } from '../errors.ts';
import { countLevels } from './rpc-levels.ts';
import { countReplication } from './rpc-replication.ts';
import { counterSchema, policySchema } from './rpc-schemas.ts';
import { asAnswer } from './rpc-shard.ts';
import { defineRead, defineWrite, type RpcContext } from './rpc-types.ts';

const counts = z.record(z.string(), counterSchema);
const levelsAnswer = {
  leaders: z.record(z.string(), counts),
  leadersTotal: counts,
  copiesTotal: counts,
  maxLeaderSpreadPerResource: counterSchema,
  leaderSpreadTotal: counterSchema,
  copySpreadTotal: counterSchema,
  maxCopySpreadPerResource: counterSchema,
  minZonesPerShard: counterSchema,
};

const levels = defineRead({
  name: 'placement.levels',
  summary: 'Leaders per broker of each resource and in total, copies, and how far apart brokers are',
  params: {},
  answer: levelsAnswer,
  http: { verb: 'GET', path: '/placement/levels' },
  async handler({ plane: { state }, clock, admitLarge }) {
    await admitLarge();
    const { revision } = state;
    return { revision, ...(await countLevels(state, clock)) };
  },
});

const replicationRow = z.object({
  resource: z.string(),
  copiesWanted: counterSchema,
  copiesHeld: counterSchema,
  copiesInSync: counterSchema,
  leaderless: counterSchema,
  handingOver: counterSchema,
  short: counterSchema,
  leaders: counts,
});

const replication = defineRead({
  name: 'placement.replication',
  summary:
    'Per resource: copies wanted, held, in sync; shards leaderless or short of copies; leaders per broker',
  params: {},
  answer: { items: z.array(replicationRow) },
  http: { verb: 'GET', path: '/placement/replication' },
  async handler({ plane: { state }, clock, admitLarge }) {
    await admitLarge();
    const { revision } = state;
    // Both of that revision: what is taken is taken as it is when it is asked for.
    const [{ leaders }, rows] = await Promise.all([
      countLevels(state, clock),
      countReplication(state, clock),
    ]);
    return { revision, items: rows.map((row) => ({ ...row, leaders: leaders[row.resource] ?? {} })) };
  },
});

const plan = defineRead({
  name: 'placement.plan',
  summary: 'What the next pass would write, and why',
  params: {},
  answer: { steps: z.array(z.unknown()), paused: z.boolean() },
  http: { verb: 'GET', path: '/placement/plan' },
  async handler(context) {
    await context.admitLarge();
    const plan = asAnswer(await context.askLeader('placement.plan', {}));
    return { ...plan, paused: context.plane.state.policy.paused };
  },
});

async function setPolicy(
  context: RpcContext,
  patch: Partial<Policy>,
  expectedRevision: number | null,
): Promise<{ revision: number }> {
  const { revision } = await context.propose({ type: 'setPolicy', expectedRevision, patch });
  return { revision };
}

const pause = defineWrite({
  name: 'placement.pause',
  summary: 'Start no drain, rebalance or restore; new shards are still placed, lost leaders still replaced',
  params: {},
  answer: {},
  http: { verb: 'POST', path: '/placement/pause' },
  handler: (context) => setPolicy(context, { paused: true }, null),
});

const resume = defineWrite({
  name: 'placement.resume',
  summary: 'End a pause',
  params: {},
  answer: {},
  http: { verb: 'POST', path: '/placement/resume' },
  handler: (context) => setPolicy(context, { paused: false }, null),
});

const getPolicy = defineRead({
  name: 'placement.policy.get',
  summary: 'The policy, and the revision that `expectedRevision` is compared with',
  params: {},
  answer: { policy: policySchema, policyRevision: counterSchema },
  http: { verb: 'GET', path: '/placement/policy' },
  handler: ({ plane: { state } }) => ({ policy: state.policy, policyRevision: state.policyRevision }),
});

const changeable = policySchema.partial().shape;

const changePolicy = defineWrite({
  name: 'placement.policy.set',
  summary: 'Change the keys given, leave the rest',
  params: { ...changeable, expectedRevision: counterSchema.optional() },
  answer: {},
  http: { verb: 'PATCH', path: '/placement/policy' },
  handler(context, { expectedRevision, ...given }) {
    const entries = Object.keys(changeable).flatMap((key) => {
      const value = given[key as keyof typeof changeable];
      return value === undefined ? [] : [[key, value]];
    });
    if (entries.length === 0) {
      const keys = Object.keys(changeable).join(', ');
      throw new EvenkeelError(
        'invalid_argument',
        `placement.policy.set: nothing to change; give one of ${keys}`,
      );
    }
    return setPolicy(context, Object.fromEntries(entries), expectedRevision ?? null);
  },
});

export const PLACEMENT_METHODS = [levels, replication, plan, pause, resume, getPolicy, changePolicy];
