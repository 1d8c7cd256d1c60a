import { describe, expect, it } from 'vitest';
import { SimProcess, SimRandom, SimWorld } from '../../../src/sim/index.ts';

const still = { life: 1, driftPart: 0, wallOffsetMs: 0 };

describe('SimWorld', () => {
  it('runs events by time, then in the order they were scheduled', async () => {
    const world = new SimWorld(1);
    const seen: string[] = [];
    world.schedule(5, 'c', () => seen.push('c'));
    world.schedule(1, 'a', () => seen.push('a'));
    world.schedule(5, 'd', () => seen.push('d'));
    world.schedule(2, 'b', () => seen.push('b'));
    world.schedule(11, 'late', () => seen.push('late'));
    await world.run({ untilMs: 10 });
    expect(seen).toEqual(['a', 'b', 'c', 'd']);
    expect(world.nowMs).toBe(10);
  });

  it('settles all promises of a step before the next one, at the same virtual moment', async () => {
    const world = new SimWorld(1);
    const seen: string[] = [];
    world.schedule(1, 'a', () => {
      void (async () => {
        for (let i = 0; i < 50; i++) await Promise.resolve();
        seen.push(`a settled at ${world.nowMs}`);
      })();
    });
    world.schedule(1, 'b', () => seen.push('b'));
    await world.run({ untilMs: 10 });
    expect(seen).toEqual(['a settled at 1', 'b']);
  });

  it('stops at the step that broke an invariant and rejects with it', async () => {
    const world = new SimWorld(1);
    let steps = 0;
    for (let i = 1; i <= 5; i++) world.schedule(i, 'step', () => steps++);
    world.afterStep = () => {
      if (steps === 3) throw new Error('three');
    };
    await expect(world.run({ untilMs: 10 })).rejects.toThrow('three');
    expect(world.nowMs).toBe(3);
  });

  it('keeps its order under any schedule (against a sorted list)', async () => {
    const random = new SimRandom(7, 'order');
    const world = new SimWorld(1);
    const expected: { timeMs: number; n: number }[] = [];
    const seen: number[] = [];
    for (let n = 0; n < 2_000; n++) {
      const timeMs = random.below(300);
      expected.push({ timeMs, n });
      world.schedule(timeMs, 'n', () => seen.push(n));
    }
    await world.run({ untilMs: 1_000 });
    expect(seen).toEqual(expected.sort((a, b) => a.timeMs - b.timeMs || a.n - b.n).map((e) => e.n));
  });
});

describe('SimProcess', () => {
  it('a stall holds timers and input, and defer still comes after the input that waited', async () => {
    for (const timersFirst of [true, false]) {
      const world = new SimWorld(1);
      const process = new SimProcess(world, 'n1', still);
      const seen: string[] = [];
      process.clock.setTimeout(() => {
        seen.push('timer');
        process.clock.defer(() => seen.push('deferred'));
      }, 10);
      world.schedule(20, 'input', () => process.deliver(() => seen.push('input')));
      world.schedule(5, 'stop', () => process.stall());
      world.schedule(100, 'cont', () => process.resume(timersFirst));
      await world.run({ untilMs: 99 });
      expect(seen).toEqual([]);
      await world.run({ untilMs: 200 });
      expect(seen).toEqual(timersFirst ? ['timer', 'input', 'deferred'] : ['input', 'timer', 'deferred']);
    }
  });

  it('nothing of a killed process runs again', async () => {
    const world = new SimWorld(1);
    const process = new SimProcess(world, 'n1', still);
    const seen: string[] = [];
    process.onEnd(() => seen.push('ended'));
    process.clock.setTimeout(() => seen.push('timer'), 10);
    world.schedule(5, 'kill', () => process.kill());
    world.schedule(20, 'input', () => process.deliver(() => seen.push('input')));
    await world.run({ untilMs: 100 });
    expect(seen).toEqual(['ended']);
  });

  it('a drifting clock fires its timers by its own time', async () => {
    const world = new SimWorld(1);
    const process = new SimProcess(world, 'n1', { ...still, driftPart: 0.25 });
    const begin = process.clock.now();
    let firedAtMs = 0;
    process.clock.setTimeout(() => (firedAtMs = world.nowMs), 1_000);
    await world.run({ untilMs: 2_000 });
    expect(firedAtMs).toBe(800);
    expect(process.clock.now() - begin).toBeCloseTo(2_500);
  });

  it('a cleared timer does not fire, also when it was held', async () => {
    const world = new SimWorld(1);
    const process = new SimProcess(world, 'n1', still);
    const seen: string[] = [];
    const second = process.clock.setTimeout(() => seen.push('second'), 11);
    process.clock.setTimeout(() => {
      seen.push('first');
      process.clock.clearTimeout(second);
    }, 10);
    process.stall();
    world.schedule(50, 'cont', () => process.resume(true));
    await world.run({ untilMs: 100 });
    expect(seen).toEqual(['first']);
  });
});

function draw(seed: number, name: string): number[] {
  const random = new SimRandom(seed, name);
  return Array.from({ length: 4 }, () => random.nextUint32());
}

describe('SimRandom', () => {
  it('gives the same stream for the same seed and name, and others for others', () => {
    expect(draw(1, 'a')).toEqual(draw(1, 'a'));
    expect(draw(1, 'a')).not.toEqual(draw(1, 'b'));
    expect(draw(1, 'a')).not.toEqual(draw(2, 'a'));
  });

  it('is uniform enough to draw rates from', () => {
    const random = new SimRandom(3, 'uniform');
    const buckets = Array.from({ length: 16 }, () => 0);
    for (let i = 0; i < 64_000; i++) {
      const bucket = random.below(16);
      buckets[bucket] = (buckets[bucket] ?? 0) + 1;
    }
    for (const count of buckets) expect(Math.abs(count - 4_000)).toBeLessThan(400);
  });
});
