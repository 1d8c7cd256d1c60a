import type { Step } from '../../placement/index.ts';
import { MAX_PLACEMENT_ENTRY_BYTES, type Command, type PlacementRow } from '../command/index.ts';
import type { StateView } from '../state/index.ts';
import { splitShard } from '../../placement/index.ts';

export type PlacementCommand = Extract<Command, { type: 'placement' }>;

/** A planner's step as the log carries it. `null`: the shard's resource is gone. */
export function rowOf(step: Step, state: StateView): PlacementRow | null {
  const resource = state.resources.get(splitShard(step.shard).resource);
  if (resource === undefined) return null;
  const { why, vector: _vector, ...decided } = step;
  return { ...decided, resourceRevision: resource.createdRevision, rule: why.rule, detail: why.detail };
}

/**
 * Rows of one entry, below the 500 that an entry may hold: encoding, checking and applying one takes about 5 ms of the
 * thread that runs Raft, and a few may be applied in one turn.
 */
export const ROWS_PER_ENTRY = 100;

/** The entries that write a plan, in the order of its steps. Takes the next slice of them once an entry lacks rows. */
export async function* entriesOf(
  slices: AsyncIterable<readonly Step[]>,
  state: StateView,
): AsyncGenerator<PlacementCommand, void> {
  const batcher = new RowBatcher();
  for await (const slice of slices) {
    for (const step of slice) {
      const row = rowOf(step, state);
      // Its resource was deleted while the pass was being written: the step has no subject any more.
      const full = row === null ? null : batcher.add(row);
      if (full !== null) yield full;
    }
  }
  const rest = batcher.flush();
  if (rest !== null) yield rest;
}

/** Gathers rows into entries, in order, none over `ROWS_PER_ENTRY` or 256 KiB. */
export class RowBatcher {
  #rows: PlacementRow[] = [];
  #bytes = 0;

  /** Answers the entry that this row no longer fits into, if there is one. */
  add(row: PlacementRow): PlacementCommand | null {
    const bytes = encodedBytesAtMost(row);
    const full =
      this.#rows.length === ROWS_PER_ENTRY ||
      this.#bytes + bytes > MAX_PLACEMENT_ENTRY_BYTES - ENTRY_OVERHEAD_BYTES
        ? this.flush()
        : null;
    this.#rows.push(row);
    this.#bytes += bytes;
    return full;
  }

  flush(): PlacementCommand | null {
    if (this.#rows.length === 0) return null;
    const command: PlacementCommand = { type: 'placement', rows: this.#rows };
    this.#rows = [];
    this.#bytes = 0;
    return command;
  }
}

/** The envelope around the rows. */
const ENTRY_OVERHEAD_BYTES = 256;

/** JSON in UTF-8 is never shorter than MessagePack of the same row: every key, string and number is at least as long. */
function encodedBytesAtMost(row: PlacementRow): number {
  return Buffer.byteLength(JSON.stringify(row)) + NUMBER_SLACK_BYTES;
}

/** A one-digit fraction is 3 bytes in JSON and 9 in MessagePack; a row has at most 6 numbers that may be fractions. */
const NUMBER_SLACK_BYTES = 64;
