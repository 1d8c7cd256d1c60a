import { beforeEach, describe, expect, it } from 'vitest';
import type { Move } from '../../../placement/index.ts';
import { MAX_DETAIL_CHARS, MAX_PLACEMENT_ROWS, type RowResult } from '../../../src/command/index.ts';
import { Machine } from '../../../src/apply/index.ts';
import { exportCluster, parseClusterFile } from '../../../src/cluster-file/index.ts';
import { ChangeRing } from '../../../src/watch/index.ts';
import { drained } from '../../support/drained.ts';
import { decided, Harness } from './harness.ts';

let h: Harness;

beforeEach(() => {
  h = new Harness();
  for (const id of ['b1', 'b2', 'b3']) h.register(id);
  h.create('s', { shards: 3 });
});

const toB2 = (over: Partial<Move> = {}): Move => ({
  role: 'leader',
  from: 'b1',
  to: 'b2',
  step: 'staged',
  reason: 'balance',
  copied: false,
  drops: null,
  startedAtMs: 0,
  progressAtMs: 0,
  ...over,
});

const place = (shard = 'stream:s/0') => h.place({ shard, next: decided(['b1', 'b2']) });
const stage = (shard = 'stream:s/0') =>
  h.place({ shard, step: 'stage', next: decided(['b1', 'b2'], { state: 'active', move: toB2() }) });
const fence = () =>
  h.place({
    step: 'fence',
    opensEpoch: true,
    next: decided(['b1', 'b2'], { state: 'draining', move: toB2({ step: 'fenced' }) }),
  });
const cutOver = () => h.place({ step: 'cutOver', opensEpoch: true, next: decided(['b2', 'b1']) });

describe('placing', () => {
  it('counts generations from the highest ever used, so a name created again cannot be mistaken', () => {
    place();
    expect(h.assignment()).toMatchObject({ generation: 1, epoch: 1, state: 'assigning' });
    place('stream:s/1');
    expect(h.assignment('stream:s/1').generation).toBe(2);
    h.confirm('b1', 'stream:s/1');
    h.ok({ type: 'deleteResource', kind: 'stream', name: 's', expectedRevision: null });
    expect(h.state.assignments.size).toBe(0);
    h.create('s');
    place();
    expect(h.assignment()).toMatchObject({ generation: 4, epoch: 4 });
  });

  it('keeps the decision, its detail cut and never inside a surrogate pair', () => {
    const detail = `${'x'.repeat(MAX_DETAIL_CHARS - 1)}😀`;
    h.place({ next: decided(['b1', 'b2']), rule: 'under_floor', detail });
    const { decision } = h.assignment();
    expect(decision).toMatchObject({ step: 'place', reason: 'new', rule: 'under_floor' });
    expect(decision?.detail).toBe('x'.repeat(MAX_DETAIL_CHARS - 1));
  });

  it('refuses rows for another life of the resource, for no shard and past the count', () => {
    const next = decided(['b1']);
    expect(h.place({ resourceRevision: 1, next })).toMatchObject({ result: 'stale' });
    expect(h.place({ shard: 'stream:t/0', next })).toMatchObject({ result: 'not_found' });
    expect(h.place({ shard: 'stream:s/3', next })).toMatchObject({ result: 'not_found' });
    expect(h.place({ shard: 'nonsense', next })).toMatchObject({ result: 'invalid_argument' });
    expect(h.state.assignments.size).toBe(0);
  });

  it('decides each row of an entry by itself, in order, the slots and caps as the rows before left them', () => {
    h.register('b3', { maxShards: 1 });
    const rows = ['stream:s/0', 'stream:s/1', 'stream:s/2'].map((shard) =>
      h.row({ shard, next: decided(shard === 'stream:s/2' ? ['b1'] : ['b3']) }),
    );
    const results = h.ok({ type: 'placement', rows }) as RowResult[];
    expect(results.map((row) => row.result)).toEqual(['accepted', 'limit_exceeded', 'accepted']);
    expect(h.state.assignments.list().map(({ shard }) => shard)).toEqual(['stream:s/0', 'stream:s/2']);
  });

  it('refuses an entry of too many rows as a whole', () => {
    const row = h.row({ next: decided(['b1']) });
    const rows = Array.from({ length: MAX_PLACEMENT_ROWS + 1 }, () => row);
    expect(h.refused({ type: 'placement', rows })).toMatchObject({ code: 'limit_exceeded' });
    expect(h.state.assignments.size).toBe(0);
  });

  it('is refused on a broker that registered anew, drains or is down by now', () => {
    const row = h.row({ next: decided(['b1', 'b2']) });
    h.register('b2');
    expect(h.ok({ type: 'placement', rows: [row] })).toMatchObject([{ result: 'stale' }]);
    const again = h.row({ next: decided(['b1', 'b3']) });
    h.ok({ type: 'setDrain', broker: 'b3', drain: true });
    expect(h.ok({ type: 'placement', rows: [again] })).toMatchObject([{ result: 'stale' }]);
  });
});

