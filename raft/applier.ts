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
  /** The one that is being taken. */
  #taking: {
    readonly index: number;
    readonly parts: Iterator<Uint8Array>;
    readonly done: Uint8Array[];
  } | null = null;
  /** A snapshot of this index or later was asked for. */
  #askedFor = 0;

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
    this.#taking = null;
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

  /** A snapshot is being taken: another part of it is to be fetched. */
  get isTakingSnapshot(): boolean {
    return this.#taking !== null;
  }

  get snapshotIsDue(): boolean {
    const { snapshotIndex } = this.#core.log;
    const entries = this.#appliedIndex - snapshotIndex;
    return (
      entries >= this.#limits.snapshotEveryEntries ||
      (entries > 0 && this.#bytesSinceSnapshot >= this.#limits.snapshotEveryBytes) ||
      this.#askedFor > snapshotIndex
    );
  }

  /** Makes a snapshot of `index`, which is applied, or of a later one due. */
  askForSnapshot(index: number): void {
    this.#askedFor = Math.max(this.#askedFor, index);
  }

  /** A snapshot at the applied index, never ahead of it (hazard 26); `fetchPart` goes on with it. */
  beginSnapshot(): void {
    const parts = this.#stateMachine.snapshotParts?.() ?? [this.#stateMachine.snapshot()].values();
    this.#taking = { index: this.#appliedIndex, parts, done: [] };
    this.#bytesSinceSnapshot = 0;
  }

  /** The next part of the snapshot that is being taken; with the last the log is compacted behind it. */
  fetchPart(): void {
    if (this.#taking === null) return;
    const { index, parts, done } = this.#taking;
    const next = parts.next();
    if (next.done !== true) {
      done.push(next.value);
      return;
    }
    this.#taking = null;
    this.#core.compact(index, joined(done));
  }
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const [first] = parts;
  if (parts.length === 1 && first !== undefined) return first;
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
