import { z } from 'zod';
import {
  clusterFile,
  DEFAULT_POLICY,
  resourceKey,
  type Broker,
  type Resource,
  type SimAction,
  type SimEvent,
} from '../../placement/index.ts';
import {
  brokerProblem,
  clusterProblem,
  idProblem,
  MAX_POLICY_NUMBER,
  notAShard,
  parseResource,
  parseShard,
  policyProblem,
  quote,
  resourceProblem,
  type Problem,
} from '../command/index.ts';
import { EvenkeelError } from '../errors.ts';
import { MOVE_ROLES, ZONE_POLICIES } from '../state/index.ts';
import { parseStrictJson } from '../strict-json.ts';
import { checked } from './parse.ts';
import { brokerSchema, policyPatchSchema, present, resourceSchema, type Present } from './schema.ts';

const id = z.string().refine((text) => idProblem('broker id', text) === null, {
  error: ({ input }) => idProblem('broker id', String(input)) ?? undefined,
});
const delayMs = z.int().min(0).max(MAX_POLICY_NUMBER).optional();

/** What each kind of event carries under its name. */
const ACTIONS = {
  join: brokerSchema,
  drain: id,
  undrain: id,
  down: id,
  up: id,
  remove: id,
  create: resourceSchema,
  delete: z.string(),
  setBroker: z.strictObject({
    id,
    zone: z.string().nullable().optional(),
    maxShards: z.int().min(0).nullable().optional(),
    weight: z.int().optional(),
  }),
  setResource: z.strictObject({
    kind: z.enum(['stream', 'cache']).default('stream'),
    name: z.string(),
    shards: z.int().optional(),
    replicationFactor: z.int().optional(),
    zonePolicy: z.enum(ZONE_POLICIES).nullable().optional(),
    labels: z.record(z.string(), z.string()).optional(),
  }),
  setPolicy: policyPatchSchema,
  move: z.strictObject({
    shard: z.string(),
    to: id,
    role: z.enum(MOVE_ROLES).default('leader'),
    from: id.nullable().default(null),
  }),
  cancel: z.string(),
  inSync: z.strictObject({ shard: z.string(), inSync: z.array(id) }),
};

type ActionName = keyof typeof ACTIONS;
type Reader = (value: unknown, name: string) => SimAction;

/** Reads an events file; throws an error that names the event and what is wrong with it. */
export function parseEvents(text: string, name: string): readonly SimEvent[] {
  const json = checked(z.array(z.record(z.string(), z.unknown())), parseStrictJson(text, name), name);
  return json.map((event, i) => readEvent(event, `${name}[${i}]`));
}

function readEvent(source: Record<string, unknown>, name: string): SimEvent {
  const { afterMs, ...named } = source;
  const [key, ...others] = Object.keys(named);
  const known = Object.keys(ACTIONS).join(', ');
  if (key === undefined) throw bad(name, `names no event: write one of ${known}`);
  if (!isAction(key)) throw bad(name, `${quote(key)} is not a known event: write one of ${known}`);
  if (others.length > 0)
    throw bad(name, `names ${others.map(quote).join(', ')} beside ${key}: one event each`);
  const after = checked(delayMs, afterMs, `${name}.afterMs`);
  return { action: READERS[key](named[key], `${name}.${key}`), afterMs: after ?? null, source };
}

