import { z } from 'zod';
import { counterSchema } from './rpc-schemas.ts';
import { defineRead } from './rpc-types.ts';

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

export const RAFT_METHODS = [status, members];
