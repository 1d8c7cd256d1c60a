import { Packr } from 'msgpackr';
import { compareStrings, resourceKey } from '../../placement/index.ts';
import type { ClusterState } from './cluster-state.ts';
import type { Plain } from './hash.ts';
import {
  canonicalAssignment,
  canonicalBroker,
  canonicalPolicy,
  canonicalResource,
  canonicalValue,
} from './rows.ts';
import { inShardOrder } from './shard-order.ts';
import type { AssignmentRow } from './types.ts';

/** Raised with every change of the format; a member refuses a snapshot of another version. */
export const SNAPSHOT_VERSION = 1;

/** Rows of one part: about 2 ms to encode. */
const ROWS_PER_PART = 500;
const NOTHING = new Uint8Array(0);

const packr = new Packr({ useRecords: false, mapsAsObjects: true });

/**
 * The whole state in its canonical form, part by part: one MessagePack map, the same bytes on every member that applied
 * the same log. Rows are immutable, so lists of them taken now are the state as it is now.
 */
export function snapshotParts(state: ClusterState): Iterator<Uint8Array> {
  const { policy, ...header } = state.header;
  return encode({
    header: { ...header, policy: canonicalPolicy(policy) },
    brokers: [...state.brokers.values()],
    resources: [...state.resources.values()],
    assignments: state.assignments.list(),
    sessions: [...state.sessions.rows.values()],
    answers: [...state.sessions.answers.values()],
    imports: [...state.imports.parts.values()],
  });
}

interface Captured {
  readonly header: Plain;
  readonly brokers: Row<ClusterState['brokers']>[];
  readonly resources: Row<ClusterState['resources']>[];
  readonly assignments: AssignmentRow[];
  readonly sessions: Row<ClusterState['sessions']['rows']>[];
  readonly answers: Row<ClusterState['sessions']['answers']>[];
  readonly imports: Row<ClusterState['imports']['parts']>[];
}

type Row<Table> = Table extends ReadonlyMap<unknown, infer R> ? R : never;

function* encode(rows: Captured): Generator<Uint8Array, void> {
  const { brokers, resources, sessions, answers, imports } = rows;
  yield joined([mapHeader(8), ...['version', SNAPSHOT_VERSION, 'header', rows.header].map(packed)]);
  brokers.sort((x, y) => compareStrings(x.id, y.id));
  yield* list('brokers', brokers, canonicalBroker);
  const keyed = resources.map((row) => ({ key: resourceKey(row), row }));
  keyed.sort((x, y) => compareStrings(x.key, y.key));
  yield* list('resources', keyed, ({ row }) => canonicalResource(row));
  yield* list('assignments', yield* byShard(rows.assignments), canonicalAssignment);
  // The order in which they are forgotten, and in which they are loaded again.
  sessions.sort((x, y) => x.lastUsedIndex - y.lastUsedIndex);
  yield* list('sessions', sessions, canonicalValue);
  answers.sort((x, y) => x.session - y.session || x.n - y.n);
  yield* list('answers', answers, canonicalValue);
  imports.sort((x, y) => x.firstIndex - y.firstIndex || x.part - y.part);
  // Each holds a thousand rows.
  yield* list('imports', imports, canonicalValue, 1);
}

/** Nothing to send for as long as the rows are being sorted. */
function* byShard(rows: readonly AssignmentRow[]): Generator<Uint8Array, AssignmentRow[]> {
  const steps = inShardOrder(rows);
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    yield NOTHING;
  }
}

function* list<Row>(
  key: string,
  rows: readonly Row[],
  canonical: (row: Row) => Plain,
  rowsPerPart = ROWS_PER_PART,
): Generator<Uint8Array, void> {
  yield joined([packed(key), arrayHeader(rows.length)]);
  for (let at = 0; at < rows.length; at += rowsPerPart) {
    yield joined(rows.slice(at, at + rowsPerPart).map((row) => packed(canonical(row))));
  }
}

function packed(value: Plain): Uint8Array {
  return packr.pack(value);
}

/** Copies: what is packed lies in a buffer that the packer uses again. */
function joined(parts: readonly Uint8Array[]): Uint8Array {
  return new Uint8Array(Buffer.concat(parts));
}

/** MessagePack `fixmap`. */
function mapHeader(size: number): Uint8Array {
  return Uint8Array.of(0x80 | size);
}

/** MessagePack `array 32`, whatever the length. */
function arrayHeader(length: number): Uint8Array {
  const bytes = new Uint8Array(5);
  bytes[0] = 0xdd;
  new DataView(bytes.buffer).setUint32(1, length);
  return bytes;
}
