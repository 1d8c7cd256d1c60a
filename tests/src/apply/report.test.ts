import { beforeEach, describe, expect, it } from 'vitest';
import { decided, Harness, staged } from './harness.ts';

let h: Harness;

beforeEach(() => {
  h = new Harness();
  for (const id of ['b1', 'b2', 'b3']) h.register(id);
  h.create('s', { replicationFactor: 3 });
  h.place({ next: decided(['b1', 'b2', 'b3']) });
  h.confirm('b1');
});

describe('a report', () => {
  it('of a changed set is one more generation and no epoch; of the same set it is none', () => {
    const { generation, epoch } = h.assignment();
    expect(h.report('b1', [{ inSync: ['b3', 'b1'] }])).toEqual(['accepted']);
    expect(h.assignment()).toMatchObject({ inSync: ['b1', 'b3'], generation: generation + 1, epoch });
    const { revision } = h.state;
    expect(h.report('b1', [{ inSync: ['b1', 'b3'] }])).toEqual(['accepted']);
    expect(h.assignment().generation).toBe(generation + 1);
    expect(h.state.revision).toBe(revision);
  });

  it('of a copy that has caught up by itself lets what has moved move again; of one that fell behind, or a move has brought, not', () => {
    const { phase } = h.state;
    h.report('b1', [{ inSync: ['b1', 'b3'] }]);
    expect(h.state.phase).toBe(phase);
    h.report('b1', [{ inSync: ['b1', 'b2', 'b3'] }]);
    expect(h.state.phase).toBe(h.state.appliedIndex);
    h.report('b1', [{ inSync: ['b1', 'b3'] }]);
    const begun = h.state.phase;
    h.place({ step: 'stage', next: decided(['b1', 'b2', 'b3'], { inSync: ['b1', 'b3'], move: staged() }) });
    h.report('b1', [{ inSync: ['b1', 'b2', 'b3'] }]);
    expect(h.assignment()).toMatchObject({ inSync: ['b1', 'b2', 'b3'], move: { to: 'b2' } });
    expect(h.state.phase).toBe(begun);
  });

  it.each(['active', 'assigning'])(
    'takes the leader out for the copies in sync that stay, while %s',
    (state) => {
      if (state === 'assigning') h.register('b1');
      const { epoch } = h.assignment();
      expect(h.report('b1', [{ inSync: ['b2', 'b3'] }])).toEqual(['accepted']);
      expect(h.assignment()).toMatchObject({ leader: 'b1', inSync: ['b2', 'b3'], state, epoch });
      // It leads in name until another is promoted.
      expect(h.report('b1', [{ inSync: ['b1', 'b2', 'b3'] }])).toEqual(['not_leader']);
      expect(h.confirm('b1')).toBe('not_leader');
    },
  );

  it('never takes the leader out for nobody, nor for a copy that only it says is in sync', () => {
    expect(h.report('b1', [{ inSync: [] }])).toEqual(['stale']);
    h.report('b1', [{ inSync: ['b1', 'b2'] }]);
    expect(h.report('b1', [{ inSync: ['b3'] }])).toEqual(['stale']);
    expect(h.report('b1', [{ inSync: ['b2', 'b3'] }])).toEqual(['stale']);
    expect(h.assignment().inSync).toEqual(['b1', 'b2']);
  });

  it('is answered shard by shard, in request order', () => {
    h.create('t', { shards: 2 });
    h.place({ shard: 'stream:t/0', next: decided(['b2', 'b1']) });
    const results = h.report('b1', [
      { shard: 'stream:t/1', generation: 1 },
      { shard: 'stream:t/0', inSync: ['b1'] },
      { inSync: ['b1'] },
      { generation: 2, inSync: ['b1', 'b2'] },
    ]);
    expect(results).toEqual(['unknown_shard', 'not_leader', 'accepted', 'stale']);
    expect(h.assignment().inSync).toEqual(['b1']);
  });

  it('is stale for a later generation too', () => {
    expect(h.report('b1', [{ generation: h.assignment().generation + 1, inSync: ['b1'] }])).toEqual([
      'stale',
    ]);
  });

  it('naming a broker without a copy is stale', () => {
    h.register('b4');
    expect(h.report('b1', [{ inSync: ['b1', 'b4'] }])).toEqual(['stale']);
  });

  it('counts only from the incarnation registered last, and not from one that was declared silent', () => {
    const say = (incarnation: number) => ({ type: 'report', broker: 'b1', incarnation, shards: [] }) as const;
    expect(h.refused(say(2))).toMatchObject({ code: 'stale_incarnation' });
    h.ok({ type: 'setLifecycle', broker: 'b1', incarnation: 1, lifecycle: 'down', silentSinceMs: 0 });
    expect(h.refused(say(1))).toMatchObject({ code: 'must_register' });
    expect(h.refused({ ...say(1), broker: 'b9' })).toMatchObject({ code: 'must_register' });
  });

  it('of a leader whose store is gone is refused: it holds nothing', () => {
    h.register('b1', { storeId: 'fresh' });
    expect(h.report('b1', [{ inSync: ['b1'] }])).toEqual(['not_leader']);
    expect(h.confirm('b1')).toBe('not_leader');
    expect(h.assignment().inSync).toEqual(['b2', 'b3']);
  });
});

