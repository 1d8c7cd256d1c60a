import { z } from 'zod';
import { EvenkeelError } from '../errors.ts';
import { counterSchema, idSchema } from './rpc-schemas.ts';
import { asAnswer } from './rpc-shard.ts';
import { defineRead, defineWrite } from './rpc-types.ts';

const configured = z.object({ id: z.string(), address: z.string(), voter: z.boolean() });

const status = defineRead({
  name: 'raft.status',
  summary: 'Consensus as the node that answers sees it',
  params: {},
  answer: {
    nodeId: z.string(),
    role: z.enum(['leader', 'follower', 'candidate', 'learner']),
    commitIndex: counterSchema,
    appliedIndex: counterSchema,
    lastIndex: counterSchema,
    members: z.array(configured),
    ready: z.boolean(),
  },
  http: { verb: 'GET', path: '/raft' },
  handler({ plane }) {
    const { role, commitIndex, appliedIndex, lastIndex, members, ready } = plane.raftStatus();
    return { nodeId: plane.nodeId, role, commitIndex, appliedIndex, lastIndex, members, ready };
  },
});

const members = defineRead({
  name: 'member.list',
  summary: 'The members of the configuration in the log',
  params: {},
  answer: { items: z.array(configured) },
  http: { verb: 'GET', path: '/members' },
  handler: ({ plane }) => ({ items: plane.raftStatus().members }),
});

const transfer = defineWrite({
  name: 'raft.transfer',
  summary: 'Hand the leadership to another voter, or to whichever has the most of the log',
  params: { to: idSchema.optional() },
  answer: { from: idSchema, to: idSchema, term: counterSchema, leaderId: idSchema },
  http: { verb: 'POST', path: '/raft/transfer' },
  async handler(context, { to }) {
    const params = { to: to ?? null, deadlineMs: context.remainingMs() };
    const answer = asAnswer(await context.askLeader('raft.transfer', params));
    // The node that was asked may not have heard of the new leader yet.
    return { ...answer, leaderId: answer['to'] };
  },
});

const snapshot = defineWrite({
  name: 'raft.snapshot',
  summary: 'Take a snapshot now and compact the log behind it, on the node that answers or the member named',
  params: { member: idSchema.optional() },
  answer: { id: idSchema, index: counterSchema },
  http: { verb: 'POST', path: '/raft/snapshot' },
  async handler(context, { member }) {
    const { plane } = context;
    const ids = plane.raftStatus().members.map(({ id }) => id);
    if (member !== undefined && !ids.includes(member)) {
      throw new EvenkeelError('not_found', `no member "${member}"; the members are ${ids.join(', ')}`);
    }
    const asked = member ?? plane.nodeId;
    return asAnswer(await plane.askMember(asked, 'raft.snapshot', {}, context.remainingMs()));
  },
});

export const RAFT_METHODS = [status, members, transfer, snapshot];
