import { setImmediate as turn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { sweep } from '../../../src/control/sweep.ts';

it('what nothing refers to is gone once the thread is swept', async () => {
  const left = new WeakRef({ rows: Array.from({ length: 1_000 }, (_, i) => i) });
  const kept = { rows: [1] };
  const held = new WeakRef(kept);
  // A reference just made is held until its turn has ended.
  await turn();
  sweep();
  expect(left.deref()).toBeUndefined();
  expect(held.deref()).toBe(kept);
});
