import { z } from 'zod';
import {
  DEFAULT_POLICY,
  type Assignment,
  type Broker,
  type Policy,
  type Resource,
} from '../../placement/index.ts';
import { MAX_COUNTER } from '../command/index.ts';
import {
  ASSIGNMENT_STATES,
  KINDS,
  LIFECYCLES,
  MOVE_ROLES,
  MOVE_STEPS,
  REASONS,
  ZONE_POLICIES,
} from '../state/index.ts';

/** Shapes and defaults of the cluster file; what rows mean together is checked after them (`clusterProblem`). */

const count = z.int().min(0);
/** Cluster time: whole ms. */
const timeMs = count;
const id = z.string();

export const brokerSchema = z
  .strictObject({
    id,
    zone: id.nullable().default(null),
    lifecycle: z.enum(LIFECYCLES).optional(),
    drain: z.boolean().optional(),
    maxShards: count.nullable().default(null),
    weight: z.int().default(1),
    incarnation: count.default(0),
    registeredAtMs: timeMs.default(0),
    downSinceMs: timeMs.nullable().default(null),
  })
  .transform(({ lifecycle, drain, ...broker }): Broker => ({
    ...broker,
    lifecycle: lifecycle ?? (drain === true ? 'draining' : 'live'),
    drain: drain ?? lifecycle === 'draining',
  }));

export const resourceSchema = z.strictObject({
  kind: z.enum(KINDS).default('stream'),
  name: z.string(),
  shards: z.int(),
  replicationFactor: z.int().default(1),
  durable: z.boolean().default(true),
  zonePolicy: z.enum(ZONE_POLICIES).nullable().default(null),
  labels: z.record(z.string(), z.string()).default({}),
}) satisfies z.ZodType<Resource>;

const moveSchema = z.strictObject({
  role: z.enum(MOVE_ROLES),
  from: id.nullable().optional(),
  to: id,
  step: z.enum(MOVE_STEPS),
  reason: z.enum(REASONS),
  copied: z.boolean().optional(),
  drops: id.nullable().default(null),
  startedAtMs: timeMs.default(0),
  progressAtMs: timeMs.default(0),
});

const movedSchema = z.strictObject({
  phase: count.default(0),
  leader: z.boolean().default(false),
  copies: z.array(z.strictObject({ from: id, to: id })).default([]),
});

const failureSchema = z.strictObject({ to: id, times: count, atMs: timeMs });

export const assignmentSchema = z
  .strictObject({
    shard: z.string(),
    leader: id,
    replicas: z.array(id),
    inSync: z.array(id).optional(),
    generation: z.int().default(1),
    epoch: z.int().optional(),
    state: z.enum(ASSIGNMENT_STATES).optional(),
    failedMoves: count.default(0),
    failures: z.array(failureSchema).min(1).optional(),
    move: moveSchema.nullable().default(null),
    moved: movedSchema.optional(),
  })
  .transform(({ move, moved, failures, ...row }): Assignment => {
    const inSync = row.inSync ?? row.replicas;
    return {
      ...row,
      inSync,
      epoch: row.epoch ?? row.generation,
      state: row.state ?? (move?.step === 'fenced' ? 'draining' : 'active'),
      move:
        move === null
          ? null
          : {
              ...move,
              from: move.from ?? (move.role === 'leader' ? row.leader : null),
              // A destination that is still out of sync is being copied to.
              copied: move.copied ?? !inSync.includes(move.to),
            },
      ...(moved === undefined ? {} : { moved }),
      ...(failures === undefined ? {} : { failures }),
    };
  });

const policyNumber = z.int();

const policyShape = {
  maxConcurrentMoves: policyNumber,
  maxMovesPerBroker: policyNumber.nullable(),
  maxConcurrentHandovers: policyNumber,
  paused: z.boolean(),
  zonePolicy: z.enum(ZONE_POLICIES),
  restoreAfterMs: policyNumber,
  moveTimeoutMs: policyNumber,
  moveStallMs: policyNumber,
  fenceTimeoutMs: policyNumber,
  fenceMaxLagRecords: policyNumber,
  settleMs: policyNumber,
  passIntervalMs: policyNumber,
} satisfies Record<keyof Policy, z.ZodType>;

/** Some of the policy's keys. */
export const policyPatchSchema = z
  .strictObject(policyShape)
  .partial()
  .transform((patch): Partial<Policy> => present(patch));

export const clusterFileSchema = z.strictObject({
  version: z.literal(1),
  timeMs: timeMs.max(MAX_COUNTER).optional(),
  brokers: z.array(brokerSchema),
  resources: z.array(resourceSchema),
  assignments: z.array(assignmentSchema).default([]),
  policy: policyPatchSchema.default({}).transform((patch): Policy => ({ ...DEFAULT_POLICY, ...patch })),
  phase: count.max(MAX_COUNTER).optional(),
  phaseOf: z.string().optional(),
});

export type Present<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

/** Without the keys that are there but undefined. */
export function present<T extends object>(value: T): Present<T> {
  return Object.fromEntries(Object.entries(value).filter(([, item]) => item !== undefined)) as Present<T>;
}
