import { expect, test } from 'vitest';
import { createSystemClock } from '../../src/clock.ts';
import { createSystemRandom } from '../../src/random.ts';

test('time is monotonic, a timer fires once after its delay, a cleared one never', async () => {
  const clock = createSystemClock();
  const fired: string[] = [];
  const before = clock.now();
  const cleared = clock.setTimeout(() => fired.push('cleared'), 1);
  const far = clock.setTimeout(() => fired.push('far'), 1e12);
  clock.clearTimeout(cleared);
  await new Promise<void>((resolve) => {
    clock.setTimeout(() => {
      fired.push('due');
      resolve();
    }, 5);
  });
  // Node's timers count whole milliseconds and may be early by a part of one.
  expect(clock.now() - before).toBeGreaterThan(4);
  expect(fired).toEqual(['due']);
  clock.clearTimeout(far);
  expect(Math.abs(clock.wallNow() - Date.now())).toBeLessThan(1_000);
});

test('deferred work runs after the microtasks of this turn', async () => {
  const clock = createSystemClock();
  const order: string[] = [];
  await new Promise<void>((resolve) => {
    clock.defer(() => {
      order.push('deferred');
      resolve();
    });
    void Promise.resolve().then(() => order.push('microtask'));
  });
  expect(order).toEqual(['microtask', 'deferred']);
});

test('chance is 32 bits wide and differs from draw to draw', () => {
  const random = createSystemRandom();
  const draws = Array.from({ length: 1_000 }, () => random.nextUint32());
  expect(draws.every((draw) => Number.isInteger(draw) && draw >= 0 && draw < 2 ** 32)).toBe(true);
  expect(new Set(draws).size).toBeGreaterThan(990);
  expect(Math.max(...draws)).toBeGreaterThan(2 ** 31);
});
