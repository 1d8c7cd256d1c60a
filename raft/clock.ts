/** Time as the node sees it. Real in production, virtual in the simulator. */
export interface Clock {
  /** Monotonic milliseconds, fractional, from an arbitrary origin. */
  now(): number;
  /** Wall time, ms since 1970. For people only: nothing is decided by it. */
  wallNow(): number;
  setTimeout(callback: () => void, delayMs: number): Timer;
  clearTimeout(timer: Timer): void;
  /** Runs the callback once input that has already arrived has been taken in (setImmediate). */
  defer(callback: () => void): void;
}

/** Opaque; only its clock knows what it is. */
export type Timer = object;

/** The one source of chance. Uniform in [0, 2^32). */
export interface Random {
  nextUint32(): number;
}
