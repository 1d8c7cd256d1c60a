import fc from 'fast-check';
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
      brokers: [rows().brokers[0], { ...rows().brokers[1], registeredAtMs: 0 }],
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

  it('forgets what failed elsewhere', () => {
    const failures = [{ to: 'b2', times: 2, atMs: 1 }];
    const h = new Harness();
    for (const command of importOf({
      ...rows(),
      assignments: [assignmentRow('stream:s/0', ['b1', 'b2'], { failures })],
    }))
      h.ok(command);
    expect(h.assignment()).not.toHaveProperty('failures');
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

  it('leaves cluster time alone, whatever times its rows have', () => {
    for (const nowMs of [0, 500, 7_000, 30_000]) {
      const h = new Harness();
      h.timeMs = nowMs;
      for (const command of importOf(rows())) h.ok(command);
      expect(h.state.timeMs).toBe(nowMs);
    }
  });

  /** Rows whose times are these, imported into a cluster whose time is `nowMs`: as they are then. */
  const dated = (
    times: { registeredAtMs: number; downSinceMs: number; startedAtMs: number; progressAtMs: number },
    { nowMs, timeMs }: { nowMs: number; timeMs: number | null },
  ) => {
    const { registeredAtMs, downSinceMs, ...ofMove } = times;
    const h = new Harness();
    h.timeMs = nowMs;
    const brokers = [brokerRow('b1', { registeredAtMs, lifecycle: 'down', downSinceMs }), brokerRow('b2')];
    const move = { ...staged(), ...ofMove };
    const assignments = [assignmentRow('stream:s/0', ['b1', 'b2'], { move })];
    for (const command of importOf({ ...rows(), brokers, assignments }, { timeMs })) h.ok(command);
    const { move: moved } = h.assignment();
    return {
      state: h.state,
      registeredAtMs: h.broker('b1').registeredAtMs,
      downSinceMs: h.broker('b1').downSinceMs,
      startedAtMs: moved?.startedAtMs,
      progressAtMs: moved?.progressAtMs,
    };
  };
  const DAY_MS = 86_400_000;

  it.each([
    ['an older', 30 * DAY_MS, 2 * DAY_MS],
    ['a younger', DAY_MS, 40 * DAY_MS],
  ])('of %s cluster keeps how long ago everything was when the file was written', (_which, timeMs, nowMs) => {
    const ages = { registeredAtMs: 9_000, downSinceMs: 4_000, startedAtMs: 2_000, progressAtMs: 500 };
    const ago = (at: number) =>
      Object.fromEntries(Object.entries(ages).map(([key, age]) => [key, at - age])) as typeof ages;
    expect(dated(ago(timeMs), { nowMs, timeMs })).toMatchObject(ago(nowMs));
    // Without the time of the export, its latest row is now.
    expect(dated(ago(timeMs), { nowMs, timeMs: null })).toMatchObject(ago(nowMs + 500));
  });

  it('dates nothing before this cluster or after now, and leaves an undated registration undated', () => {
    const time = fc.nat(40 * DAY_MS);
    fc.assert(
      fc.property(time, time, time, time, time, fc.option(time), (a, b, c, d, nowMs, timeMs) => {
        const given = { registeredAtMs: a, downSinceMs: b, startedAtMs: c, progressAtMs: d };
        const { state, ...found } = dated(given, { nowMs, timeMs });
        expect(state.timeMs).toBe(nowMs);
        const inOrder = (times: object): string[] =>
          Object.entries(times)
            .sort(([, x], [, y]) => x - y)
            .map(([key]) => key);
        for (const ms of Object.values(found)) {
          expect(ms).toBeGreaterThanOrEqual(0);
          expect(ms).toBeLessThanOrEqual(nowMs);
        }
        const ordered = inOrder(given).map((key) => found[key as keyof typeof found] ?? -1);
        if (a > 0) expect(ordered).toEqual([...ordered].sort((x, y) => x - y));
        else expect(found.registeredAtMs).toBe(0);
      }),
    );
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
    parted.ok({
      type: 'importCommit',
      importId: 'x',
      parts: 2,
      timeMs: null,
      policy: DEFAULT_POLICY,
      overwrite: false,
    });
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
