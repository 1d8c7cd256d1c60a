import { randomFillSync } from 'node:crypto';
import type { Random } from '../raft/index.ts';

const POOL_WORDS = 256;

/** The system's chance: drawn from the operating system, a pool of words at a time. */
export function createSystemRandom(): Random {
  const pool = new Uint32Array(POOL_WORDS);
  let used = POOL_WORDS;
  return {
    nextUint32() {
      if (used === POOL_WORDS) {
        randomFillSync(pool);
        used = 0;
      }
      return pool[used++] ?? 0;
    },
  };
}
