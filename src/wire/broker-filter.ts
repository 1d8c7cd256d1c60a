import type { AssignmentRow, Change, StateView } from '../state/index.ts';
import { names } from './broker-rows.ts';

/**
 * Which changes one watcher is told. With a broker's filter: the assignments that name it, each once more when it
 * no longer does, and every broker (their addresses are what copies are fetched from).
 */
export class WatchFilter {
  readonly #broker: string | null;
  /** Shards that the watcher was last shown as naming its broker. */
  #shown = new Set<string>();
  /** Changes up to this revision may concern rows whose history before them is not known here. */
  #blindUntil = 0;
  readonly #seenBlind = new Set<string>();

  constructor(broker: string | null) {
    this.#broker = broker;
  }

  /** The rows of a snapshot. */
  snapshot(state: StateView): AssignmentRow[] {
    this.#blindUntil = 0;
    this.#seenBlind.clear();
    const broker = this.#broker;
    if (broker === null) return [...state.assignments.values()];
    const rows: AssignmentRow[] = [];
    for (const row of state.assignments.values()) if (names(row, broker)) rows.push(row);
    this.#shown = new Set(rows.map((row) => row.shard));
    return rows;
  }

  /**
   * Goes on from a revision without a snapshot. What rows looked like then is not known: a row that changed since
   * is sent whether it matches or not, the first time.
   */
  resume(state: StateView): void {
    this.#blindUntil = state.revision;
    this.#seenBlind.clear();
    const broker = this.#broker;
    if (broker === null) return;
    this.#shown = new Set();
    for (const row of state.assignments.values()) if (names(row, broker)) this.#shown.add(row.shard);
  }

  wants(change: Change, revision: number): boolean {
    if (this.#broker === null) return true;
    if (change.kind === 'assignment') {
      const { shard } = change.assignment;
      const known = this.#isShown(shard, revision);
      const matches = names(change.assignment, this.#broker);
      if (matches) this.#shown.add(shard);
      else this.#shown.delete(shard);
      return matches || known;
    }
    if (change.kind === 'removed') {
      const known = this.#isShown(change.shard, revision);
      this.#shown.delete(change.shard);
      return known;
    }
    return true;
  }

  #isShown(shard: string, revision: number): boolean {
    const isBlind = revision <= this.#blindUntil && !this.#seenBlind.has(shard);
    if (isBlind) this.#seenBlind.add(shard);
    return isBlind || this.#shown.has(shard);
  }
}