describe('a move', () => {
  beforeEach(() => {
    place();
    place('stream:s/1');
    h.confirm('b1');
  });

  it('goes by stage, fence, drained, cut over, one generation each, an epoch where who serves changes', () => {
    const { generation } = h.assignment();
    expect(stage().result).toBe('accepted');
    expect(h.assignment()).toMatchObject({ generation: generation + 1, epoch: 1, stagedIncarnation: 1 });
    expect(fence().result).toBe('accepted');
    expect(h.assignment()).toMatchObject({
      generation: generation + 2,
      epoch: generation + 2,
      drained: false,
    });
    expect(h.report('b1', [{ drained: true }])).toEqual(['accepted']);
    expect(h.assignment()).toMatchObject({ generation: generation + 2, drained: true });
    expect(cutOver().result).toBe('accepted');
    expect(h.assignment()).toMatchObject({
      leader: 'b2',
      generation: generation + 3,
      epoch: generation + 3,
      drained: false,
      stagedIncarnation: null,
      decision: { step: 'stage' },
    });
    expect(h.confirm('b2')).toBe('accepted');
  });

  it('keeps where it failed, in the state, snapshots and exports, as the planner decided', () => {
    const failures = [{ to: 'b2', times: 2, atMs: 7 }];
    const row = h.assignment();
    const { leader, replicas, inSync, state } = row;
    const hash = h.state.stateHash;
    h.place({
      step: 'abandon',
      next: { leader, replicas, inSync, state, move: null, failedMoves: 2, failures },
    });
    expect(h.assignment().failures).toEqual(failures);
    expect(h.state.stateHash).not.toBe(hash);
    const copy = new Harness();
    copy.machine.restore(h.machine.snapshot(), h.state.appliedIndex);
    expect(copy.assignment().failures).toEqual(failures);
    expect(copy.state.stateHash).toBe(h.state.stateHash);
    const many = ['a', 'b', 'c', 'd', 'e'].map((to) => ({ to, times: 1, atMs: 7 }));
    const next = { leader, replicas, inSync, state, move: null, failedMoves: 2, failures: many };
    expect(h.place({ step: 'abandon', next })).toMatchObject({ result: 'refused' });
  });

  it('is noted as moved until a broker, a resource or the policy changes, and lives on in snapshots and exports', () => {
    const { phase } = h.state;
    stage();
    expect(h.assignment()).not.toHaveProperty('moved');
    fence();
    h.report('b1', [{ drained: true }]);
    cutOver();
    const moved = { phase, leader: true, copies: [] };
    expect(h.assignment().moved).toEqual(moved);
    h.confirm('b2');
    expect(h.state.phase).toBe(phase);
    expect(h.assignment().moved).toEqual(moved);

    const copy = new Machine(new ChangeRing());
    copy.restore(h.machine.snapshot(), h.state.appliedIndex);
    expect(copy.view.phase).toBe(phase);
    expect(copy.view.assignments.get('stream:s/0')?.moved).toEqual(moved);
    expect(copy.view.stateHash).toBe(h.state.stateHash);
    const file = drained(exportCluster(h.state, 0));
    expect([file.phase, file.assignments[0]?.moved]).toEqual([phase, moved]);
    expect(parseClusterFile(JSON.stringify(file))).toEqual(file);

    const begun = (change: () => void): boolean => {
      const before = h.state.phase;
      change();
      return h.state.phase > before && h.state.phase === h.state.appliedIndex;
    };
    expect(begun(() => h.register('b4'))).toBe(true);
    expect(begun(() => h.ok({ type: 'setDrain', broker: 'b4', drain: true }))).toBe(true);
    expect(begun(() => h.create('t'))).toBe(true);
    const patch = { maxConcurrentMoves: 3 };
    expect(begun(() => h.ok({ type: 'setPolicy', expectedRevision: null, patch }))).toBe(true);
    expect(begun(() => void h.place({ shard: 'stream:s/1', next: decided(['b1', 'b2']) }))).toBe(false);
    const later = drained(exportCluster(h.state, 0));
    expect(later).not.toHaveProperty('phase');
    expect(later.assignments[0]).not.toHaveProperty('moved');
    // The next write of the row forgets it.
    h.place({ step: 'stage', next: decided(['b2', 'b1'], { state: 'active', move: null }) });
    expect(h.assignment()).not.toHaveProperty('moved');
  });

  it('by hand, started or cancelled, begins a phase, and what it comes to later begins none', () => {
    const begun = (change: () => void): boolean => {
      const before = h.state.phase;
      change();
      return h.state.phase > before && h.state.phase === h.state.appliedIndex;
    };
    const staged = decided(['b1', 'b2'], { state: 'active', move: toB2({ reason: 'operator' }) });
    const by = { rule: 'operator', reason: 'operator' } as const;
    expect(begun(() => void h.place({ step: 'stage', next: staged, ...by }))).toBe(true);
    const kept = decided(['b1', 'b2'], { state: 'active' });
    expect(begun(() => void h.place({ step: 'abandon', next: kept, ...by }))).toBe(true);
    expect(begun(() => void h.place({ step: 'stage', next: staged, ...by }))).toBe(true);
    expect(begun(fence)).toBe(false);
    expect(begun(() => void h.report('b1', [{ drained: true }]))).toBe(false);
    expect(begun(cutOver)).toBe(false);
    expect(h.assignment().moved).toMatchObject({ phase: h.state.phase, leader: true });
    // One that is refused changes nothing.
    expect(begun(() => void h.place({ step: 'stage', next: staged, expect: 1, ...by }))).toBe(false);
  });

  it('stays that of the incarnation it was staged for: a step written again after the fence does not renew it', () => {
    stage();
    fence();
    const { incarnation } = h.register('b2');
    expect(fence().result).toBe('accepted');
    expect(h.assignment().stagedIncarnation).toBe(incarnation - 1);
    h.report('b1', [{ drained: true }]);
    expect(cutOver().result).not.toBe('accepted');
  });

  it('waits for a slot, which frees as the one before it finishes', () => {
    stage();
    expect(stage('stream:s/1')).toMatchObject({ result: 'limit_exceeded' });
    fence();
    expect(stage('stream:s/1')).toMatchObject({ result: 'limit_exceeded' });
    h.report('b1', [{ drained: true }]);
    cutOver();
    expect(stage('stream:s/1')).toMatchObject({ result: 'accepted' });
  });

  it('frees its slot where the resource is deleted under it', () => {
    h.create('t');
    h.place({ shard: 'stream:t/0', next: decided(['b1', 'b2']) });
    stage();
    h.ok({ type: 'deleteResource', kind: 'stream', name: 's', expectedRevision: null });
    expect(stage('stream:t/0').result).toBe('accepted');
  });

  it('is not cut over once the destination fell out of sync', () => {
    stage();
    fence();
    h.report('b1', [{ drained: true }]);
    h.report('b1', [{ inSync: ['b1'] }]);
    expect(h.assignment().drained).toBe(false);
    expect(cutOver().result).not.toBe('accepted');
    expect(h.assignment()).toMatchObject({ leader: 'b1', state: 'draining' });
  });

  it('written for a generation that is past is stale, and alters nothing', () => {
    const row = h.row({ step: 'stage', next: decided(['b1', 'b2'], { state: 'active', move: toB2() }) });
    h.report('b1', [{ inSync: ['b1'] }]);
    const before = h.assignment();
    expect(h.ok({ type: 'placement', rows: [row] })).toMatchObject([{ result: 'stale' }]);
    expect(h.assignment()).toBe(before);
  });
});
