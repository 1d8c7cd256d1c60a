import { Worker } from 'node:worker_threads';
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { DEFAULT_POLICY, plan, type Snapshot } from '../../../placement/index.ts';
import type { Command } from '../../../src/command/index.ts';
import { InlinePlanner, type WorkerPlanner } from '../../../src/control/index.ts';
import { SettledPlan } from '../../../src/control/settled-plan.ts';
import { StateFeeder } from '../../../src/control/state-feeder.ts';
import { SILENT_LOGGER } from '../../../src/logger.ts';
import { streamOf } from '../../support/placed.ts';
import { brokersOf, Fixture, input, plain, wholePlan, workerFor, type Whole } from './planner-fixture.ts';

describe('the planner in a worker', () => {
  let worker: WorkerPlanner | null = null;
  afterEach(async () => {
    await worker?.close();
    worker = null;
  });

  it('plans what this thread would plan, now and after each change', async () => {
    const f = new Fixture();
    const ids = brokersOf(6);
    f.importAll(ids, 1_100, (i) => [ids[i % 2]?.id ?? '', ids[2 + (i % 4)]?.id ?? '']);
    worker = workerFor(f);
    const inline = new InlinePlanner(f.state, plan);
    worker.start();
    expect(await wholePlan(worker)).toEqual(await wholePlan(inline));
    f.write({ type: 'createResource', resource: streamOf('more', 600, 3) });
    const first = await wholePlan(worker);
    expect(first.steps.length).toBeGreaterThan(600);
    expect(first).toEqual(await wholePlan(inline));
    expect(plain(await worker.fullPlan(input))).toEqual(plain(await inline.fullPlan(input)));
    f.write({ type: 'setPolicy', expectedRevision: null, patch: { paused: true } });
    f.write({ type: 'setDrain', broker: 'b01', drain: true });
    f.write({ type: 'deleteResource', kind: 'stream', name: 'more', expectedRevision: null });
    expect(await wholePlan(worker)).toEqual(await wholePlan(inline));
  });

  it('goes on planning what this thread would once the cluster is settled and rows change', async () => {
    const f = new Fixture();
    const ids = brokersOf(6);
    f.importAll(ids, 600, (i) => [ids[i % 6]?.id ?? '', ids[(i + 1) % 6]?.id ?? '']);
    worker = workerFor(f);
    const inline = new InlinePlanner(f.state, plan);
    worker.start();
    const same = async (): Promise<Whole> => {
      const made = await wholePlan(inline);
      expect(worker && (await wholePlan(worker))).toEqual(made);
      return made;
    };
    expect((await same()).steps).toEqual([]);
    // What a broker of that id held is not in sync any more: it is another store.
    report(f, 1);
    await same();
    f.write({ type: 'setDrain', broker: 'b01', drain: true });
    expect((await same()).steps).not.toEqual([]);
    f.write({ type: 'setDrain', broker: 'b01', drain: false });
    await same();
  });

  it('starts over with every leadership, and after a snapshot was installed', async () => {
    const f = new Fixture();
    const ids = brokersOf(3);
    f.importAll(ids, 50, (i) => [ids[i % 2]?.id ?? '', 'b02']);
    worker = workerFor(f);
    const inline = new InlinePlanner(f.state, plan);
    await expect(worker.plan(input)).rejects.toThrow(/where the quorum is led/);
    worker.start();
    const pending = worker.plan(input);
    worker.stop();
    await expect(pending).rejects.toThrow(/leadership ended/);
    f.write({ type: 'setDrain', broker: 'b00', drain: true });
    worker.start();
    expect(await wholePlan(worker)).toEqual(await wholePlan(inline));
    f.machine.restore(f.machine.snapshot(), f.state.appliedIndex);
    expect(await wholePlan(worker)).toEqual(await wholePlan(inline));
  });
});

describe('a planner whose thread ends', () => {
  it('begins another; without any it says so as an error and plans on this thread', async () => {
    const f = new Fixture();
    f.importAll(brokersOf(3), 20, (i) => [`b0${i % 2}`, 'b02']);
    const lines: string[] = [];
    const log = {
      ...SILENT_LOGGER,
      warn: (_: object, line: string) => void lines.push(`warn ${line}`),
      error: (_: object, line: string) => void lines.push(`error ${line}`),
    };
    const broken = (): Worker => new Worker('throw new Error("no such file")', { eval: true });
    const worker = workerFor(f, { spawn: broken, log });
    worker.start();
    for (let i = 0; i < 3; i++) await expect(worker.plan(input)).rejects.toThrow(/no such file/);
    expect(await wholePlan(worker)).toEqual(await wholePlan(new InlinePlanner(f.state, plan)));
    expect(lines.map((line) => line.split(':')[0])).toEqual([
      "warn the planner's thread ended; a new one begins",
      "warn the planner's thread ended; a new one begins",
      'error the planner has no thread',
    ]);
    await worker.close();
  });
});

