import {
  asString,
  Fields,
  KINDS,
  Malformed,
  readAssignment,
  readBroker,
  readPolicy,
  readResource,
  ZONE_POLICIES,
} from '../state/index.ts';
import { readPlacementRow, readPolicyPatch } from './read-rows.ts';
import type { Command } from './types.ts';

type Readers = { [T in Command['type']]: (f: Fields) => Extract<Command, { type: T }> };

/** One reader a type: a command without one does not compile, a type without one is refused. */
const READERS: Readers = {
  registerBroker: (f) => ({ type: 'registerBroker', broker: readRegistration(f.fields('broker')) }),
  setLifecycle: (f) => ({
    type: 'setLifecycle',
    broker: f.string('broker'),
    incarnation: f.integer('incarnation'),
    lifecycle: f.oneOf('lifecycle', ['down', 'left'] as const),
    silentSinceMs: f.integer('silentSinceMs'),
    ...(f.has('unheard') ? { unheard: f.strings('unheard') } : {}),
  }),
  setDrain: (f) => ({ type: 'setDrain', broker: f.string('broker'), drain: f.boolean('drain') }),
  removeBroker: (f) => ({
    type: 'removeBroker',
    broker: f.string('broker'),
    incarnation: f.nullable('incarnation', (key) => f.integer(key)),
  }),
  createResource: (f) => ({
    type: 'createResource',
    resource: readResource(f.take('resource'), `${f.path}.resource`),
  }),
  alterResource: readAlter,
  deleteResource: (f) => ({
    type: 'deleteResource',
    kind: f.oneOf('kind', KINDS),
    name: f.string('name'),
    expectedRevision: f.nullable('expectedRevision', (key) => f.integer(key)),
  }),
  placement: (f) => ({ type: 'placement', rows: f.list('rows', readPlacementRow) }),
  report: (f) => ({
    type: 'report',
    broker: f.string('broker'),
    incarnation: f.integer('incarnation'),
    shards: f.list('shards', readReported),
  }),
  confirm: (f) => ({
    type: 'confirm',
    broker: f.string('broker'),
    incarnation: f.integer('incarnation'),
    shards: f.list('shards', readConfirmed),
  }),
  setPolicy: (f) => ({
    type: 'setPolicy',
    expectedRevision: f.nullable('expectedRevision', (key) => f.integer(key)),
    patch: readPolicyPatch(f.fields('patch')),
  }),
  abandonShard: (f) => ({
    type: 'abandonShard',
    shard: f.string('shard'),
    expectedGeneration: f.nullable('expectedGeneration', (key) => f.integer(key)),
  }),
  importPart: (f) => ({
    type: 'importPart',
    importId: f.string('importId'),
    part: f.integer('part'),
    brokers: f.list('brokers', readBroker),
    resources: f.list('resources', readResource),
    assignments: f.list('assignments', readAssignment),
  }),
  importCommit: (f) => ({
    type: 'importCommit',
    importId: f.string('importId'),
    parts: f.integer('parts'),
    timeMs: f.nullable('timeMs', (key) => f.integer(key)),
    policy: readPolicy(f.fields('policy')),
    overwrite: f.boolean('overwrite'),
  }),
  abortImport: (f) => ({ type: 'abortImport', importId: f.string('importId') }),
  openSession: () => ({ type: 'openSession' }),
};

/** A command of a type that this version does not have: applying must stop, never skip it (hazard 36). */
export class UnknownCommand extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'UnknownCommand';
  }
}

export function readCommand(f: Fields): Command {
  const type = f.string('type');
  if (!isKnownType(type)) {
    throw new UnknownCommand(
      `command type ${JSON.stringify(type.slice(0, 80))} is not known to this version`,
    );
  }
  const command = READERS[type](f);
  f.end();
  return command;
}

function isKnownType(type: string): type is Command['type'] {
  return Object.hasOwn(READERS, type);
}

function readRegistration(f: Fields): Extract<Command, { type: 'registerBroker' }>['broker'] {
  const broker = {
    id: f.string('id'),
    zone: f.nullable('zone', (key) => f.string(key)),
    addresses: f.map('addresses', asString),
    maxShards: f.nullable('maxShards', (key) => f.integer(key)),
    weight: f.integer('weight'),
    labels: f.map('labels', asString),
    storeId: f.nullable('storeId', (key) => f.string(key)),
    starts: f.nullable('starts', (key) => f.integer(key)),
  };
  f.end();
  return broker;
}

function readAlter(f: Fields): Extract<Command, { type: 'alterResource' }> {
  return {
    type: 'alterResource',
    kind: f.oneOf('kind', KINDS),
    name: f.string('name'),
    expectedRevision: f.nullable('expectedRevision', (key) => f.integer(key)),
    ...(f.has('shards') ? { shards: f.integer('shards') } : {}),
    ...(f.has('replicationFactor') ? { replicationFactor: f.integer('replicationFactor') } : {}),
    ...(f.has('zonePolicy')
      ? { zonePolicy: f.nullable('zonePolicy', (key) => f.oneOf(key, ZONE_POLICIES)) }
      : {}),
    ...(f.has('labels') ? { labels: f.map('labels', readLabelPatch) } : {}),
  };
}

function readLabelPatch(value: unknown, path: string): string | null {
  if (value === null) return null;
  if (typeof value !== 'string') throw new Malformed(path, 'must be a string or null');
  return value;
}

function readReported(value: unknown, path: string): Extract<Command, { type: 'report' }>['shards'][number] {
  const f = new Fields(value, path);
  const reported = {
    shard: f.string('shard'),
    generation: f.integer('generation'),
    inSync: f.nullable('inSync', (key) => f.strings(key)),
    drained: f.boolean('drained'),
  };
  f.end();
  return reported;
}

function readConfirmed(value: unknown, path: string): { shard: string; generation: number } {
  const f = new Fields(value, path);
  const confirmed = { shard: f.string('shard'), generation: f.integer('generation') };
  f.end();
  return confirmed;
}
