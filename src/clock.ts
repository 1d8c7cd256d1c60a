import { performance } from 'node:perf_hooks';
import type { Clock, Timer } from '../raft/index.ts';

/** About 24 days: beyond it Node fires at once. */
const MAX_DELAY_MS = 2 ** 31 - 1;

class SystemTimer implements Timer {
  readonly timeout: NodeJS.Timeout;

  constructor(timeout: NodeJS.Timeout) {
    this.timeout = timeout;
  }
}

/**
 * The system's time. Its timers keep the process alive: a broker that waits to reconnect has nothing else
 * that does. Whoever stops a part clears its timers.
 */
export function createSystemClock(): Clock {
  return {
    now: () => performance.now(),
    wallNow: () => Date.now(),
    setTimeout(callback, delayMs) {
      return new SystemTimer(setTimeout(callback, Math.min(delayMs, MAX_DELAY_MS)));
    },
    clearTimeout(timer) {
      if (timer instanceof SystemTimer) clearTimeout(timer.timeout);
    },
    defer(callback) {
      setImmediate(callback);
    },
  };
}
