import type { Entry } from './types.ts';

/** What the log drives. Called on one member in index order, each entry exactly once between restores. */
export interface StateMachine {
  /** Applies committed entries of every kind (a no-op has empty data); answers one result an entry. Pure: no I/O, no clock. Throws only for what must stop the node. */
  apply(entries: readonly Entry[]): unknown[];
  /** The whole state at the last applied index, in its canonical encoding. */
  snapshot(): Uint8Array;
  /**
   * The same bytes in parts, for a state too large to encode in one turn. The parts are of the state as it is at this
   * call, whatever is applied while they are taken; each takes a few milliseconds at most to make.
   */
  snapshotParts?(): Iterator<Uint8Array>;
  /** Replaces the whole state. `index` is the last entry the snapshot covers. */
  restore(data: Uint8Array, index: number): void;
}
