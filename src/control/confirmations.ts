import type { AssignmentRow, Served, StateView } from '../state/index.ts';

/** Most shards that are told of at once. */
const MAX_OVERDUE = 1_000;
/** Rows looked at in one turn, of those there were as the leadership began. */
const ROWS_PER_TURN = 10_000;

interface Awaited {
  readonly epoch: number;
  readonly sinceMs: number;
}

/** Which leaders have been named and have not confirmed, and since when: counted from when this Raft leader first saw it. */
export class Confirmations {
  /** By shard; the longest awaited first. */
  readonly #awaited = new Map<string, Awaited>();
  #rest: Iterator<AssignmentRow> | null = null;

  begin(state: StateView): void {
    this.#rest = state.assignments.list().values();
  }

  note({ shard, state, epoch }: AssignmentRow, nowMs: number): void {
    if (state !== 'assigning') {
      this.#awaited.delete(shard);
      return;
    }
    if (this.#awaited.get(shard)?.epoch === epoch) return;
    this.#awaited.delete(shard);
    this.#awaited.set(shard, { epoch, sinceMs: nowMs });
  }

  forget(shard: string): void {
    this.#awaited.delete(shard);
  }

  /** Goes on with the rows there were at the beginning. */
  turn(state: StateView, nowMs: number): void {
    for (let n = 0; this.#rest !== null && n < ROWS_PER_TURN; n++) {
      const { done, value } = this.#rest.next();
      if (done === true) this.#rest = null;
      else if (value.state === 'assigning') {
        const row = state.assignments.get(value.shard);
        if (row !== undefined) this.note(row, nowMs);
      }
    }
  }

  /** Those awaited for `limitMs`, with who has served them. */
  overdue(state: StateView, nowMs: number, limitMs: number): Map<string, Served> {
    const found = new Map<string, Served>();
    for (const [shard, { sinceMs }] of this.#awaited) {
      if (nowMs - sinceMs < limitMs || found.size >= MAX_OVERDUE) break;
      const row = state.assignments.get(shard);
      if (row?.state === 'assigning') found.set(shard, row.served);
    }
    return found;
  }
}
