import { z } from 'zod';
import type { Assignment, Broker, Policy, Resource } from '../../placement/index.ts';

/** Bytes of a resource's or broker's labels as JSON. */
export const MAX_LABELS_BYTES = 4_096;
/** The most shards of one resource. */
export const MAX_SHARDS = 100_000;
export const MAX_REPLICATION_FACTOR = 16;

const SEGMENT = '[A-Za-z0-9][A-Za-z0-9._-]{0,127}';
const SEGMENT_RULE = 'letters, digits, ".", "_" and "-", at most 128, the first a letter or digit';
const NAME_RULE = `must be 1 to 3 segments joined by "/", each of ${SEGMENT_RULE}`;
const ID = new RegExp(`^${SEGMENT}$`);
const NAME = new RegExp(`^${SEGMENT}(/${SEGMENT}){0,2}$`);
const SHARD = new RegExp(`^(?:(stream|cache):)?(${SEGMENT}(?:/${SEGMENT}){0,2}/(?:0|[1-9]\\d{0,8}))$`);

/** A broker's, zone's or node's id. */
export const idSchema = z.string().regex(ID, `must be ${SEGMENT_RULE}`);
export const kindSchema = z.enum(['stream', 'cache']);
export const nameSchema = z.string().regex(NAME, NAME_RULE);
/** `stream:orders/3`; without a kind it is a stream's. Comes out whole. */
export const shardSchema = z
  .string()
  .regex(SHARD, `must be <kind>:<name>/<number>, where the name ${NAME_RULE}`)
  .transform((shard) => (shard.includes(':') ? shard : `stream:${shard}`));
export const zonePolicySchema = z.enum(['broker', 'zone', 'majority']);
export const shardCountSchema = z.int().min(1).max(MAX_SHARDS);
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

const timeMs = z.number().min(0);

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

export const assignmentRowSchema = z.strictObject({
  shard: shardSchema,
  leader: idSchema,
  replicas: z.array(idSchema).min(1),
  inSync: z.array(idSchema),
  generation: counterSchema,
  epoch: counterSchema,
  state: z.enum(['assigning', 'active', 'draining']),
  failedMoves: counterSchema,
  move: moveRowSchema.nullable(),
}) satisfies z.ZodType<Assignment>;

export const brokerRowSchema = z.strictObject({
  id: idSchema,
  zone: idSchema.nullable(),
  lifecycle: z.enum(['live', 'draining', 'down', 'left']),
  drain: z.boolean(),
  maxShards: counterSchema.nullable(),
  weight: z.int().min(1).max(1_000),
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

const durationMs = z.int().min(0).max(2_147_483_647);

export const policySchema = z.strictObject({
  maxConcurrentMoves: z.int().min(1).max(1_000),
  maxMovesPerBroker: z.int().min(1).max(1_000).nullable(),
  maxConcurrentHandovers: z.int().min(1).max(1_000),
  paused: z.boolean(),
  zonePolicy: zonePolicySchema,
  restoreAfterMs: durationMs,
  moveTimeoutMs: durationMs,
  moveStallMs: durationMs,
  fenceTimeoutMs: durationMs,
  fenceMaxLagRecords: counterSchema,
  settleMs: durationMs,
  passIntervalMs: durationMs.min(1),
}) satisfies z.ZodType<Policy>;
