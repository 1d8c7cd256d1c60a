import { Packr } from 'msgpackr';
import { EvenkeelError } from '../errors.ts';
import { ClusterState, type Header } from './cluster-state.ts';
import { asString, Fields } from './fields.ts';
import {
  assignmentFields,
  brokerFields,
  readAssignment,
  readBroker,
  readPolicy,
  readResource,
  REASONS,
  resourceFields,
  STEPS,
} from './read-rows.ts';
import { readResult } from './result.ts';
import type { AnswerRow, SessionRow } from './sessions.ts';
import { SNAPSHOT_VERSION, snapshotParts } from './snapshot-parts.ts';
import type { StagedPart } from './staged-imports.ts';
import type { AssignmentRow, BrokerRow, Decision, ResourceRow } from './types.ts';

const packr = new Packr({ useRecords: false, mapsAsObjects: true });

/** The whole state in its canonical form, at once. */
export function encodeSnapshot(state: ClusterState): Uint8Array {
  const parts: Uint8Array[] = [];
  const iterator = snapshotParts(state);
  for (let next = iterator.next(); next.done !== true; next = iterator.next()) parts.push(next.value);
  return new Uint8Array(Buffer.concat(parts));
}

/** The state that a snapshot holds; throws `corrupt` where it is none. */
export function decodeSnapshot(data: Uint8Array): ClusterState {
  try {
    const f = new Fields(packr.unpack(data.subarray()), 'snapshot');
    const version = f.integer('version');
    if (version !== SNAPSHOT_VERSION) {
      throw new EvenkeelError(
        'corrupt',
        `the snapshot has format version ${version}, this version reads ${SNAPSHOT_VERSION}: upgrade this member`,
      );
    }
    const state = new ClusterState();
    state.load(
      readHeader(f.fields('header')),
      f.list('brokers', readBrokerRow),
      f.list('resources', readResourceRow),
      f.list('assignments', readAssignmentRow),
    );
    state.sessions.load(f.list('sessions', readSession), f.list('answers', readAnswer));
    state.imports.load(f.list('imports', readPart));
    f.end();
    return state;
  } catch (error) {
    if (error instanceof EvenkeelError) throw error;
    const what = error instanceof Error ? error.message : 'unreadable';
    throw new EvenkeelError('corrupt', `the snapshot of the state cannot be read: ${what}`);
  }
}

function readHeader(f: Fields): Header {
  const hashAt = f.fields('hashAt');
  const header: Header = {
    appliedIndex: f.integer('appliedIndex'),
    revision: f.integer('revision'),
    timeMs: f.integer('timeMs'),
    policy: readPolicy(f.fields('policy')),
    policyRevision: f.integer('policyRevision'),
    firstRegisteredAtMs: f.nullable('firstRegisteredAtMs', (key) => f.integer(key)),
    maxGeneration: f.integer('maxGeneration'),
    incarnationFloor: f.integer('incarnationFloor'),
    hashAt: { index: hashAt.integer('index'), hash: hashAt.string('hash') },
  };
  hashAt.end();
  f.end();
  return header;
}

function readBrokerRow(value: unknown, path: string): BrokerRow {
  const f = new Fields(value, path);
  const row: BrokerRow = {
    ...brokerFields(f),
    addresses: f.map('addresses', asString),
    labels: f.map('labels', asString),
    storeId: f.nullable('storeId', (key) => f.string(key)),
    imported: f.boolean('imported'),
    revision: f.integer('revision'),
  };
  f.end();
  return row;
}

function readResourceRow(value: unknown, path: string): ResourceRow {
  const f = new Fields(value, path);
  const row: ResourceRow = {
    ...resourceFields(f),
    createdRevision: f.integer('createdRevision'),
    revision: f.integer('revision'),
  };
  f.end();
  return row;
}

function readAssignmentRow(value: unknown, path: string): AssignmentRow {
  const f = new Fields(value, path);
  const row: AssignmentRow = {
    ...assignmentFields(f),
    drained: f.boolean('drained'),
    stagedIncarnation: f.nullable('stagedIncarnation', (key) => f.integer(key)),
    decision: f.nullable('decision', (key) => readDecision(f.fields(key))),
    revision: f.integer('revision'),
  };
  f.end();
  return row;
}

function readDecision(f: Fields): Decision {
  const decision: Decision = {
    step: f.oneOf('step', STEPS),
    reason: f.oneOf('reason', REASONS),
    rule: f.string('rule'),
    detail: f.string('detail'),
    revision: f.integer('revision'),
  };
  f.end();
  return decision;
}

function readSession(value: unknown, path: string): SessionRow {
  const f = new Fields(value, path);
  const row: SessionRow = {
    session: f.integer('session'),
    lastUsedIndex: f.integer('lastUsedIndex'),
    floor: f.integer('floor'),
  };
  f.end();
  return row;
}

function readAnswer(value: unknown, path: string): AnswerRow {
  const f = new Fields(value, path);
  const row: AnswerRow = {
    session: f.integer('session'),
    n: f.integer('n'),
    result: readResult(f.take('result'), `${path}.result`),
  };
  f.end();
  return row;
}

function readPart(value: unknown, path: string): StagedPart {
  const f = new Fields(value, path);
  const part = {
    importId: f.string('importId'),
    part: f.integer('part'),
    firstIndex: f.integer('firstIndex'),
    brokers: f.list('brokers', readBroker),
    resources: f.list('resources', readResource),
    assignments: f.list('assignments', readAssignment),
  };
  f.end();
  return part;
}
