import type { Entry } from './types.ts';

/** What the log drives. Called on one member in index order, each entry exactly once between restores. */
export interface StateMachine {
  /** Applies committed entries of every kind (a no-op has empty data); answers one result an entry. Pure: no I/O, no clock. Throws only for what must stop the node. */
  apply(entries: readonly Entry[]): unknown[];
  /** The whole state at the last applied index, in its canonical encoding. */
  snapshot(): Uint8Array;
  /** Replaces the whole state. `index` is the last entry the snapshot covers. */
  restore(data: Uint8Array, index: number): void;
}