describe('drained', () => {
  const move = {
    role: 'leader',
    from: 'b1',
    to: 'b2',
    reason: 'balance',
    copied: false,
    drops: null,
    startedAtMs: 0,
    progressAtMs: 0,
  } as const;
  const all = ['b1', 'b2', 'b3'];
  const stage = () => {
    const { inSync } = h.assignment();
    const next = decided(all, { inSync, state: 'active', move: { ...move, step: 'staged' } });
    expect(h.place({ step: 'stage', next }).result).toBe('accepted');
  };
  const fence = () => {
    const { inSync } = h.assignment();
    const next = decided(all, { inSync, state: 'draining', move: { ...move, step: 'fenced' } });
    return h.place({ step: 'fence', opensEpoch: true, next });
  };

  it('counts only under a fence', () => {
    stage();
    expect(h.report('b1', [{ drained: true }])).toEqual(['stale']);
    expect(h.assignment().drained).toBe(false);
  });

  it('counts only at the current generation', () => {
    stage();
    const { generation } = h.assignment();
    fence();
    expect(h.report('b1', [{ generation, drained: true }])).toEqual(['stale']);
    expect(h.assignment().drained).toBe(false);
  });

  it('counts only with the destination in sync, which the same report may say', () => {
    h.report('b1', [{ inSync: ['b1', 'b3'] }]);
    stage();
    fence();
    expect(h.report('b1', [{ drained: true }])).toEqual(['stale']);
    expect(h.report('b1', [{ drained: true, inSync: ['b1', 'b2'] }])).toEqual(['accepted']);
    expect(h.assignment()).toMatchObject({ drained: true, inSync: ['b1', 'b2'] });
  });

  it('holds while another copy comes or goes, and ends with the destination out of sync', () => {
    stage();
    fence();
    h.report('b1', [{ drained: true }]);
    h.ok({ type: 'setLifecycle', broker: 'b3', incarnation: 1, lifecycle: 'down', silentSinceMs: 0 });
    expect(h.assignment()).toMatchObject({ drained: true, inSync: ['b1', 'b2'] });
    h.report('b1', [{ inSync: ['b1'] }]);
    expect(h.assignment().drained).toBe(false);
  });

  it('ends with the fence', () => {
    stage();
    fence();
    h.report('b1', [{ drained: true }]);
    const undo = h.place({ step: 'abandon', opensEpoch: true, next: decided(all, { failedMoves: 1 }) });
    expect(undo.result).toBe('accepted');
    expect(h.assignment()).toMatchObject({ drained: false, stagedIncarnation: null, state: 'assigning' });
  });

  it('notes when the destination came into sync', () => {
    h.report('b1', [{ inSync: ['b1'] }]);
    stage();
    h.timeMs = 4_321;
    h.report('b1', [{ inSync: ['b1', 'b3'] }]);
    expect(h.assignment().move?.progressAtMs).toBe(0);
    h.report('b1', [{ inSync: all }]);
    expect(h.assignment().move?.progressAtMs).toBe(4_321);
  });
});

describe('a confirm', () => {
  it('turns assigning into active once', () => {
    h.register('b1');
    const { generation, epoch } = h.assignment();
    expect(h.confirm('b1')).toBe('accepted');
    expect(h.assignment()).toMatchObject({ state: 'active', generation: generation + 1, epoch });
    expect(h.confirm('b1', 'stream:s/0', generation)).toBe('stale');
    expect(h.confirm('b1')).toBe('accepted');
    expect(h.assignment().generation).toBe(generation + 1);
  });

  it('is for the leader alone', () => {
    expect(h.confirm('b2')).toBe('not_leader');
    expect(h.confirm('b1', 'stream:s/7', 1)).toBe('unknown_shard');
  });
});

describe('who has served a shard', () => {
  const served = () => h.assignment().served;

  it('is nobody until it is confirmed, whoever is named meanwhile', () => {
    const g = new Harness();
    for (const id of ['b1', 'b2']) g.register(id);
    g.create('s', { replicationFactor: 2 });
    g.place({ next: decided(['b1', 'b2']) });
    g.register('b1');
    g.place({ step: 'promote', opensEpoch: true, next: decided(['b2', 'b1']) });
    expect(g.assignment().served).toBe('never');
    g.confirm('b2');
    expect(g.assignment().served).toBe('leader');
  });

  it('is not the process that is named anew', () => {
    h.confirm('b1');
    expect(served()).toBe('leader');
    h.register('b1');
    expect(served()).toBe('before');
    h.confirm('b1');
    h.place({ step: 'promote', opensEpoch: true, next: decided(['b2', 'b1']) });
    expect(served()).toBe('before');
  });

  it('is kept by a snapshot', () => {
    const g = new Harness();
    g.machine.restore(h.machine.snapshot(), h.state.appliedIndex);
    expect(g.assignment().served).toBe(served());
  });
});
