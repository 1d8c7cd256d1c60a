import { z } from 'zod';
import { compareStrings, resourceKey, resourceRow, type ResourceKind } from '../../placement/index.ts';
import { EvenkeelError } from '../errors.ts';
import type { ResourceRow } from '../state/index.ts';
import {
  counterSchema,
  kindSchema,
  labelPatchSchema,
  labelsSchema,
  nameSchema,
  replicationFactorSchema,
  resourceRowSchema,
  shardCountSchema,
  zonePolicySchema,
} from './rpc-schemas.ts';
import { defineRead, defineWrite } from './rpc-types.ts';

const resourceItem = resourceRowSchema.extend({ resourceRevision: counterSchema });
export type ResourceItem = z.output<typeof resourceItem>;
const byName = { kind: kindSchema.default('stream'), name: nameSchema };
/** A `resourceRevision` that a read gave; the write is refused unless it is still the resource's. */
const expectedRevision = counterSchema.optional();

/** `resourceRevision` is what `expectedRevision` is compared with: the resource's own last change. */
function resourceView(row: ResourceRow): ResourceItem {
  return { ...resourceRow(row), resourceRevision: row.revision };
}

const list = defineRead({
  name: 'resource.list',
  summary: 'Streams and caches',
  params: { kind: kindSchema.optional() },
  answer: { items: z.array(resourceItem) },
  http: { verb: 'GET', path: '/resources' },
  async handler({ plane: { state }, admitLarge }, { kind }) {
    await admitLarge();
    const rows = [...state.resources.values()].filter((row) => kind === undefined || row.kind === kind);
    rows.sort((a, b) => compareStrings(resourceKey(a), resourceKey(b)));
    return { items: rows.map(resourceView) };
  },
});

const show = defineRead({
  name: 'resource.show',
  summary: 'One stream or cache',
  params: byName,
  answer: { resource: resourceItem },
  http: { verb: 'GET', path: '/resources/{kind}/{name}' },
  handler({ plane: { state } }, { kind, name }) {
    const row = state.resources.get(resourceKey({ kind, name }));
    if (row === undefined) throw notFound(kind, name);
    return { resource: resourceView(row) };
  },
});

function notFound(kind: ResourceKind, name: string): EvenkeelError {
  return new EvenkeelError('not_found', `no ${kind} "${name}"`);
}

const create = defineWrite({
  name: 'resource.create',
  summary: 'Create a stream or cache; its shards are placed by the next pass',
  params: {
    ...byName,
    shards: shardCountSchema,
    replicationFactor: replicationFactorSchema.default(1),
    durable: z.boolean().default(true),
    zonePolicy: zonePolicySchema.nullable().default(null),
    labels: labelsSchema.default({}),
  },
  answer: {},
  http: { verb: 'POST', path: '/resources' },
  async handler(context, { kind, name, shards, replicationFactor, durable, zonePolicy, labels }) {
    const resource = { kind, name, shards, replicationFactor, durable, zonePolicy, labels };
    const { revision } = await context.propose({ type: 'createResource', resource });
    return { revision };
  },
});

const alter = defineWrite({
  name: 'resource.alter',
  summary: 'Change what is given, leave the rest; the number of shards only grows',
  params: {
    ...byName,
    expectedRevision,
    shards: shardCountSchema.optional(),
    replicationFactor: replicationFactorSchema.optional(),
    zonePolicy: zonePolicySchema.nullable().optional(),
    labels: labelPatchSchema.optional(),
  },
  answer: {},
  http: { verb: 'PATCH', path: '/resources/{kind}/{name}' },
  async handler(context, { kind, name, expectedRevision: expected, ...given }) {
    const { shards, replicationFactor, zonePolicy, labels } = given;
    const patch = {
      ...(shards !== undefined && { shards }),
      ...(replicationFactor !== undefined && { replicationFactor }),
      ...(zonePolicy !== undefined && { zonePolicy }),
      ...(labels !== undefined && { labels }),
    };
    if (Object.keys(patch).length === 0) {
      const keys = 'shards, replicationFactor, zonePolicy, labels';
      throw new EvenkeelError('invalid_argument', `resource.alter: nothing to change; give one of ${keys}`);
    }
    const { revision } = await context.propose({
      type: 'alterResource',
      kind,
      name,
      expectedRevision: expected ?? null,
      ...patch,
    });
    return { revision };
  },
});

const remove = defineWrite({
  name: 'resource.delete',
  summary: 'Delete a stream or cache and every assignment of its shards',
  params: { ...byName, expectedRevision },
  answer: {},
  http: { verb: 'DELETE', path: '/resources/{kind}/{name}' },
  async handler(context, { kind, name, expectedRevision: expected }) {
    const command = { type: 'deleteResource', kind, name, expectedRevision: expected ?? null } as const;
    const { revision } = await context.propose(command);
    return { revision };
  },
});

export const RESOURCE_METHODS = [list, show, create, alter, remove];
