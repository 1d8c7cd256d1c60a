import type { RaftCore } from './core.ts';
import { RaftInvariantError } from './errors.ts';
import type { RaftLimits } from './limits.ts';
import type { StateMachine } from './state-machine.ts';
import type { Entry, Snapshot } from './types.ts';

/** Feeds the state machine in index order, in slices, and takes its snapshots. */
export class Applier {
  readonly #core: RaftCore;
  readonly #stateMachine: StateMachine;
  readonly #limits: RaftLimits;
  readonly #onApplied: (entry: Entry, result: unknown) => void;
  #appliedIndex = 0;
  #bytesSinceSnapshot = 0;

  constructor(parts: {
    core: RaftCore;
    stateMachine: StateMachine;
    limits: RaftLimits;
    onApplied: (entry: Entry, result: unknown) => void;
  }) {
    this.#core = parts.core;
    this.#stateMachine = parts.stateMachine;
    this.#limits = parts.limits;
    this.#onApplied = parts.onApplied;
  }

  get appliedIndex(): number {
    return this.#appliedIndex;
  }

  get isBehind(): boolean {
    return this.#appliedIndex < this.#core.log.commitIndex;
  }

  restore(snapshot: Snapshot): void {
    this.#stateMachine.restore(snapshot.data, snapshot.meta.index);
    this.#appliedIndex = snapshot.meta.index;
    this.#bytesSinceSnapshot = 0;
  }

  /** Applies one slice of what is committed, small enough not to hold the event loop for long. */
  applySlice(): void {
    const budget = { maxEntries: this.#limits.maxApplyEntries, maxBytes: this.#limits.maxApplyBytes };
    const entries = this.#core.committedEntries(this.#appliedIndex, budget);
    if (entries.length === 0) return;
    const results = this.#stateMachine.apply(entries);
    if (results.length !== entries.length) {
      throw new RaftInvariantError(
        `the state machine answered ${results.length} results to ${entries.length} entries`,
      );
    }
    this.#appliedIndex += entries.length;
    entries.forEach((entry, at) => {
      this.#bytesSinceSnapshot += entry.data.length;
      this.#onApplied(entry, results[at]);
    });
  }

  get snapshotIsDue(): boolean {
    const entries = this.#appliedIndex - this.#core.log.snapshotIndex;
    return (
      entries >= this.#limits.snapshotEveryEntries ||
      (entries > 0 && this.#bytesSinceSnapshot >= this.#limits.snapshotEveryBytes)
    );
  }

  /** A snapshot at the applied index, never ahead of it (hazard 26). */
  takeSnapshot(): void {
    this.#core.compact(this.#appliedIndex, this.#stateMachine.snapshot());
    this.#bytesSinceSnapshot = 0;
  }
}
