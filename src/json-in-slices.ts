import type { Clock } from '../raft/index.ts';

/** Values that are written in one go; about 0.1 ms. */
const NODES_AT_ONCE = 500;
/** Text that one turn writes: about a millisecond. */
const CHARS_PER_TURN = 128 * 1024;

/**
 * `JSON.stringify` for what may be as large as the cluster: the text in pieces, made over several turns where it is
 * long. Takes plain data (no `toJSON`), which must not be changed meanwhile. A short value takes no turn.
 */
export async function jsonInSlices(value: unknown, clock: Clock): Promise<readonly string[]> {
  const text: string[] = [];
  let chars = 0;
  for (const piece of pieces(value)) {
    text.push(piece);
    chars += piece.length;
    if (chars < CHARS_PER_TURN) continue;
    chars = 0;
    await new Promise<void>((resolve) => clock.defer(resolve));
  }
  return text;
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
