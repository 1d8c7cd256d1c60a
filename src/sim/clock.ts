import type { Clock, Timer } from '../../raft/index.ts';
import type { SimEvent, SimProcess } from './world.ts';

/** Where virtual wall time begins: 2030-01-01. */
const WALL_EPOCH_MS = 1_893_456_000_000;

export interface SimClockOptions {
  /** The monotonic clock runs at 1 + this. */
  readonly driftPart: number;
  /** How far the host's wall clock is off, ms. */
  readonly wallOffsetMs: number;
}

/** A process's view of virtual time. It goes on while the process is stalled, as CLOCK_MONOTONIC does. */
export class SimClock implements Clock {
  readonly #process: SimProcess;
  readonly #rate: number;
  readonly #bornMs: number;
  readonly #originMs: number;
  #wallOffsetMs: number;

  constructor(process: SimProcess, options: SimClockOptions) {
    this.#process = process;
    this.#rate = 1 + options.driftPart;
    this.#wallOffsetMs = options.wallOffsetMs;
    this.#bornMs = process.world.nowMs;
    this.#originMs = process.random.between(0, 1e6);
  }

  now(): number {
    return this.#originMs + (this.#process.world.nowMs - this.#bornMs) * this.#rate;
  }

  wallNow(): number {
    return Math.floor(WALL_EPOCH_MS + this.#wallOffsetMs + this.#process.world.nowMs);
  }

  /** An operator or NTP sets the wall clock. */
  jumpWall(byMs: number): void {
    this.#wallOffsetMs += byMs;
  }

  setTimeout(callback: () => void, delayMs: number): Timer {
    // Like Node, a timer never fires early and never in less than one millisecond.
    return this.#schedule(callback, Math.max(1, delayMs) / this.#rate, 'timer');
  }

  clearTimeout(timer: Timer): void {
    (timer as SimEvent).cancelled = true;
  }

  /** Input that has arrived is already queued for this very moment, so that a new event comes after it. */
  defer(callback: () => void): void {
    this.#schedule(callback, 0, 'defer');
  }

  #schedule(callback: () => void, delayMs: number, label: string): SimEvent {
    const { world, host } = this.#process;
    return world.schedule(delayMs, `${host} ${label}`, callback, this.#process, 'timer');
  }
}
