import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** In which V8's helpers have given back what a collection freed of a gigabyte, ms; mostly. */
const GIVING_BACK_MS = 400;

/**
 * Collects this thread's garbage now, and waits while it is given back to the kernel: with hundreds of MiB under way, any
 * thread of the process that needs memory waits for it, tens of milliseconds where it needs much.
 */
export function sweep(): void {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  collect();
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, GIVING_BACK_MS);
}
