import { describe, expect, it } from 'vitest';
import { drained } from '../../support/drained.ts';
import { DEFAULT_POLICY } from '../../../placement/index.ts';
import { exportCluster } from '../../../src/cluster-file/index.ts';
import { MAX_STAGED_IMPORTS } from '../../../src/state/index.ts';
import { assignmentRow, brokerRow, decided, Harness, importOf, resource, staged } from './harness.ts';

const rows = () => ({
  brokers: [brokerRow('b1', { incarnation: 1 }), brokerRow('b2', { registeredAtMs: 7_000 })],
  resources: [resource('s', { shards: 2 })],
  assignments: [
    assignmentRow('stream:s/0', ['b1', 'b2'], { generation: 9, epoch: 4 }),
    assignmentRow('stream:s/1', ['b2', 'b1'], { inSync: ['b2'] }),
  ],
});

describe('an import', () => {
  it('is invisible until its closing entry, then visible as one revision', () => {
    const h = new Harness();
    const [part, commit] = importOf(rows(), { policy: { ...DEFAULT_POLICY, paused: true } });
    const seen: number[] = [];
    h.ring.subscribe(
      0,
      (set) => seen.push(set.changes.length),
      () => undefined,
    );
    h.ok(part);
    expect(h.state.revision).toBe(0);
    expect(h.state.brokers.size).toBe(0);
    expect(h.ok(commit)).toEqual({ brokers: 2, resources: 1, assignments: 2 });
    expect(seen).toEqual([6]);
    expect(drained(exportCluster(h.state, 7))).toEqual({
      version: 1,
      timeMs: 7,
      ...rows(),
      policy: { ...DEFAULT_POLICY, paused: true },
    });
    expect(h.state.maxGeneration).toBe(9);
    expect(h.state.firstRegisteredAtMs).toBe(0);
  });

  it("keeps a file's fenced move whose destination registers for the first time", () => {
    const h = new Harness();
    const move = { ...staged(), step: 'fenced' as const };
    const fenced = assignmentRow('stream:s/0', ['b1', 'b2'], { state: 'draining', move });
    for (const command of importOf({ ...rows(), assignments: [fenced] })) h.ok(command);
    h.register('b2');
    expect(h.assignment()).toMatchObject({
      state: 'draining',
      stagedIncarnation: h.broker('b2').incarnation,
    });
    h.register('b2', { storeId: 'another' });
    expect(h.assignment().stagedIncarnation).toBe(h.broker('b2').incarnation - 1);
  });

  it('forgets what had moved elsewhere', () => {
    const h = new Harness();
    const moved = { phase: 1, leader: true, copies: [{ from: 'b2', to: 'b1' }] };
    for (const command of importOf({
      ...rows(),
      assignments: [assignmentRow('stream:s/0', ['b1', 'b2'], { moved })],
    }))
      h.ok(command);
    expect(h.assignment()).not.toHaveProperty('moved');
  });

  it('brings cluster time up to the latest time of the file', () => {
    const h = new Harness();
    for (const command of importOf(rows())) h.ok(command);
    expect(h.state.timeMs).toBe(7_000);
  });

  it('in parts is the same as in one', () => {
    const one = new Harness();
    for (const command of importOf(rows())) one.ok(command);
    const parted = new Harness();
    const { brokers, resources, assignments } = rows();
    const empty = { brokers: [], resources: [], assignments: [] };
    parted.ok({ type: 'importPart', importId: 'x', part: 1, ...empty, assignments });
    parted.ok({ type: 'importPart', importId: 'x', part: 0, ...empty, brokers, resources });
    parted.ok({ type: 'importPart', importId: 'x', part: 0, ...empty, brokers, resources });
    parted.ok({ type: 'importCommit', importId: 'x', parts: 2, policy: DEFAULT_POLICY, overwrite: false });
    expect(drained(exportCluster(parted.state, 0))).toEqual(drained(exportCluster(one.state, 0)));
  });

  it('with a part missing, or one too many, is not found', () => {
    const h = new Harness();
    const [part, commit] = importOf(rows(), { parts: 2 });
    h.ok(part);
    expect(h.refused(commit)).toMatchObject({ code: 'not_found' });
    expect(h.refused({ ...commit, parts: 0 } as typeof commit)).toMatchObject({ code: 'not_found' });
  });

  it('of rows that do not fit together leaves nothing behind', () => {
    const h = new Harness();
    const bad = rows();
    bad.assignments.push(assignmentRow('stream:s/2', ['b1']));
    const [part, commit] = importOf(bad);
    h.ok(part);
    expect(h.refused(commit)).toMatchObject({
      code: 'invalid_argument',
      message: expect.stringMatching(/stream:s\/2: stream:s has 2 shards/),
    });
    expect(h.state.brokers.size + h.state.resources.size + h.state.assignments.size).toBe(0);
  });

  it('into a used cluster needs overwrite', () => {
    const h = new Harness();
    h.register('b9');
    const [part, commit] = importOf(rows());
    h.ok(part);
    expect(h.refused(commit)).toMatchObject({ code: 'refused', message: expect.stringMatching(/overwrite/) });
    expect([...h.state.brokers.keys()]).toEqual(['b9']);
  });

  it('over a used cluster starts every counter above what was ever seen', () => {
    const h = new Harness();
    for (const id of ['b1', 'b2']) h.register(id);
    h.register('b1');
    h.create('s');
    h.place({ next: decided(['b1', 'b2']) });
    h.confirm('b1');
    const { maxGeneration } = h.state;
    for (const command of importOf(rows(), { overwrite: true })) h.ok(command);
    expect(h.broker('b1')).toMatchObject({ incarnation: 3, imported: true, storeId: null });
    expect(h.assignment()).toMatchObject({ generation: maxGeneration + 1, epoch: maxGeneration + 1 });
    expect(h.register('b1')).toMatchObject({ incarnation: 4 });
  });

  it('over a used cluster gives no broker the incarnation that a process of it lives in, though the file counts from 0', () => {
    const h = new Harness();
    const { incarnation } = h.register('b1');
    for (const command of importOf(
      { ...rows(), brokers: [brokerRow('b1'), brokerRow('b2')] },
      { overwrite: true },
    )) {
      h.ok(command);
    }
    expect(h.broker('b1').incarnation).toBe(incarnation + 1);
    expect(h.broker('b2').incarnation).toBe(incarnation + 1);
  });

  it.each(['report', 'confirm'] as const)(
    'takes no %s of a broker before it has registered, by whatever incarnation',
    (type) => {
      const h = new Harness();
      for (const command of importOf(rows())) h.ok(command);
      const { incarnation } = h.broker('b1');
      const shard = { shard: 'stream:s/0', generation: 9 };
      const command =
        type === 'confirm'
          ? { type, broker: 'b1', incarnation, shards: [shard] }
          : { type, broker: 'b1', incarnation, shards: [{ ...shard, inSync: ['b1'], drained: false }] };
      expect(h.refused(command)).toMatchObject({ code: 'must_register' });
      expect(h.assignment()).toMatchObject({ generation: 9, inSync: ['b1', 'b2'] });
    },
  );

  it('carries moves on: slots are taken, the destination is the one in the file', () => {
    const h = new Harness();
    const given = rows();
    const [first] = given.assignments;
    if (first === undefined) throw new Error('no row');
    const move = {
      role: 'leader',
      from: 'b1',
      to: 'b2',
      step: 'staged',
      reason: 'balance',
      copied: false,
      drops: null,
      startedAtMs: 0,
      progressAtMs: 0,
    } as const;
    given.assignments[0] = { ...first, move };
    for (const command of importOf(given)) h.ok(command);
    expect(h.assignment().stagedIncarnation).toBe(0);
    const other = decided(['b2', 'b1'], {
      inSync: ['b2'],
      state: 'active',
      move: { ...move, from: 'b2', to: 'b1' },
    });
    expect(h.place({ shard: 'stream:s/1', step: 'stage', next: other }).result).toBe('limit_exceeded');
    h.register('b2');
    expect(h.assignment()).toMatchObject({ stagedIncarnation: 1, inSync: ['b1', 'b2'] });
  });

  it('left unfinished is dropped once too many others began', () => {
    const h = new Harness();
    const [part, commit] = importOf(rows(), { importId: 'old' });
    h.ok(part);
    for (let i = 0; i < MAX_STAGED_IMPORTS; i++) h.ok(importOf({}, { importId: `new${i}` })[0]);
    expect(h.refused(commit).code).toBe('not_found');
    h.ok(importOf({}, { importId: 'new0' })[1]);
  });
});
