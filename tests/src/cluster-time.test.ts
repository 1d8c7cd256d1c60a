import { expect, it } from 'vitest';
import { ClusterTime } from '../../src/cluster-time.ts';

function member(appliedMs: number) {
  const clock = {
    atMs: 12_345,
    now: () => clock.atMs,
    advance: (ms: number) => void (clock.atMs += ms),
  };
  const applied = { ms: appliedMs };
  return { clock, applied, time: new ClusterTime(clock, () => applied.ms) };
}

it('stands still at the last time applied while this member does not lead', () => {
  const { clock, applied, time } = member(700);
  clock.advance(5_000);
  expect(time.nowMs()).toBe(700);
  applied.ms = 900;
  expect(time.nowMs()).toBe(900);
});

it('runs with the clock from the last time applied while this member leads', () => {
  const { clock, time } = member(700);
  clock.advance(5_000);
  time.run();
  clock.advance(250);
  expect(time.nowMs()).toBe(950);
  time.stop();
  expect(time.nowMs()).toBe(700);
});

it('runs on at once from a time that is applied ahead of the clock', () => {
  const { clock, applied, time } = member(700);
  time.run();
  applied.ms = 30 * 86_400_000;
  expect(time.nowMs()).toBe(applied.ms);
  clock.advance(250);
  expect(time.nowMs()).toBe(applied.ms + 250);
});
