import type { Clock } from './clock.ts';
import type { RaftCore } from './core.ts';
import { RaftInvariantError } from './errors.ts';
import type { RaftLimits } from './limits.ts';
import type { StateMachine } from './state-machine.ts';
import type { Entry, Snapshot } from './types.ts';

interface Restoring {
  readonly index: number;
  readonly steps: Iterator<void>;
}

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
  /** The one that replaces the state, step by step; nothing is applied meanwhile. */
  #restoring: Restoring | null = null;
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
    return this.#restoring !== null || this.#appliedIndex < this.#core.log.commitIndex;
  }

  /** At the start, before anything is answered: a step a turn, so that the process sees to its signals and sockets. */
  async restoreStored(snapshot: Snapshot, clock: Clock): Promise<void> {
    this.restore(snapshot);
    for (;;) {
      if (this.#restoring !== null) this.#restoreStep(this.#restoring);
      if (this.#restoring === null) return;
      await new Promise<void>((resolve) => clock.defer(resolve));
    }
  }

  /** Begins to replace the state, one step with every `applySlice`. A newer snapshot takes its place. */
  restore({ data, meta: { index } }: Snapshot): void {
    this.#taking = null;
    const steps = this.#stateMachine.restoreInSteps?.(data, index) ?? this.#wholeRestore(data, index);
    this.#restoring = { index, steps };
  }

  #wholeRestore(data: Uint8Array, index: number): Iterator<void> {
    return {
      next: () => {
        this.#stateMachine.restore(data, index);
        return { done: true, value: undefined };
      },
    };
  }

  #restoreStep({ index, steps }: Restoring): void {
    if (steps.next().done !== true) return;
    this.#restoring = null;
    this.#appliedIndex = index;
    this.#bytesSinceSnapshot = 0;
  }

  /** Applies one slice of what is committed, small enough not to hold the event loop for long. */
  applySlice(): void {
    if (this.#restoring !== null) {
      this.#restoreStep(this.#restoring);
      return;
    }
    const budget = { maxEntries: this.#limits.maxApplyEntries, maxBytes: this.#limits.maxApplyBytes };
    const entries = this.#core.committedEntries(this.#appliedIndex, budget);
    if (entries.length === 0) return;
    const results = this.#stateMachine.apply(entries);
    if (results.length > entries.length) {
      throw new RaftInvariantError(
        `the state machine answered ${results.length} results to ${entries.length} entries`,
      );
    }
    this.#appliedIndex += results.length;
    entries.slice(0, results.length).forEach((entry, at) => {
      this.#bytesSinceSnapshot += entry.data.length;
      this.#onApplied(entry, results[at]);
    });
  }

  /** A snapshot is being taken: another part of it is to be fetched. */
  get isTakingSnapshot(): boolean {
    return this.#taking !== null;
  }

  get snapshotIsDue(): boolean {
    if (this.#restoring !== null || this.#stateMachine.isPartWay === true) return false;
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
