import { Packr } from 'msgpackr';
import { compareShards, compareStrings } from '../../placement/index.ts';
import { EvenkeelError } from '../errors.ts';
import { ClusterState, type Header } from './cluster-state.ts';
import {
  canonicalAssignment,
  canonicalBroker,
  canonicalPolicy,
  canonicalResource,
  canonicalValue,
} from './rows.ts';
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
import type { StagedPart } from './staged-imports.ts';
import type { AssignmentRow, BrokerRow, Decision, ResourceRow } from './types.ts';

/** Raised with every change of the format; a member refuses a snapshot of another version. */
export const SNAPSHOT_VERSION = 1;

const packr = new Packr({ useRecords: false, mapsAsObjects: true });

/** The whole state in its canonical form: the same bytes on every member that applied the same log. */
export function encodeSnapshot(state: ClusterState): Uint8Array {
  const { policy, ...header } = state.header;
  const bytes = packr.pack({
    version: SNAPSHOT_VERSION,
    header: { ...header, policy: canonicalPolicy(policy) },
    brokers: sorted(state.brokers, compareStrings).map(canonicalBroker),
    resources: sorted(state.resources, compareStrings).map(canonicalResource),
    assignments: sorted(state.assignments, compareShards).map(canonicalAssignment),
    // In the order of their last use, which is the order in which they are forgotten.
    sessions: [...state.sessions.rows.values()].map(canonicalValue),
    answers: [...state.sessions.answers.values()]
      .sort((x, y) => x.session - y.session || x.n - y.n)
      .map(canonicalValue),
    imports: [...state.imports.parts.values()]
      .sort((x, y) => x.firstIndex - y.firstIndex || x.part - y.part)
      .map(canonicalValue),
  });
  return new Uint8Array(bytes);
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

function sorted<Row>(rows: ReadonlyMap<string, Row>, compare: (x: string, y: string) => number): Row[] {
  return [...rows].sort(([x], [y]) => compare(x, y)).map(([, row]) => row);
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
