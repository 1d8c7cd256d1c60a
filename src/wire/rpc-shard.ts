import { z } from 'zod';
import type { Clock } from '../../raft/index.ts';
import {
  assignmentRow,
  compareShards,
  compareStrings,
  shardKey,
  splitShard,
  type Assignment,
  type ResourceKind,
} from '../../placement/index.ts';
import { EvenkeelError } from '../errors.ts';
import { inShardOrder, type AssignmentRow, type StateView } from '../state/index.ts';
import { inSlices, inTurns } from './rpc-per-revision.ts';
import {
  assignmentRowSchema,
  counterSchema,
  generationSchema,
  idSchema,
  kindSchema,
  nameSchema,
  shardSchema,
} from './rpc-schemas.ts';
import { defineRead, defineWrite } from './rpc-types.ts';

/** The most assignments in one answer; `next` says where the following ones begin. */
export const MAX_SHARD_ROWS = 10_000;

const decision = z.object({
  step: z.string(),
  reason: z.string(),
  rule: z.string(),
  detail: z.string(),
  revision: counterSchema,
});

interface Wanted {
  readonly kind?: ResourceKind | undefined;
  readonly resource?: string | undefined;
  /** Begin after this shard. */
  readonly after?: string | undefined;
}

/** Assignments by resource and number. Looks shards up instead of sorting them: a page costs its own rows. */
function* assignmentsInOrder(state: StateView, wanted: Wanted): Generator<AssignmentRow> {
  const { kind, resource, after } = wanted;
  const start = after === undefined ? null : splitShard(after);
  for (const key of [...state.resources.keys()].sort(compareStrings)) {
    const row = state.resources.get(key);
    if (row === undefined || (start !== null && key < start.resource)) continue;
    if ((kind !== undefined && row.kind !== kind) || (resource !== undefined && row.name !== resource))
      continue;
    for (let number = start?.resource === key ? start.number + 1 : 0; number < row.shards; number += 1) {
      const assignment = state.assignments.get(shardKey(row, number));
      if (assignment !== undefined) yield assignment;
    }
  }
}

const list = defineRead({
  name: 'shard.list',
  summary: 'Assignments, by resource and number, filtered by resource, leader or any copy',
  params: {
    kind: kindSchema.optional(),
    resource: nameSchema.optional(),
    leader: idSchema.optional(),
    broker: idSchema.optional(),
    limit: z.int().min(1).max(MAX_SHARD_ROWS).default(MAX_SHARD_ROWS),
    after: shardSchema.optional(),
  },
  answer: { items: z.array(assignmentRowSchema), next: z.string().nullable() },
  http: { verb: 'GET', path: '/shard-assignments' },
  async handler({ plane: { state }, clock, admitLarge }, { kind, resource, leader, broker, limit, after }) {
    await admitLarge();
    const { revision } = state;
    const wanted = { kind, resource, after };
    const rows =
      leader === undefined && broker === undefined
        ? assignmentsInOrder(state, wanted)
        : await heldBy(state, { leader, broker, ...wanted }, clock);
    const items: Assignment[] = [];
    for (const row of rows) {
      if (items.length === limit) return { revision, items, next: items.at(-1)?.shard ?? null };
      items.push(assignmentRow(row, state.phase));
    }
    return { revision, items, next: null };
  },
});

/** Assignments by what brokers hold, in order, as they are at this call: looked at, and sorted, over several turns. */
async function heldBy(
  state: StateView,
  {
    leader,
    broker,
    kind,
    resource,
    after,
  }: Wanted & { leader?: string | undefined; broker?: string | undefined },
  clock: Clock,
): Promise<readonly AssignmentRow[]> {
  const held: AssignmentRow[] = [];
  await inSlices(state.assignments.list(), clock, (row) => {
    if (leader !== undefined && row.leader !== leader) return;
    if (broker === undefined || row.replicas.includes(broker)) held.push(row);
  });
  const ordered = await inTurns(inShardOrder(held), clock);
  const isWanted = resourceFilter(state, { kind, resource });
  return ordered.filter(
    ({ shard }) => isWanted(shard) && (after === undefined || compareShards(shard, after) > 0),
  );
}

/** Whether a shard belongs to a resource of this kind and name. */
export function resourceFilter(
  state: StateView,
  { kind, resource }: Pick<Wanted, 'kind' | 'resource'>,
): (shard: string) => boolean {
  return (shard) => {
    const row = state.resources.get(splitShard(shard).resource);
    return (kind === undefined || row?.kind === kind) && (resource === undefined || row?.name === resource);
  };
}

const show = defineRead({
  name: 'shard.show',
  summary: 'One assignment and the decision that last wrote it',
  params: { shard: shardSchema },
  answer: { assignment: assignmentRowSchema, decision: decision.nullable() },
  http: { verb: 'GET', path: '/shard-assignments/{shard}' },
  handler({ plane: { state } }, { shard }) {
    const row = state.assignments.get(shard);
    if (row === undefined) throw new EvenkeelError('not_found', `no assignment of shard "${shard}"`);
    return { assignment: assignmentRow(row, state.phase), decision: row.decision };
  },
});

const explain = defineRead({
  name: 'shard.explain',
  summary: 'Why the shard is where it is, and what the next pass would do with it',
  params: { shard: shardSchema },
  answer: {
    shard: shardSchema,
    assignment: assignmentRowSchema.nullable(),
    decision: decision.nullable(),
    place: z.array(z.string()),
    next: z.array(z.unknown()),
    waiting: z.array(z.unknown()),
  },
  http: { verb: 'GET', path: '/shard-assignments/{shard}/explain' },
  async handler(context, { shard }) {
    const explained = await context.askLeader('shard.explain', { shard });
    if (explained === null) throw new EvenkeelError('not_found', `no shard "${shard}"`);
    const { state } = context.plane;
    const row = state.assignments.get(shard);
    const assignment = row === undefined ? null : assignmentRow(row, state.phase);
    return { assignment, decision: row?.decision ?? null, ...asAnswer(explained) };
  },
});

const abandon = defineWrite({
  name: 'shard.abandon',
  summary: "Give a shard's log up, for good, when none of its in-sync copies will come back",
  params: { shard: shardSchema, expectedGeneration: generationSchema.optional() },
  answer: { shard: shardSchema },
  http: { verb: 'POST', path: '/shard-assignments/{shard}/abandon' },
  async handler(context, { shard, expectedGeneration }) {
    const request = context.request;
    const expected = expectedGeneration ?? null;
    return asAnswer(
      await context.askLeader('shard.abandon', { shard, expectedGeneration: expected, request }),
    );
  },
});

const serviceAnswer = z.looseObject({ revision: counterSchema.optional() });

/** What a service of the leader answered, as a method's answer: an object, its `revision` the envelope's. */
export function asAnswer(value: unknown): Record<string, unknown> & { revision?: number } {
  const { revision, ...rest } = serviceAnswer.parse(value);
  return revision === undefined ? rest : { ...rest, revision };
}

export const SHARD_METHODS = [list, show, explain, abandon];
