import type { Entry } from './types.ts';

/** What the log drives. Called on one member in index order, each entry exactly once between restores. */
export interface StateMachine {
  /**
   * Applies committed entries of every kind (a no-op has empty data). Answers the results of the first ones, as many as it
   * finished: what takes long is left for a later turn, whose call begins with the first entry that is not finished
   * and goes on with it. Pure: no I/O, no clock. Throws only for what must stop the node.
   */
  apply(entries: readonly Entry[]): unknown[];
  /** The first entry that is not finished is applied in part: no snapshot is taken now. */
  readonly isPartWay?: boolean;
  /** The whole state at the last applied index, in its canonical encoding. */
  snapshot(): Uint8Array;
  /**
   * The same bytes in parts, for a state too large to encode in one turn. The parts are of the state as it is at this
   * call, whatever is applied while they are taken; each takes a few milliseconds at most to make.
   */
  snapshotParts?(): Iterator<Uint8Array>;
  /** Replaces the whole state. `index` is the last entry the snapshot covers. */
  restore(data: Uint8Array, index: number): void;
  /** The same in steps of a few milliseconds; nothing is replaced before the last. One that is dropped half-way did nothing. */
  restoreInSteps?(data: Uint8Array, index: number): Iterator<void>;
}
