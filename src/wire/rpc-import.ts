import { z } from 'zod';
import { exportCluster } from '../cluster-file/index.ts';
import { MAX_IMPORT_PARTS } from '../command/index.ts';
import { EvenkeelError } from '../errors.ts';
import { IMPORT_EXPIRY_MS } from '../state/index.ts';
import { inTurns } from './rpc-per-revision.ts';
import {
  assignmentRowSchema,
  brokerRowSchema,
  counterSchema,
  policySchema,
  resourceRowSchema,
} from './rpc-schemas.ts';
import { openedSession } from './rpc-session.ts';
import { defineRead, defineWrite } from './rpc-types.ts';

/** The largest part of an import, bytes of its rows as JSON. */
const MAX_IMPORT_PART_BYTES = 256 * 1024;

const importId = z.string().regex(/^[1-9]\d{0,15}$/, 'must be the importId that import.begin gave');

const exported = defineRead({
  name: 'export',
  summary: 'The whole cluster as a cluster file',
  params: {},
  answer: {
    cluster: z.strictObject({
      version: z.literal(1),
      timeMs: counterSchema.optional(),
      brokers: z.array(brokerRowSchema),
      resources: z.array(resourceRowSchema),
      assignments: z.array(assignmentRowSchema),
      policy: policySchema,
      phase: counterSchema.optional(),
      phaseOf: z.string().optional(),
    }),
  },
  http: { verb: 'GET', path: '/export' },
  async handler(context) {
    const { plane, clock } = context;
    // Only the leader's clock runs. Without one, time stands still where this node has it.
    const nowMs = await context.askLeader('cluster.time', {}).catch(() => plane.clusterTimeMs());
    await context.admitLarge();
    const { revision } = plane.state;
    const steps = exportCluster(plane.state, z.int().parse(nowMs));
    return { revision, cluster: await inTurns(steps, clock) };
  },
});

const begin = defineWrite({
  name: 'import.begin',
  summary: 'Begin an import: parts are staged under the importId and become visible at the commit',
  params: {},
  answer: { importId, maxPartBytes: counterSchema, maxParts: counterSchema },
  http: { verb: 'POST', path: '/imports' },
  async handler(context) {
    // A session's number is unique over the life of the log, which is all that an import's id has to be.
    const { revision, value } = await context.propose({ type: 'openSession' });
    const { session } = openedSession.parse(value);
    return {
      revision,
      importId: String(session),
      maxPartBytes: MAX_IMPORT_PART_BYTES,
      maxParts: MAX_IMPORT_PARTS,
    };
  },
});

const part = defineWrite({
  name: 'import.part',
  summary: 'Stage one part of an import; nothing of it is visible yet',
  params: {
    importId,
    part: z
      .int()
      .min(0)
      .max(MAX_IMPORT_PARTS - 1),
    brokers: z.array(brokerRowSchema).default([]),
    resources: z.array(resourceRowSchema).default([]),
    assignments: z.array(assignmentRowSchema).default([]),
  },
  answer: {},
  http: { verb: 'PUT', path: '/imports/{importId}/parts/{part}' },
  async handler(context, { importId: id, part: number, brokers, resources, assignments }) {
    const bytes = Buffer.byteLength(JSON.stringify([brokers, resources, assignments]));
    if (bytes > MAX_IMPORT_PART_BYTES) {
      const message = `import.part: ${bytes} bytes are more than a part may have (${MAX_IMPORT_PART_BYTES})`;
      throw new EvenkeelError('limit_exceeded', message);
    }
    const rows = { brokers, resources, assignments };
    const { revision } = await context.propose({ type: 'importPart', importId: id, part: number, ...rows });
    return { revision };
  },
});

const commit = defineWrite({
  name: 'import.commit',
  summary: 'Make the staged parts the state: of an empty cluster, or of a used one with `overwrite`',
  params: {
    importId,
    parts: z.int().min(0).max(MAX_IMPORT_PARTS),
    timeMs: counterSchema.nullable().default(null),
    policy: policySchema,
    overwrite: z.boolean().default(false),
  },
  answer: {},
  http: { verb: 'POST', path: '/imports/{importId}/commit' },
  async handler(context, { importId: id, parts, timeMs, policy, overwrite }) {
    const command = { type: 'importCommit', importId: id, parts, timeMs, policy, overwrite } as const;
    const { revision } = await context.propose(command);
    return { revision };
  },
});

const stagedImport = z.object({
  importId,
  parts: counterSchema,
  rows: counterSchema,
  expiresInMs: counterSchema,
});
export type StagedImportItem = z.output<typeof stagedImport>;

const list = defineRead({
  name: 'import.list',
  summary:
    'Imports that are staged and neither committed nor aborted; each expires an hour after its last part',
  params: {},
  answer: { items: z.array(stagedImport) },
  http: { verb: 'GET', path: '/imports' },
  handler({ plane }) {
    const nowMs = plane.clusterTimeMs();
    const items = plane.state.stagedImports.map(({ importId: id, parts, rows, lastPartAtMs }) => ({
      importId: id,
      parts,
      rows,
      expiresInMs: Math.max(0, lastPartAtMs + IMPORT_EXPIRY_MS - nowMs),
    }));
    return { items };
  },
});

const abort = defineWrite({
  name: 'import.abort',
  summary: 'Drop the staged parts of an import',
  params: { importId },
  answer: {},
  http: { verb: 'DELETE', path: '/imports/{importId}' },
  async handler(context, { importId: id }) {
    const { revision } = await context.propose({ type: 'abortImport', importId: id });
    return { revision };
  },
});

export const IMPORT_METHODS = [exported, begin, part, commit, list, abort];
