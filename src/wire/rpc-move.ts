import { z } from 'zod';
import { EvenkeelError } from '../errors.ts';
import { inShardOrder } from '../state/index.ts';
import { inSlices, inTurns } from './rpc-per-revision.ts';
import {
  counterSchema,
  generationSchema,
  idSchema,
  kindSchema,
  moveRowSchema,
  nameSchema,
  shardSchema,
} from './rpc-schemas.ts';
import { asAnswer, resourceFilter } from './rpc-shard.ts';
import { defineRead, defineWrite } from './rpc-types.ts';

const moveItem = moveRowSchema.extend({ shard: shardSchema, generation: counterSchema });
export type MoveItem = z.output<typeof moveItem>;

const list = defineRead({
  name: 'move.list',
  summary: 'Moves in flight',
  params: { kind: kindSchema.optional(), resource: nameSchema.optional() },
  answer: { items: z.array(moveItem) },
  http: { verb: 'GET', path: '/shard-moves' },
  async handler({ plane: { state }, clock, admitLarge }, { kind, resource }) {
    await admitLarge();
    const { revision } = state;
    const isWanted = resourceFilter(state, { kind, resource });
    const moving = [...state.moving.values()].filter(({ shard }) => isWanted(shard));
    const items: MoveItem[] = [];
    await inSlices(await inTurns(inShardOrder(moving), clock), clock, ({ shard, generation, move }) => {
      if (move !== null) items.push({ shard, generation, ...move });
    });
    return { revision, items };
  },
});

const start = defineWrite({
  name: 'move.start',
  summary: "Hand a shard's leadership or one copy to another broker; refused, with the reason, where unsafe",
  params: {
    shard: shardSchema,
    role: z.enum(['leader', 'follower']).default('leader'),
    from: idSchema.optional(),
    to: idSchema,
    dryRun: z.boolean().default(false),
    expectedGeneration: generationSchema.optional(),
  },
  answer: { shard: shardSchema, to: idSchema },
  http: { verb: 'POST', path: '/shard-moves' },
  async handler(context, { shard, role, from, to, dryRun, expectedGeneration }) {
    if (role === 'follower' && from === undefined) {
      const message = 'move.start: "from" is needed for a follower: the broker whose copy moves';
      throw new EvenkeelError('invalid_argument', message);
    }
    const answer = await context.askLeader('move.start', {
      shard,
      role,
      from: from ?? null,
      to,
      dryRun,
      expectedGeneration: expectedGeneration ?? null,
      request: context.request,
    });
    return asAnswer(answer);
  },
});

const cancel = defineWrite({
  name: 'move.cancel',
  summary: 'Call a move off: the destination is dropped, or after the fence the old leader serves again',
  params: { shard: shardSchema, expectedGeneration: generationSchema.optional() },
  answer: { shard: shardSchema },
  http: { verb: 'DELETE', path: '/shard-moves/{shard}' },
  async handler(context, { shard, expectedGeneration }) {
    const request = context.request;
    const expected = expectedGeneration ?? null;
    return asAnswer(await context.askLeader('move.cancel', { shard, expectedGeneration: expected, request }));
  },
});

export const MOVE_METHODS = [list, start, cancel];
