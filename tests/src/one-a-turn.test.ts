import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { oneATurn } from '../../src/one-a-turn.ts';
import { StepClock } from '../support/step-clock.ts';

test('one deferred callback a turn, in the order in which they were asked for', async () => {
  const clock = new StepClock();
  const shared = oneATurn(clock);
  const ran: string[] = [];
  for (const name of ['a', 'b', 'c']) {
    shared.defer(() => {
      ran.push(name);
      if (name === 'a') shared.defer(() => ran.push('a again'));
    });
  }
  for (const upTo of [['a'], ['a', 'b'], ['a', 'b', 'c'], ['a', 'b', 'c', 'a again']]) {
    await clock.turn();
    expect(ran).toEqual(upTo);
  }
  expect(clock.isIdle).toBe(true);
  shared.defer(() => ran.push('later'));
  await clock.turn();
  expect(ran.at(-1)).toBe('later');
});

test('a callback that throws does not keep the others from their turn', async () => {
  const clock = new StepClock();
  const shared = oneATurn(clock);
  let ran = false;
  shared.defer(() => {
    throw new Error('a fault');
  });
  shared.defer(() => (ran = true));
  await expect(clock.turn()).rejects.toThrow('a fault');
  await clock.turn();
  expect(ran).toBe(true);
});

test('what has run is given back, also where somebody always waits', async () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const clock = new StepClock();
  const shared = oneATurn(clock);
  const made: WeakRef<() => void>[] = [];
  const work = (): void => {
    const callback = (): void => work();
    made.push(new WeakRef(callback));
    shared.defer(callback);
  };
  work();
  work();
  for (let turn = 0; turn < 5_000; turn++) await clock.turn();
  await new Promise((resolve) => setImmediate(resolve));
  collect();
  expect(made.length).toBeGreaterThan(5_000);
  expect(made.filter((callback) => callback.deref() !== undefined).length).toBeLessThan(10);
});
