import type {
  Assignment,
  Broker,
  Failure,
  Lifecycle,
  Move,
  Moved,
  MovedCopy,
  Policy,
  Reason,
  Resource,
  ResourceKind,
  StepName,
  ZonePolicy,
} from '../../placement/index.ts';
import { asString, Fields } from './fields.ts';

/** Checked reading of the nouns, for log entries and snapshots alike. */

export const KINDS: readonly ResourceKind[] = ['stream', 'cache'];
export const LIFECYCLES: readonly Lifecycle[] = ['live', 'draining', 'down', 'left'];
export const ZONE_POLICIES: readonly ZonePolicy[] = ['broker', 'zone', 'majority'];
export const ASSIGNMENT_STATES = ['assigning', 'active', 'draining'] as const;
export const MOVE_ROLES = ['leader', 'follower'] as const;
export const MOVE_STEPS = ['staged', 'fenced', 'joining'] as const;
export const REASONS: readonly Reason[] = [
  'new',
  'failover',
  'drain',
  'restore',
  'surplus',
  'balance',
  'zone',
  'level',
  'operator',
];
export const STEPS: readonly StepName[] = [
  'place',
  'promote',
  'stage',
  'fence',
  'cutOver',
  'join',
  'seat',
  'drop',
  'abandon',
];

export function readBroker(value: unknown, path: string): Broker {
  const f = new Fields(value, path);
  const broker = brokerFields(f);
  f.end();
  return broker;
}

export function brokerFields(f: Fields): Broker {
  return {
    id: f.string('id'),
    zone: f.nullable('zone', (key) => f.string(key)),
    lifecycle: f.oneOf('lifecycle', LIFECYCLES),
    drain: f.boolean('drain'),
    maxShards: f.nullable('maxShards', (key) => f.integer(key)),
    weight: f.integer('weight'),
    incarnation: f.integer('incarnation'),
    registeredAtMs: f.integer('registeredAtMs'),
    downSinceMs: f.nullable('downSinceMs', (key) => f.integer(key)),
  };
}

export function readResource(value: unknown, path: string): Resource {
  const f = new Fields(value, path);
  const resource = resourceFields(f);
  f.end();
  return resource;
}

export function resourceFields(f: Fields): Resource {
  return {
    kind: f.oneOf('kind', KINDS),
    name: f.string('name'),
    shards: f.integer('shards'),
    replicationFactor: f.integer('replicationFactor'),
    durable: f.boolean('durable'),
    zonePolicy: f.nullable('zonePolicy', (key) => f.oneOf(key, ZONE_POLICIES)),
    labels: f.map('labels', asString),
  };
}

export function readAssignment(value: unknown, path: string): Assignment {
  const f = new Fields(value, path);
  const assignment = assignmentFields(f);
  f.end();
  return assignment;
}

export function assignmentFields(f: Fields): Assignment {
  return {
    shard: f.string('shard'),
    leader: f.string('leader'),
    replicas: f.strings('replicas'),
    inSync: f.strings('inSync'),
    generation: f.integer('generation'),
    epoch: f.integer('epoch'),
    state: f.oneOf('state', ASSIGNMENT_STATES),
    failedMoves: f.integer('failedMoves'),
    ...failuresField(f),
    move: f.nullable('move', (key) => readMove(f.fields(key))),
    ...(f.has('moved') ? { moved: readMoved(f.fields('moved')) } : {}),
  };
}

/** A row's `failures`, where it has any. */
export function failuresField(f: Fields): Pick<Assignment, 'failures'> {
  return f.has('failures') ? { failures: f.list('failures', readFailure) } : {};
}

function readFailure(value: unknown, path: string): Failure {
  const f = new Fields(value, path);
  const failure = { to: f.string('to'), times: f.integer('times'), atMs: f.integer('atMs') };
  f.end();
  return failure;
}

function readMoved(f: Fields): Moved {
  const moved = {
    phase: f.integer('phase'),
    leader: f.boolean('leader'),
    copies: f.list('copies', readMovedCopy),
  };
  f.end();
  return moved;
}

function readMovedCopy(value: unknown, path: string): MovedCopy {
  const f = new Fields(value, path);
  const copy = { from: f.string('from'), to: f.string('to') };
  f.end();
  return copy;
}

export function readMove(f: Fields): Move {
  const move: Move = {
    role: f.oneOf('role', MOVE_ROLES),
    from: f.nullable('from', (key) => f.string(key)),
    to: f.string('to'),
    step: f.oneOf('step', MOVE_STEPS),
    reason: f.oneOf('reason', REASONS),
    copied: f.boolean('copied'),
    drops: f.nullable('drops', (key) => f.string(key)),
    startedAtMs: f.integer('startedAtMs'),
    progressAtMs: f.integer('progressAtMs'),
  };
  f.end();
  return move;
}

export function readPolicy(f: Fields): Policy {
  const policy: Policy = {
    maxConcurrentMoves: f.integer('maxConcurrentMoves'),
    maxMovesPerBroker: f.nullable('maxMovesPerBroker', (key) => f.integer(key)),
    maxConcurrentHandovers: f.integer('maxConcurrentHandovers'),
    paused: f.boolean('paused'),
    zonePolicy: f.oneOf('zonePolicy', ZONE_POLICIES),
    restoreAfterMs: f.integer('restoreAfterMs'),
    moveTimeoutMs: f.integer('moveTimeoutMs'),
    moveStallMs: f.integer('moveStallMs'),
    fenceTimeoutMs: f.integer('fenceTimeoutMs'),
    fenceMaxLagRecords: f.integer('fenceMaxLagRecords'),
    settleMs: f.integer('settleMs'),
    passIntervalMs: f.integer('passIntervalMs'),
  };
  f.end();
  return policy;
}
