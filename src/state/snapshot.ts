import { EvenkeelError } from '../errors.ts';
import { ClusterState, type Header } from './cluster-state.ts';
import { asInteger, asString, Fields } from './fields.ts';
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
import { SequenceReader } from './sequence-reader.ts';
import type { AnswerRow, SessionRow } from './sessions.ts';
import { SNAPSHOT_VERSION, snapshotParts } from './snapshot-parts.ts';
import type { StagedPart } from './staged-imports.ts';
import { SERVED, type AssignmentRow, type BrokerRow, type Decision, type ResourceRow } from './types.ts';

/** Rows read back and counted in between two turns: about 4 ms. */
export const ROWS_PER_STEP = 200;
const KEYS = 8;

/** The whole state in its canonical form, at once. */
export function encodeSnapshot(state: ClusterState): Uint8Array {
  const parts: Uint8Array[] = [];
  const iterator = snapshotParts(state);
  for (let next = iterator.next(); next.done !== true; next = iterator.next()) parts.push(next.value);
  return new Uint8Array(Buffer.concat(parts));
}

/** The state that a snapshot holds, at once. */
export function decodeSnapshot(data: Uint8Array): ClusterState {
  const steps = decodeInSteps(data);
  let step = steps.next();
  while (step.done !== true) step = steps.next();
  return step.value;
}

/** The state that a snapshot holds, a few rows a step; throws `corrupt` where it is none. */
export function* decodeInSteps(data: Uint8Array): Generator<void, ClusterState, void> {
  try {
    return yield* decode(new SequenceReader(data));
  } catch (error) {
    if (error instanceof EvenkeelError) throw error;
    const what = error instanceof Error ? error.message : 'unreadable';
    throw new EvenkeelError('corrupt', `the snapshot of the state cannot be read: ${what}`);
  }
}

function* decode(reader: SequenceReader): Generator<void, ClusterState, void> {
  if (reader.mapHeader() !== KEYS) throw new Error(`it is no map of ${KEYS} keys`);
  key(reader, 'version');
  const version = asInteger(reader.value(), 'snapshot.version');
  if (version !== SNAPSHOT_VERSION) {
    throw new EvenkeelError(
      'corrupt',
      `the snapshot has format version ${version}, this version reads ${SNAPSHOT_VERSION}: upgrade this member`,
    );
  }
  const state = new ClusterState();
  key(reader, 'header');
  const header = readHeader(new Fields(reader.value(), 'snapshot.header'));
  yield* list(reader, 'brokers', (item, at) => state.loadBroker(readBrokerRow(item, at)));
  yield* list(reader, 'resources', (item, at) => state.loadResource(readResourceRow(item, at)));
  yield* list(reader, 'assignments', (item, at) => state.loadAssignment(readAssignmentRow(item, at)));
  yield* list(reader, 'sessions', (item, at) => state.sessions.load(readSession(item, at)));
  yield* list(reader, 'answers', (item, at) => state.sessions.loadAnswer(readAnswer(item, at)));
  // Each holds a thousand rows.
  yield* list(reader, 'imports', (item, at) => state.imports.load(readPart(item, at)), 1);
  if (!reader.isAtEnd) throw new Error('bytes follow its end');
  state.loadHeader(header);
  return state;
}

function* list(
  reader: SequenceReader,
  name: string,
  load: (item: unknown, path: string) => void,
  rowsPerStep = ROWS_PER_STEP,
): Generator<void, void, void> {
  key(reader, name);
  const length = reader.arrayHeader();
  for (let from = 0; from < length; from += rowsPerStep) {
    let at = from;
    reader.values(Math.min(rowsPerStep, length - from), (item) => {
      load(item, `snapshot.${name}[${at}]`);
      at += 1;
    });
    yield;
  }
}

function key(reader: SequenceReader, name: string): void {
  const found = reader.value();
  if (found !== name) throw new Error(`"${name}" was expected, not ${JSON.stringify(found)}`);
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
    phase: f.integer('phase'),
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
    starts: f.nullable('starts', (key) => f.integer(key)),
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
    served: f.oneOf('served', SERVED),
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
    stagedAtMs: f.integer('stagedAtMs'),
    brokers: f.list('brokers', readBroker),
    resources: f.list('resources', readResource),
    assignments: f.list('assignments', readAssignment),
  };
  f.end();
  return part;
}
