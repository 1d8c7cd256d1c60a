import type { Clock } from '../raft/index.ts';
import { EvenkeelError } from './errors.ts';

/** Values that are written in one go; about 0.1 ms. */
const NODES_AT_ONCE = 500;
/** Text that one turn writes: about a millisecond. */
const CHARS_PER_TURN = 128 * 1024;

/** A text in pieces that follow each other. They are never joined: a string has a limit of its own. */
export interface JsonText {
  readonly pieces: readonly string[];
  /** In UTF-8. */
  readonly bytes: number;
}

/**
 * `JSON.stringify` for what may be as large as the cluster: the text in pieces, made over several turns where it is
 * long. Takes plain data (no `toJSON`), which must not be changed meanwhile. A short value takes no turn. Rejects with
 * `limit_exceeded` as soon as the text has more than `maxBytes`.
 */
export async function jsonInSlices(value: unknown, clock: Clock, maxBytes: number): Promise<JsonText> {
  const text: string[] = [];
  let bytes = 0;
  let chars = 0;
  for (const piece of pieces(value)) {
    text.push(piece);
    bytes += Buffer.byteLength(piece);
    if (bytes > maxBytes) {
      const message = `the answer takes more than ${maxBytes} bytes: ask for a part of it, or by itself instead of in a batch`;
      throw new EvenkeelError('limit_exceeded', message);
    }
    chars += piece.length;
    if (chars < CHARS_PER_TURN) continue;
    chars = 0;
    await new Promise<void>((resolve) => clock.defer(resolve));
  }
  return { pieces: text, bytes };
}

function* pieces(value: unknown): Generator<string, void, void> {
  if (isSmall(value)) yield stringified(value);
  else if (Array.isArray(value)) yield* list(value);
  else yield* map(value as Readonly<Record<string, unknown>>);
}

function* list(items: readonly unknown[]): Generator<string, void, void> {
  yield '[';
  let from = 0;
  while (from < items.length) {
    if (from > 0) yield ',';
    const next = endOfRun(items, from);
    if (next > from + 1) yield stringified(items.slice(from, next)).slice(1, -1);
    else yield* pieces(items[from] ?? null);
    from = next;
  }
  yield ']';
}

function* map(record: Readonly<Record<string, unknown>>): Generator<string, void, void> {
  const keys = Object.keys(record).filter((key) => record[key] !== undefined);
  const values = keys.map((key) => record[key]);
  yield '{';
  let from = 0;
  while (from < keys.length) {
    if (from > 0) yield ',';
    const next = endOfRun(values, from);
    if (next > from + 1) {
      const run = Object.fromEntries(keys.slice(from, next).map((key) => [key, record[key]]));
      yield stringified(run).slice(1, -1);
    } else {
      yield `${stringified(keys[from])}:`;
      yield* pieces(values[from]);
    }
    from = next;
  }
  yield '}';
}

/** Where a run of neighbours ends that are small together; at least one. */
function endOfRun(values: readonly unknown[], from: number): number {
  let left = NODES_AT_ONCE;
  let next = from;
  while (next < values.length && left > 0) {
    left -= nodes(values[next], left + 1);
    if (left < 0) break;
    next += 1;
  }
  return Math.max(next, from + 1);
}

function isSmall(value: unknown): boolean {
  return nodes(value, NODES_AT_ONCE + 1) <= NODES_AT_ONCE;
}

/** How many values it is made of; looks at little more than `most` of them. */
function nodes(value: unknown, most: number): number {
  if (typeof value !== 'object' || value === null) return 1;
  let count = 1;
  // Not `Object.values`, which would list all of a large one first.
  for (const key in value) {
    count += nodes((value as Readonly<Record<string, unknown>>)[key], most - count);
    if (count > most) break;
  }
  return count;
}

function stringified(value: unknown): string {
  return JSON.stringify(value) ?? 'null';
}