describe('the answer of a settled cluster', () => {
  const snapshot = (nowMs: number, leader: string): Snapshot => ({
    nowMs,
    brokers: brokersOf(3),
    resources: [streamOf('s', 1, 1)],
    assignments: [
      {
        ...{ shard: 'stream:s/0', leader, replicas: [leader], inSync: [leader], generation: 1, epoch: 1 },
        ...{ state: 'active', failedMoves: 0, move: null },
      },
    ],
    policy: DEFAULT_POLICY,
    firstRegisteredAtMs: 0,
    phase: 1,
  });
  const quiet = {
    shards: new Map(),
    leasedUntilMs: new Map(),
    unheard: new Set<string>(),
    unconfirmed: new Map(),
  };

  const ask = (
    settled: SettledPlan,
    { brokers, resources, assignments, ...facts }: Snapshot,
    reports = quiet,
  ) => settled.plan(facts, reports, () => ({ brokers, resources, assignments }));
  const unasked = (): never => {
    throw new Error('the rows are not needed');
  };

  it('stands as long as nothing changes, and where what changes leaves it as it is', () => {
    const settled = new SettledPlan();
    const { policy, firstRegisteredAtMs, phase, assignments } = snapshot(20_000, 'b00');
    const first = ask(settled, snapshot(20_000, 'b00'));
    const facts = { nowMs: 30_000, policy: { ...policy }, firstRegisteredAtMs, phase };
    expect(settled.plan(facts, quiet, unasked)).toBe(first);
    const leased = { ...quiet, leasedUntilMs: new Map([['b00', 40_000]]) };
    expect(settled.plan(facts, leased, unasked)).toBe(first);
    settled.rowsChanged(assignments.map((row) => ({ ...row, generation: 2, failedMoves: 1 })));
    expect(settled.plan(facts, quiet, unasked)).toBe(first);
    settled.rowsChanged(assignments.map((row) => ({ ...row, generation: 3, inSync: [] })));
    expect(() => settled.plan(facts, quiet, unasked)).toThrow(/not needed/);
  });

  it('is made anew where brokers, resources or the policy have changed', () => {
    const settled = new SettledPlan();
    const first = ask(settled, snapshot(20_000, 'b00'));
    const { policy } = snapshot(0, 'b00');
    const other = ask(settled, { ...snapshot(20_000, 'b00'), policy: { ...policy, settleMs: 1 } });
    expect(other).not.toBe(first);
    settled.forget();
    expect(ask(settled, { ...snapshot(20_000, 'b00'), policy: { ...policy, settleMs: 1 } })).not.toBe(other);
  });

  it('stands in another phase where nothing is wanted, and is made anew where what has moved was held', () => {
    const settled = new SettledPlan();
    const first = ask(settled, snapshot(20_000, 'b00'));
    expect(ask(settled, { ...snapshot(20_000, 'b00'), phase: 2 })).toBe(first);
    const led = snapshot(20_000, 'b00').assignments.map((row) => ({
      ...row,
      replicas: ['b00', 'b01'],
      inSync: ['b00', 'b01'],
      moved: { phase: 1, leader: true, copies: [] },
    }));
    const held = {
      ...snapshot(20_000, 'b00'),
      resources: [streamOf('s', 2, 2)],
      assignments: [...led, ...led.map((row) => ({ ...row, shard: 'stream:s/1' }))],
      brokers: brokersOf(2),
    };
    settled.forget();
    const holding = ask(settled, held);
    expect(holding.steps).toEqual([]);
    expect(ask(settled, held)).toBe(holding);
    expect(ask(settled, { ...held, phase: 2 }).steps).toHaveLength(1);
  });

  it('is made anew at its deadline, and where something is wanted', () => {
    const settled = new SettledPlan();
    const brokers = brokersOf(3).map((row) =>
      row.id === 'b02' ? { ...row, lifecycle: 'down' as const, downSinceMs: 1_000 } : row,
    );
    const two = { ...snapshot(2_000, 'b00'), brokers, resources: [streamOf('s', 1, 2)] };
    const [row] = two.assignments;
    if (row === undefined) throw new Error('no row');
    const lost = { ...two, assignments: [{ ...row, replicas: ['b00', 'b02'], inSync: ['b00'] }] };
    const waiting = ask(settled, lost);
    const deadlineMs = 1_000 + DEFAULT_POLICY.restoreAfterMs;
    expect(waiting.steps).toEqual([]);
    expect(waiting.summary.nextDeadlineMs).toBe(deadlineMs);
    expect(ask(settled, { ...lost, nowMs: deadlineMs - 1 })).toBe(waiting);
    settled.rowsChanged(lost.assignments);
    const again = ask(settled, { ...lost, nowMs: deadlineMs - 1 });
    expect(again).toEqual(waiting);
    expect(again).not.toBe(waiting);
    const due = ask(settled, { ...lost, nowMs: deadlineMs });
    expect(due.steps.map((step) => step.step)).toEqual(['join']);
    expect(ask(settled, { ...lost, nowMs: deadlineMs })).not.toBe(due);
  });
});

