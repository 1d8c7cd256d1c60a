import { readFileSync } from 'node:fs';
import { pid } from 'node:process';
import { percentile } from './support.ts';

const EVERY_MS = 1;
/** Of the thread that a process begins with: nanoseconds on a core, nanoseconds spent waiting for one. Linux only. */
const SCHEDULED = `/proc/self/task/${pid}/schedstat`;

export interface LoopStops {
  readonly longestMs: number;
  readonly p99Ms: number;
}

/**
 * How long this thread's event loop stood still, less what it waited for a core, which is the machine's doing: other
 * threads and processes lengthen a stop, they make none. A timer every millisecond looks; call the answer to end it.
 */
export function watchLoop(): () => LoopStops {
  const stops: number[] = [];
  let ended = false;
  let last = { atMs: performance.now(), waitedMs: waitedMs() };
  const look = (): void => {
    const [atMs, waited] = [performance.now(), waitedMs()];
    stops.push(Math.max(0, atMs - last.atMs - EVERY_MS - (waited - last.waitedMs)));
    if (ended) return;
    last = { atMs: performance.now(), waitedMs: waited };
    setTimeout(look, EVERY_MS);
  };
  setTimeout(look, EVERY_MS);
  return () => {
    ended = true;
    look();
    stops.sort((a, b) => a - b);
    return { longestMs: stops.at(-1) ?? 0, p99Ms: percentile(stops, 0.99) };
  };
}

function waitedMs(): number {
  return Number(readFileSync(SCHEDULED, 'utf8').split(' ')[1]) / 1e6;
}
