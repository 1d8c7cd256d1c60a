import type { Notification } from '../../client/index.ts';
import type { Assignment } from '../../../placement/index.ts';

export interface FinishedMove {
  readonly shard: string;
  readonly from: string;
  readonly to: string;
}

/** Counts leaderships that were handed over, from the change feed. A promotion after a failure is no move. */
export class MoveCounter {
  readonly #rows = new Map<string, Assignment>();
  readonly finished: FinishedMove[] = [];
  /** Everything up to here was counted. */
  revision: number;

  /** `assignments` as they stand at `revision`. */
  constructor(assignments: readonly Assignment[], revision: number) {
    this.revision = revision;
    for (const row of assignments) this.#rows.set(row.shard, row);
  }

  take({ method, params }: Notification): void {
    const rows = params[method === 'watch.changes' ? 'changes' : 'rows'];
    const { revision } = params;
    if (typeof revision === 'number') this.revision = Math.max(this.revision, revision);
    if (!Array.isArray(rows)) return;
    for (const change of rows as readonly { kind: string; assignment?: Assignment; shard?: string }[]) {
      if (change.kind === 'assignment' && change.assignment !== undefined) this.#see(change.assignment);
      if (change.kind === 'removed' && change.shard !== undefined) this.#rows.delete(change.shard);
    }
  }

  #see(row: Assignment): void {
    const before = this.#rows.get(row.shard);
    this.#rows.set(row.shard, row);
    if (before === undefined || before.leader === row.leader) return;
    const { move } = before;
    if (move?.role !== 'leader' || move.to !== row.leader) return;
    this.finished.push({ shard: row.shard, from: before.leader, to: row.leader });
  }
}
