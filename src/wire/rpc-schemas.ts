import { z } from 'zod';
import {
  MAX_FAILURES,
  type Assignment,
  type Broker,
  type Policy,
  type Resource,
} from '../../placement/index.ts';
import {
  idProblem,
  MAX_CONCURRENT_MOVES,
  MAX_LABELS_BYTES,
  MAX_POLICY_NUMBER,
  MAX_REPLICATION_FACTOR,
  MAX_SHARD_CAP,
  MAX_SHARDS_PER_RESOURCE,
  MAX_WEIGHT,
  parseShard,
  quote,
  resourceNameProblem,
} from '../command/index.ts';

/** A string that `problem` finds nothing wrong with. */
function checked(problem: (text: string) => string | null): z.ZodString {
  return z.string().check((context) => {
    const message = problem(context.value);
    if (message !== null) context.issues.push({ code: 'custom', message, input: context.value });
  });
}

/** A broker's, zone's or node's id. */
export const idSchema = checked((id) => idProblem('id', id));
export const kindSchema = z.enum(['stream', 'cache']);
export const nameSchema = checked(resourceNameProblem);

const wholeShard = (shard: string): string => (shard.includes(':') ? shard : `stream:${shard}`);
/** `stream:orders/3`; without a kind it is a stream's. Comes out whole. */
export const shardSchema = checked((shard) =>
  parseShard(wholeShard(shard)) === null ? `${quote(shard)} is no shard: <kind>:<name>/<number>` : null,
).transform(wholeShard);
export const zonePolicySchema = z.enum(['broker', 'zone', 'majority']);
export const shardCountSchema = z.int().min(1).max(MAX_SHARDS_PER_RESOURCE);
export const replicationFactorSchema = z.int().min(1).max(MAX_REPLICATION_FACTOR);
export const counterSchema = z.int().min(0);
export const generationSchema = z.int().min(1);

const fitsLabels = (labels: object): boolean => Buffer.byteLength(JSON.stringify(labels)) <= MAX_LABELS_BYTES;
const LABELS_RULE = `labels must be at most ${MAX_LABELS_BYTES} bytes as JSON`;
export const labelsSchema = z.record(z.string().min(1), z.string()).refine(fitsLabels, LABELS_RULE);
/** Label to its new value; `null` removes it. */
export const labelPatchSchema = z
  .record(z.string().min(1), z.string().nullable())
  .refine(fitsLabels, LABELS_RULE);

const timeMs = z.int().min(0);

/** The rows of the cluster file, every field present. */
export const moveRowSchema = z.strictObject({
  role: z.enum(['leader', 'follower']),
  from: idSchema.nullable(),
  to: idSchema,
  step: z.enum(['staged', 'fenced', 'joining']),
  reason: z.enum(['new', 'failover', 'drain', 'restore', 'surplus', 'balance', 'zone', 'level', 'operator']),
  copied: z.boolean(),
  drops: idSchema.nullable(),
  startedAtMs: timeMs,
  progressAtMs: timeMs,
});

export const movedRowSchema = z.strictObject({
  phase: counterSchema,
  leader: z.boolean(),
  copies: z.array(z.strictObject({ from: idSchema, to: idSchema })),
});

export const assignmentRowSchema = z.strictObject({
  shard: shardSchema,
  leader: idSchema,
  replicas: z.array(idSchema).min(1),
  inSync: z.array(idSchema),
  generation: counterSchema,
  epoch: counterSchema,
  state: z.enum(['assigning', 'active', 'draining']),
  failedMoves: counterSchema,
  failures: z
    .array(z.strictObject({ to: idSchema, times: counterSchema, atMs: timeMs }))
    .max(MAX_FAILURES)
    .exactOptional(),
  move: moveRowSchema.nullable(),
  moved: movedRowSchema.exactOptional(),
}) satisfies z.ZodType<Assignment>;

export const brokerRowSchema = z.strictObject({
  id: idSchema,
  zone: idSchema.nullable(),
  lifecycle: z.enum(['live', 'draining', 'down', 'left']),
  drain: z.boolean(),
  maxShards: z.int().min(0).max(MAX_SHARD_CAP).nullable(),
  weight: z.int().min(1).max(MAX_WEIGHT),
  incarnation: counterSchema,
  registeredAtMs: timeMs,
  downSinceMs: timeMs.nullable(),
}) satisfies z.ZodType<Broker>;

export const resourceRowSchema = z.strictObject({
  kind: kindSchema,
  name: nameSchema,
  shards: shardCountSchema,
  replicationFactor: replicationFactorSchema,
  durable: z.boolean(),
  zonePolicy: zonePolicySchema.nullable(),
  labels: labelsSchema,
}) satisfies z.ZodType<Resource>;

const durationMs = z.int().min(0).max(MAX_POLICY_NUMBER);
const slots = z.int().min(1).max(MAX_CONCURRENT_MOVES);

export const policySchema = z.strictObject({
  maxConcurrentMoves: slots,
  maxMovesPerBroker: slots.nullable(),
  maxConcurrentHandovers: slots,
  paused: z.boolean(),
  zonePolicy: zonePolicySchema,
  restoreAfterMs: durationMs,
  moveTimeoutMs: durationMs,
  moveStallMs: durationMs,
  fenceTimeoutMs: durationMs,
  fenceMaxLagRecords: z.int().min(0).max(MAX_POLICY_NUMBER),
  settleMs: durationMs,
  passIntervalMs: durationMs.min(1),
}) satisfies z.ZodType<Policy>;
