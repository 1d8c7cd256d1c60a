import type { Clock, Timer } from '../../../raft/index.ts';

interface Due {
  readonly atMs: number;
  readonly order: number;
  readonly callback: () => void;
  cancelled: boolean;
}

/** Time that only the test moves. Deferred callbacks run before the next timer; promises settle in between. */
export class VirtualClock implements Clock {
  #nowMs = 1_000;
  #order = 0;
  #timers: Due[] = [];
  #deferred: (() => void)[] = [];

  now(): number {
    return this.#nowMs;
  }

  wallNow(): number {
    return this.#nowMs;
  }

  setTimeout(callback: () => void, delayMs: number): Timer {
    const due: Due = { atMs: this.#nowMs + delayMs, order: this.#order++, callback, cancelled: false };
    this.#timers.push(due);
    return due;
  }

  clearTimeout(timer: Timer): void {
    const due = this.#timers.find((each) => each === timer);
    if (due !== undefined) due.cancelled = true;
    this.#timers = this.#timers.filter((each) => each !== timer);
  }

  defer(callback: () => void): void {
    this.#deferred.push(callback);
  }

  /** Runs everything that is due now, without letting time pass. */
  async settle(): Promise<void> {
    let quiet = 0;
    while (quiet < 10) {
      await Promise.resolve();
      const callback = this.#deferred.shift();
      quiet = callback === undefined ? quiet + 1 : 0;
      callback?.();
    }
  }

  /** Lets time pass, timer by timer. */
  async advance(ms: number): Promise<void> {
    const untilMs = this.#nowMs + ms;
    await this.settle();
    for (;;) {
      this.#timers.sort((a, b) => a.atMs - b.atMs || a.order - b.order);
      const next = this.#timers[0];
      if (next === undefined || next.atMs > untilMs) break;
      this.#timers.shift();
      this.#nowMs = Math.max(this.#nowMs, next.atMs);
      if (!next.cancelled) next.callback();
      await this.settle();
    }
    this.#nowMs = untilMs;
    await this.settle();
  }

  /** Time jumps with nothing running: a stopped process, a stalled loop. */
  jump(ms: number): void {
    this.#nowMs += ms;
  }
}
