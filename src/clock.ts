import { performance } from 'node:perf_hooks';
import type { Clock, Timer } from '../raft/index.ts';

/** About 24 days: beyond it Node fires at once. */
const MAX_DELAY_MS = 2 ** 31 - 1;

/**
 * The system's time. Its timers keep the process alive: a broker that waits to reconnect has nothing else
 * that does. Whoever stops a part clears its timers.
 */
export function createSystemClock(): Clock {
  const timers = new WeakMap<Timer, NodeJS.Timeout>();
  return {
    now: () => performance.now(),
    wallNow: () => Date.now(),
    setTimeout(callback, delayMs) {
      const timer: Timer = {};
      timers.set(timer, setTimeout(callback, Math.min(delayMs, MAX_DELAY_MS)));
      return timer;
    },
    clearTimeout(timer) {
      clearTimeout(timers.get(timer));
    },
    defer(callback) {
      setImmediate(callback);
    },
  };
}
