import type { ClusterRows } from '../command/index.ts';
import type { Sliced } from './outcome.ts';

/**
 * How times of an imported file become times of this cluster: what was so long ago when the file was written is so
 * long ago now. What is older than this cluster began with it.
 */
export class ImportedTimes {
  readonly #shiftMs: number;

  /** Both are the time now: by the file's clock, and by this cluster's. */
  constructor(fileNowMs: number, nowMs: number) {
    this.#shiftMs = nowMs - fileNowMs;
  }

  at(fileMs: number): number {
    return Math.max(0, fileMs + this.#shiftMs);
  }

  /** 0 is a registration that the file does not date: it stays one. */
  registeredAt(fileMs: number): number {
    return fileMs === 0 ? 0 : this.at(fileMs);
  }
}

/** When the file was written, by its own clock: the time it gives, or the latest in its rows. */
export function* fileTime({ brokers, assignments }: ClusterRows, timeMs: number | null): Sliced<number> {
  let latestMs = timeMs ?? 0;
  for (const { registeredAtMs, downSinceMs } of brokers) {
    latestMs = Math.max(latestMs, registeredAtMs, downSinceMs ?? 0);
  }
  for (const { move } of assignments) {
    if (move !== null) latestMs = Math.max(latestMs, move.startedAtMs, move.progressAtMs);
    yield;
  }
  return latestMs;
}
