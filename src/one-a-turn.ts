import type { Clock } from '../raft/index.ts';

/**
 * A clock whose deferred callbacks run one a turn, in the order in which they were asked for. What many clients' work is
 * cut into would otherwise all run in the same turn, and hold the thread as if it had not been cut.
 */
export function oneATurn(clock: Clock): Clock {
  let waiting: (() => void)[] = [];
  let next = 0;
  const run = (): void => {
    const callback = waiting[next];
    next += 1;
    // What has run is cut off once it is half of the list: amortized O(1), also where the list is never empty.
    if (next * 2 >= waiting.length) {
      waiting = waiting.slice(next);
      next = 0;
    }
    if (waiting.length > 0) clock.defer(run);
    callback?.();
  };
  return {
    now: () => clock.now(),
    wallNow: () => clock.wallNow(),
    setTimeout: (callback, delayMs) => clock.setTimeout(callback, delayMs),
    clearTimeout: (timer) => clock.clearTimeout(timer),
    defer(callback) {
      waiting.push(callback);
      if (waiting.length === 1) clock.defer(run);
    },
  };
}
