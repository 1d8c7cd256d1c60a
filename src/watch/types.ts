import type { ChangeSet } from '../state/index.ts';

/** The ring of recent changes, fed by apply. Change sets come in revision order, each once. */
export interface ChangeFeed {
  /** Oldest revision still held after which nothing is missing: a subscriber at `>= floor` may continue. */
  readonly floor: number;
  readonly revision: number;
  /**
   * Every change set after `afterRevision`, then each new one as it is applied, synchronously and in order.
   * `onLost` is called once instead when the ring no longer holds what comes next (or a snapshot was installed).
   */
  subscribe(afterRevision: number, onChanges: (set: ChangeSet) => void, onLost: () => void): () => void;
}
