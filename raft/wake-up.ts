import type { Clock, Timer } from './clock.ts';

/** One timer that is only ever moved forward in time by firing. */
export class WakeUp {
  readonly #clock: Clock;
  readonly #callback: () => void;
  #timer: { readonly handle: Timer; readonly atMs: number } | null = null;

  constructor(clock: Clock, callback: () => void) {
    this.#clock = clock;
    this.#callback = callback;
  }

  /** Fires at `atMs` or earlier, and not before a millisecond has passed. */
  arm(atMs: number): void {
    if (this.#timer !== null && this.#timer.atMs <= atMs) return;
    this.cancel();
    const delayMs = Math.max(1, atMs - this.#clock.now());
    const handle = this.#clock.setTimeout(() => {
      this.#timer = null;
      this.#callback();
    }, delayMs);
    this.#timer = { handle, atMs };
  }

  cancel(): void {
    if (this.#timer !== null) this.#clock.clearTimeout(this.#timer.handle);
    this.#timer = null;
  }
}
