import type { Clock } from '../raft/index.ts';

/**
 * A clock whose deferred callbacks run one a turn, in the order in which they were asked for. What many clients' work is
 * cut into would otherwise all run in the same turn, and hold the thread as if it had not been cut.
 */
export function oneATurn(clock: Clock): Clock {
  const waiting: (() => void)[] = [];
  let next = 0;
  const run = (): void => {
    const callback = waiting[next];
    next += 1;
    if (next < waiting.length) clock.defer(run);
    else {
      waiting.length = 0;
      next = 0;
    }
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