describe('feeding a copy of the state', () => {
  it('whoever has taken every part holds the state of that moment, whatever changed meanwhile', () => {
    const write = fc.record({ do: fc.constantFrom('rewrite', 'policy', 'drain', 'take'), n: fc.nat(9) });
    fc.assert(
      fc.property(fc.array(write, { maxLength: 60 }), (actions) => {
        const f = new Fixture();
        const ids = brokersOf(3);
        f.importAll(ids, 2_500, (i) => [ids[i % 3]?.id ?? '']);
        const feeder = new StateFeeder(f.state, f.ring, () => {});
        const rows = new Map<string, number>();
        const brokers = new Map<string, boolean>();
        const take = (): boolean => {
          const part = feeder.next();
          for (const row of part?.assignments ?? []) rows.set(row.shard, row.generation);
          for (const shard of part?.gone.assignments ?? []) rows.delete(shard);
          for (const row of part?.brokers ?? []) brokers.set(row.id, row.drain);
          return part !== null;
        };
        feeder.start(() => rows.clear());
        for (const { do: what, n } of actions) {
          if (what === 'take') take();
          else if (what === 'drain') f.write({ type: 'setDrain', broker: `b0${n % 3}`, drain: n > 4 });
          else if (what === 'policy')
            f.write({ type: 'setPolicy', expectedRevision: null, patch: { settleMs: n } });
          else report(f, n * 250);
        }
        while (take());
        expect(rows).toEqual(
          new Map(f.state.assignments.list().map(({ shard, generation }) => [shard, generation])),
        );
        expect(brokers).toEqual(new Map([...f.state.brokers].map(([id, { drain }]) => [id, drain])));
      }),
      { numRuns: 10 },
    );
  });

  it.each(['before', 'while'])(
    'holds the rows that an entry applied in turns has not removed yet, begun %s it is',
    (begun) => {
      const f = new Fixture();
      const ids = brokersOf(3);
      f.importAll(ids, 2_500, (i) => [ids[i % 3]?.id ?? '']);
      const rows = new Set<string>();
      const feeder = new StateFeeder(f.state, f.ring, () => {});
      const begin = (): void => {
        feeder.start(() => rows.clear());
        rows.clear();
      };
      const take = (): boolean => {
        const part = feeder.next();
        for (const { shard } of part?.assignments ?? []) rows.add(shard);
        for (const shard of part?.gone.assignments ?? []) rows.delete(shard);
        return part !== null;
      };
      if (begun === 'before') begin();
      const removal: Command = {
        type: 'deleteResource',
        kind: 'stream',
        name: 'big',
        expectedRevision: null,
      };
      const turn = f.begin(removal);
      turn();
      if (begun === 'while') begin();
      take();
      turn();
      while (take());
      expect(f.machine.isPartWay).toBe(true);
      expect(f.state.assignments.size).toBe(2_500);
      expect(rows).toEqual(new Set(f.state.assignments.list().map(({ shard }) => shard)));
      while (f.machine.isPartWay) turn();
      while (take());
      expect(rows).toEqual(new Set());
    },
  );
});

/** A registration writes every row that names the broker anew; a removal takes the resource away. */
function report(f: Fixture, n: number): void {
  if (n === 2_250 && f.state.resources.has('stream:big')) {
    f.write({ type: 'deleteResource', kind: 'stream', name: 'big', expectedRevision: null });
    return;
  }
  const id = `b0${n % 3}`;
  const { zone } = f.state.brokers.get(id) ?? { zone: null };
  const broker = {
    id,
    zone,
    addresses: {},
    maxShards: null,
    weight: 1,
    labels: {},
    storeId: 's',
    starts: null,
  };
  f.write({ type: 'registerBroker', broker });
}
