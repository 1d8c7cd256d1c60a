import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { operator, plan, simulate, type Planner } from '../../placement/index.ts';
import { assignment, broker, brokers, clusterOf, NO_REPORTS, resource, snapshot } from './support/rows.ts';
import { RUNS, SEED } from './support/seed.ts';

const PLANNER: Planner = { plan, ...operator };
const TIMEOUT_MS = 60_000 * RUNS;

describe('a broker that comes back with its disk', () => {
  const title = 'is given its share of leaderships without a single copy, as soon as its own are in sync';
  const clusters = 300 * RUNS;
  it(`${title} (${clusters} clusters, seed ${SEED})`, { timeout: TIMEOUT_MS }, () => {
    const layout = fc.record({
      count: fc.integer({ min: 2, max: 7 }),
      resources: fc.array(
        fc.record({
          shards: fc.integer({ min: 1, max: 30 }),
          replicationFactor: fc.integer({ min: 2, max: 4 }),
        }),
        { minLength: 1, maxLength: 4 },
      ),
      slots: fc.integer({ min: 1, max: 3 }),
      awayMs: fc.integer({ min: 1, max: 250_000 }),
    });
    fc.assert(
      fc.property(layout, ({ count, resources, slots, awayMs }) => {
        const ids = Array.from({ length: count }, (_, i) => `b${i}`);
        const file = clusterOf({
          brokers: brokers(...ids),
          resources: resources.map(({ shards, replicationFactor }, i) =>
            resource(`r${i}`, shards, { replicationFactor: Math.min(replicationFactor, count) }),
          ),
          policy: { maxConcurrentMoves: slots, maxConcurrentHandovers: slots },
        });
        const events = [
          { action: { type: 'down', broker: 'b0' }, afterMs: null, source: 'down' },
          { action: { type: 'up', broker: 'b0' }, afterMs: awayMs, source: 'up' },
        ] as const;
        const { settled, phases } = simulate(file, { events, maxPasses: 5_000 }, PLANNER);
        expect(settled).toBe(true);
        const back = phases.at(-1);
        // Its copies are in sync at the second pass: before, no leadership is copied to it.
        const early = back?.steps.filter(
          ({ pass, role, to, copies }) => pass < 2 && role === 'leader' && to === 'b0' && copies,
        );
        expect(early).toEqual([]);
        // Several small resources can be level in fewer moves with a copy than by handing back what it led.
        if (resources.length === 1) {
          expect(back?.moves.filter(({ role, copied }) => role === 'leader' && copied)).toEqual([]);
        }
        expect(phases.at(-1)?.levels.maxLeaderSpreadPerResource).toBeLessThanOrEqual(1);
      }),
      {
        seed: SEED,
        numRuns: clusters,
        // Of the four that lead one too many, three could hand theirs over: the fourth must not be the one that gives.
        examples: [[{ count: 5, resources: [{ shards: 8, replicationFactor: 2 }], slots: 1, awayMs: 1 }]],
      },
    );
  });

  it('is not waited for longer than a move may stand still', () => {
    const shards = Array.from({ length: 4 }, (_, i) => `stream:r/${i}`);
    const now = (registeredAtMs: number) =>
      snapshot({
        nowMs: 100_000,
        policy: { moveStallMs: 1_000 },
        brokers: [broker('b1'), broker('b2'), broker('b3', { registeredAtMs })],
        resources: [resource('r', 4, { replicationFactor: 2 })],
        assignments: shards.map((shard, i) =>
          i < 2 ? assignment(shard, ['b1', 'b3'], { inSync: ['b1'] }) : assignment(shard, ['b1', 'b2']),
        ),
      });
    const toB3 = (registeredAtMs: number) =>
      plan(now(registeredAtMs), NO_REPORTS).steps.filter(({ to, copies }) => to === 'b3' && copies);
    expect(toB3(99_001)).toEqual([]);
    expect(plan(now(99_001), NO_REPORTS).nextDeadlineMs).toBe(100_001);
    expect(toB3(99_000)).not.toEqual([]);
  });
});
