import { describe, expect, it } from 'vitest';
import { drawPlan, FAULTS, shrinkPlan, type SimAction, type SimPlan } from '../../../src/sim/index.ts';

describe('drawPlan', () => {
  it('draws the same plan for a seed, and others for others', () => {
    expect(drawPlan(7, { brokers: true })).toEqual(drawPlan(7, { brokers: true }));
    expect(drawPlan(8, { brokers: true })).not.toEqual(drawPlan(7, { brokers: true }));
  });

  it('keeps its promises: sizes, kinds of fault, a core that is a quorum, one rotten member outside it', () => {
    for (let seed = 1; seed <= 100; seed++) {
      const plan = drawPlan(seed, { brokers: true });
      expect(plan.members.length).toBeGreaterThanOrEqual(3);
      expect(plan.members.length).toBeLessThanOrEqual(5);
      expect(plan.operations.length).toBe(500);
      expect(plan.faults.length).toBeGreaterThanOrEqual(4);
      expect(plan.brokers.length).toBeGreaterThanOrEqual(plan.replicationFactor);
      expect(plan.core.length * 2).toBeGreaterThan(plan.members.length);
      const rotten = plan.actions.flatMap((action) => (action.type === 'flipBit' ? [action.target] : []));
      expect(new Set(rotten).size).toBeLessThanOrEqual(1);
      for (const id of rotten) expect(plan.core).not.toContain(id);
      expect(new Set(plan.operations.map((operation) => operation.value)).size).toBe(500);
    }
  });

  it('draws the kinds of fault that are asked for alone', () => {
    const { faults, actions } = drawPlan(3, { brokers: true, only: ['stall', 'brokerRestored'] });
    expect(faults).toEqual(['stall', 'brokerRestored']);
    expect(new Set(actions.map(({ type }) => type))).toEqual(new Set(['stall', 'restore']));
    for (const kind of faults) expect(FAULTS).toContain(kind);
  });

  it('leaves the rest of a plan as it is with brokers or without', () => {
    const { operations, settings, core } = drawPlan(5, { brokers: true });
    expect(drawPlan(5, { brokers: false })).toMatchObject({
      operations,
      settings,
      core,
      brokers: [],
      records: [],
    });
  });
});

describe('shrinkPlan', () => {
  const stall = { type: 'stall', atMs: 9_000, target: 'n1', timersFirst: true, forMs: 1_270 } as const;
  const others = Array.from({ length: 30 }, (_, i): SimAction => ({
    type: 'transfer',
    atMs: 300 * i,
    to: 'n2',
  }));
  const plan: SimPlan = { ...drawPlan(3, { brokers: false }), actions: [...others, stall] };

  it('drops all that a failure does not need', async () => {
    const wanted = plan.operations[123];
    const fails = (candidate: SimPlan): Promise<boolean> =>
      Promise.resolve(
        candidate.actions.some((action) => action.type === 'stall') &&
          candidate.operations.some((operation) => operation.value === wanted?.value),
      );
    const short = await shrinkPlan(plan, fails);
    expect(short.actions.length).toBe(1);
    expect(short.operations).toEqual([wanted]);
    expect(short.outsiders).toBe('healed');
  });

  it('shortens what is left, as far as it still fails', async () => {
    const fails = (candidate: SimPlan): Promise<boolean> =>
      Promise.resolve(candidate.actions.some((action) => action.type === 'stall' && action.forMs >= 100));
    const short = await shrinkPlan(plan, fails);
    const [only] = short.actions;
    expect(short.actions.length).toBe(1);
    if (only?.type !== 'stall') throw new Error('the stall is gone');
    expect(only.forMs).toBeGreaterThanOrEqual(100);
    expect(only.forMs).toBeLessThan(200);
  });

  it('gives a plan back that it can do nothing with', async () => {
    const short = await shrinkPlan(plan, (candidate) => Promise.resolve(candidate === plan));
    expect(short).toBe(plan);
  });
});
