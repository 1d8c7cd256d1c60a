import type { Clock } from '../../raft/index.ts';
import type { AssignmentRow } from '../state/index.ts';

/** Rows looked at in one turn. */
const ROWS_PER_SLICE = 5_000;

/** Shards that nobody serves though they have a leader: it opens the shard, or is fenced for a hand-over. */
export interface Stuck {
  /** How many have been so for longer than asked. */
  readonly count: number;
  readonly longest: { readonly shard: string; readonly forMs: number } | null;
}

/**
 * Since when each shard is not `active`, as this leader has seen it. Rows carry no such time, and a leader that has
 * stopped confirming or draining would otherwise look like one that is about to.
 */
export class InactiveShards {
  readonly #clock: Clock;
  /** By shard, on this node's monotonic clock, ms. */
  readonly #sinceMs = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Takes in rows that were there before this leader, some in each turn. */
  async scan(
    rows: readonly AssignmentRow[],
    current: (shard: string) => AssignmentRow | undefined,
  ): Promise<void> {
    for (let at = 0; at < rows.length; at += ROWS_PER_SLICE) {
      if (at > 0) await new Promise<void>((resolve) => this.#clock.defer(resolve));
      for (const { shard } of rows.slice(at, at + ROWS_PER_SLICE)) {
        const row = current(shard);
        if (row !== undefined) this.note(row);
      }
    }
  }

  note(row: AssignmentRow): void {
    if (row.state === 'active') this.#sinceMs.delete(row.shard);
    else if (!this.#sinceMs.has(row.shard)) this.#sinceMs.set(row.shard, this.#clock.now());
  }

  forget(shard: string): void {
    this.#sinceMs.delete(shard);
  }

  /** Those that have not been active for at least so long. */
  longerThan(ms: number): Stuck {
    const nowMs = this.#clock.now();
    let count = 0;
    let longest: Stuck['longest'] = null;
    for (const [shard, sinceMs] of this.#sinceMs) {
      const forMs = nowMs - sinceMs;
      if (forMs < ms) continue;
      count++;
      if (longest === null || forMs > longest.forMs) longest = { shard, forMs };
    }
    return { count, longest };
  }
}
