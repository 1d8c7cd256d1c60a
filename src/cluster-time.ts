import type { Clock } from '../raft/index.ts';

/**
 * Cluster time on one member: it stands still at the last time applied, and while this member leads it runs with the
 * member's monotonic clock on top of that.
 */
export class ClusterTime {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #appliedMs: () => number;
  #base: { readonly clusterMs: number; readonly clockMs: number } | null = null;

  /** `appliedMs` returns the highest time in the applied state. */
  constructor(clock: Pick<Clock, 'now'>, appliedMs: () => number) {
    this.#clock = clock;
    this.#appliedMs = appliedMs;
  }

  /** This member's leadership is established: its clock counts from here on. */
  run(): void {
    this.#base = { clusterMs: this.#appliedMs(), clockMs: this.#clock.now() };
  }

  /** This member does not lead. */
  stop(): void {
    this.#base = null;
  }

  /** Whole ms. */
  nowMs(): number {
    const appliedMs = this.#appliedMs();
    if (this.#base === null) return appliedMs;
    const { clusterMs, clockMs } = this.#base;
    const nowMs = clusterMs + Math.floor(this.#clock.now() - clockMs);
    if (appliedMs <= nowMs) return nowMs;
    // An entry carried a later time. Time must run on from there, not wait until the clock gets there.
    this.run();
    return appliedMs;
  }
}