const READERS: Record<ActionName, Reader> = {
  join: (value, name) => {
    const broker = checked(ACTIONS.join, value, name);
    return { type: 'join', broker: sound(broker, name, joinProblem(broker)) };
  },
  drain: (value, name) => ({ type: 'drain', broker: checked(id, value, name) }),
  undrain: (value, name) => ({ type: 'undrain', broker: checked(id, value, name) }),
  down: (value, name) => ({ type: 'down', broker: checked(id, value, name) }),
  up: (value, name) => ({ type: 'up', broker: checked(id, value, name) }),
  remove: (value, name) => ({ type: 'remove', broker: checked(id, value, name) }),
  create: (value, name) => {
    const resource: Resource = checked(ACTIONS.create, value, name);
    return { type: 'create', resource: sound(resource, name, resourceProblem(resource)) };
  },
  delete: (value, name) => ({
    type: 'delete',
    resource: resourceIn(checked(ACTIONS.delete, value, name), name),
  }),
  setBroker: (value, name) => {
    const { id: broker, ...given } = checked(ACTIONS.setBroker, value, name);
    const patch = changing(given, name);
    const probe = {
      id: broker,
      zone: patch.zone ?? null,
      maxShards: patch.maxShards ?? null,
      weight: patch.weight ?? 1,
    };
    return { type: 'setBroker', id: broker, patch: sound(patch, name, brokerProblem(probe)) };
  },
  setResource: (value, name) => {
    const { kind, name: resource, ...given } = checked(ACTIONS.setResource, value, name);
    const patch = changing(given, name);
    const probe: Resource = {
      kind,
      name: resource,
      shards: patch.shards ?? 1,
      replicationFactor: patch.replicationFactor ?? 1,
      durable: true,
      zonePolicy: null,
      labels: patch.labels ?? {},
    };
    const key = resourceKey(probe);
    return { type: 'setResource', resource: key, patch: sound(patch, name, resourceProblem(probe)) };
  },
  setPolicy: (value, name) => {
    const patch = changing(checked(ACTIONS.setPolicy, value, name), name);
    return { type: 'setPolicy', patch: sound(patch, name, policyProblem(patch)) };
  },
  move: (value, name) => {
    const { shard, to, role, from } = checked(ACTIONS.move, value, name);
    return { type: 'move', shard: shardsIn(shard, name), to, role, from };
  },
  cancel: (value, name) => ({ type: 'cancel', shard: shardsIn(checked(ACTIONS.cancel, value, name), name) }),
  inSync: (value, name) => {
    const { shard, inSync } = checked(ACTIONS.inSync, value, name);
    if (new Set(inSync).size < inSync.length) throw bad(name, 'a broker is in sync twice');
    return { type: 'inSync', shard: shardsIn(shard, name), inSync };
  },
};

function isAction(key: string): key is ActionName {
  return Object.hasOwn(ACTIONS, key);
}

/** A broker that joins is a cluster of its own for the rules of one, and up. */
function joinProblem(broker: Broker): Problem | null {
  const { lifecycle, downSinceMs } = broker;
  if (lifecycle === 'down' || lifecycle === 'left' || downSinceMs !== null) {
    const message = `broker ${broker.id} joins, so it is up: leave out lifecycle and downSinceMs, and take it down by an event of its own`;
    return { code: 'invalid_argument', message };
  }
  return clusterProblem(
    clusterFile({ brokers: [broker], resources: [], assignments: [], policy: DEFAULT_POLICY }),
  );
}

/** `stream:x`, the kind put in front where it is left out. */
function resourceIn(text: string, name: string): string {
  const resource = parseResource(text);
  if (resource === null)
    throw bad(name, `${quote(text)} names no resource: write <kind>:<name>, as in stream:orders`);
  return resourceKey(resource);
}

/** A shard, or `<resource>/*` for every shard of one. */
function shardsIn(text: string, name: string): string {
  if (text.endsWith('/*')) return `${resourceIn(text.slice(0, -2), name)}/*`;
  const full = text.includes(':') ? text : `stream:${text}`;
  if (parseShard(full) === null) throw bad(name, notAShard(text));
  return full;
}

/** The keys that are given; at least one. */
function changing<T extends object>(patch: T, name: string): Present<T> {
  const given = present(patch);
  if (Object.keys(given).length === 0) throw bad(name, 'names nothing to change');
  return given;
}

function sound<T>(value: T, name: string, problem: Problem | null): T {
  if (problem !== null) throw new EvenkeelError(problem.code, `${name}: ${problem.message}`);
  return value;
}

function bad(name: string, message: string): EvenkeelError {
  return new EvenkeelError('invalid_argument', `${name}: ${message}`);
}
