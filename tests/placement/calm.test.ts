import { describe, expect, it } from 'vitest';
import {
  operator,
  plan,
  planFile,
  simulate,
  type Assignment,
  type ClusterFile,
  type Moved,
  type SimAction,
} from '../../placement/index.ts';
import { judgeCalm, judgeMinimum } from './support/judge.ts';
import { assignment, broker, clusterOf, resource } from './support/rows.ts';

const leaving = { lifecycle: 'draining', drain: true } as const;
const lost = { lifecycle: 'down', downSinceMs: 0 } as const;

/** b1 leads two of three more than b2; what each has moved is said by shard. */
function skewed(moved: Readonly<Record<string, Moved>>, phase?: number): ClusterFile {
  return clusterOf({
    brokers: [broker('b1'), broker('b2')],
    resources: [resource('r', 3, { replicationFactor: 2 })],
    assignments: [0, 1, 2].map((n) => {
      const own = moved[`stream:r/${n}`];
      return assignment(`stream:r/${n}`, ['b1', 'b2'], own === undefined ? {} : { moved: own });
    }),
    ...(phase === undefined ? {} : { phase }),
  });
}

const LED = { leader: true, copies: [] } as const;

function run(file: ClusterFile, ...actions: readonly SimAction[]) {
  const events = actions.map((action) => ({ action, afterMs: null, source: null }));
  return simulate(file, { events, maxPasses: 1_000 }, { plan, ...operator }).phases;
}

function triplesOf(names: readonly string[]): (readonly string[])[] {
  return names.flatMap((a, i) =>
    names.slice(i + 1).flatMap((b, j) => names.slice(i + j + 2).map((c) => [a, b, c])),
  );
}

function stagedBy(file: ClusterFile): string[] {
  return planFile(file, { plan }).steps.map(({ step, shard, to }) => `${step} ${shard} to ${to}`);
}

describe('a leadership that has moved in this phase', () => {
  const all = (phase: number): Record<string, Moved> =>
    Object.fromEntries([0, 1, 2].map((n) => [`stream:r/${n}`, { phase, ...LED }]));

  it('stays, and another goes', () => {
    const { 'stream:r/0': first, 'stream:r/1': second } = all(0);
    expect(stagedBy(skewed({ 'stream:r/0': first!, 'stream:r/1': second! }))).toEqual([
      'stage stream:r/2 to b2',
    ]);
  });

  it('stays where no other can go, and the plan says so and claims no fewest number', () => {
    const { steps, waiting, minimumLeaderMoves } = planFile(skewed(all(0)), { plan });
    expect(steps).toEqual([]);
    expect(minimumLeaderMoves).toBeNull();
    expect(waiting.map(({ shard, reason }) => `${shard} ${reason}`)).toEqual(
      [0, 1, 2].map((n) => `stream:r/${n} moved_already`),
    );
    expect(waiting[0]?.detail).toMatch(/has come to b1 already.*once a broker, a resource or the policy/);
  });

  it('may go in another phase', () => {
    expect(stagedBy(skewed(all(3), 4))).toHaveLength(1);
    expect(stagedBy(skewed(all(4), 4))).toEqual([]);
  });

  it('may go once a broker or the policy has changed, or a copy is in sync again', () => {
    const moved = (action: SimAction): number => run(skewed(all(0)), action)[1]?.moves.length ?? -1;
    expect(moved({ type: 'setBroker', id: 'b2', patch: { maxShards: 50 } })).toBe(1);
    expect(moved({ type: 'setPolicy', patch: { maxConcurrentMoves: 2 } })).toBe(1);
    expect(moved({ type: 'inSync', shard: 'stream:r/0', inSync: ['b1', 'b2'] })).toBe(1);
  });

  it('is handed over where its broker leaves', () => {
    const file = skewed(all(0));
    const brokers = [broker('b1', leaving), broker('b2')];
    expect(stagedBy({ ...file, brokers })).toEqual(['stage stream:r/0 to b2']);
  });

  it('is not what others wait for: the totals are levelled by those that may go', () => {
    const names = ['r0', 'r1', 'r2', 'r3', 'r4', 'r5'];
    for (const [a, b, c] of triplesOf(names)) {
      const file = clusterOf({
        brokers: [broker('b1'), broker('b2')],
        resources: names.map((name) => resource(name, 1, { replicationFactor: 2 })),
        assignments: names.map((name) => {
          const moved = name === a || name === b || name === c ? { moved: { phase: 0, ...LED } } : {};
          return assignment(`stream:${name}/0`, ['b2', 'b1'], moved);
        }),
      });
      const [phase] = run(file);
      expect(phase?.levels.leadersTotal).toEqual({ b1: 3, b2: 3 });
      expect(phase?.minimumLeaderMoves).toBe(3);
      judgeMinimum(phase!);
    }
  });

  const onItsWay: Partial<Assignment> = {
    move: {
      role: 'leader',
      step: 'staged',
      reason: 'balance',
      from: 'b1',
      to: 'b2',
      drops: null,
      copied: false,
      startedAtMs: 0,
      progressAtMs: 0,
    },
  };

  it('or is on its way, is not counted among those that could go', () => {
    const { 'stream:r/0': first } = all(0);
    const file = clusterOf({
      brokers: [broker('b1'), broker('b2')],
      resources: [resource('r', 2, { replicationFactor: 2 })],
      assignments: [
        assignment('stream:r/0', ['b2', 'b1'], { moved: first! }),
        assignment('stream:r/1', ['b1', 'b2'], onItsWay),
      ],
    });
    const [phase] = run(file);
    expect(phase?.moves.map(({ shard }) => shard)).toEqual(['stream:r/1']);
    expect(phase?.levels.leadersTotal).toEqual({ b1: 0, b2: 2 });
    expect(phase?.minimumLeaderMoves).toBeNull();
  });

  it('says so where it keeps the totals from being level, and no fewest number is claimed', () => {
    const names = ['r0', 'r1', 'r2', 'r3'];
    const file = (led: Moved | undefined): ClusterFile =>
      clusterOf({
        brokers: [broker('b1'), broker('b2')],
        resources: names.map((name) => resource(name, 1, { replicationFactor: 2 })),
        assignments: names.map((name, i) =>
          i === 3
            ? assignment(`stream:${name}/0`, ['b2', 'b1'])
            : assignment(`stream:${name}/0`, ['b1', 'b2'], led === undefined ? {} : { moved: led }),
        ),
      });
    expect(planFile(file(undefined), { plan })).toMatchObject({ minimumLeaderMoves: 1, waiting: [] });
    const { steps, waiting, minimumLeaderMoves } = planFile(file({ phase: 0, ...LED }), { plan });
    expect(steps).toEqual([]);
    expect(minimumLeaderMoves).toBeNull();
    expect(waiting.map(({ shard, reason }) => `${shard} ${reason}`)).toEqual(
      [0, 1, 2].map((n) => `stream:r${n}/0 moved_already`),
    );
  });

  it('may go once another is moved by hand, and that one stays', () => {
    const file = clusterOf({
      brokers: [broker('b1'), broker('b2')],
      resources: [resource('r', 2, { replicationFactor: 2 })],
      assignments: [0, 1].map((n) => assignment(`stream:r/${n}`, ['b1', 'b2'])),
    });
    const [first] = run(file);
    expect(first?.moves.map(({ shard }) => shard)).toEqual(['stream:r/0']);
    const [, phase] = run(file, { type: 'move', shard: 'stream:r/1', role: 'leader', to: 'b2', from: null });
    expect(phase?.moves.map(({ shard, to }) => `${shard} to ${to}`)).toEqual([
      'stream:r/1 to b2',
      'stream:r/0 to b1',
    ]);
    judgeMinimum(phase!);
    expect(phase?.minimumLeaderMoves).toBe(2);
  });

  it('by hand too, keeps its part of the remainder: another levels the totals', () => {
    const file = clusterOf({
      brokers: [broker('b1'), broker('b2')],
      resources: [resource('r1', 1, { replicationFactor: 2 }), resource('r2', 1, { replicationFactor: 2 })],
      assignments: [assignment('stream:r1/0', ['b1', 'b2']), assignment('stream:r2/0', ['b2', 'b1'])],
    });
    for (const [shard, to, other] of [
      ['stream:r1/0', 'b2', 'stream:r2/0'],
      ['stream:r2/0', 'b1', 'stream:r1/0'],
    ] as const) {
      const phase = run(file, { type: 'move', shard, role: 'leader', to, from: null })[1];
      expect(phase?.moves.map((move) => move.shard)).toEqual([shard, other]);
      expect(phase?.levels.leadersTotal).toEqual({ b1: 1, b2: 1 });
    }
  });
});

describe('a copy that has moved in this phase', () => {
  const file = (copies: Moved['copies']): ClusterFile =>
    clusterOf({
      brokers: [broker('b1'), broker('b2'), broker('b3')],
      resources: [resource('r', 3, { replicationFactor: 2 })],
      assignments: [
        assignment('stream:r/0', ['b1', 'b2'], { moved: { phase: 0, leader: false, copies } }),
        assignment('stream:r/1', ['b2', 'b1']),
        assignment('stream:r/2', ['b3', 'b2']),
      ],
    });

  it('does not go back to where it came from, and goes elsewhere', () => {
    expect(stagedBy(file([]))).toEqual(['join stream:r/0 to b3']);
    expect(stagedBy(file([{ from: 'b3', to: 'b1' }]))).toEqual(['join stream:r/0 to b3']);
    expect(stagedBy(file([{ from: 'b3', to: 'b2' }]))).not.toContain('join stream:r/0 to b3');
  });
});

describe('what has moved', () => {
  it('by hand is noted until the next is asked for: a row does not grow with them', () => {
    const file = clusterOf({
      brokers: [broker('b1'), broker('b2'), broker('b3')],
      resources: [resource('r', 1, { replicationFactor: 2 })],
      assignments: [assignment('stream:r/0', ['b1', 'b2'])],
    });
    const to = (from: string, id: string): SimAction => ({
      type: 'move',
      shard: 'stream:r/0',
      role: 'follower',
      from,
      to: id,
    });
    const phases = run(file, to('b2', 'b3'), to('b3', 'b2'), to('b2', 'b3'));
    const copies = phases.map(({ cluster }) => cluster.assignments[0]?.moved?.copies);
    expect(copies).toEqual([
      undefined,
      [{ from: 'b2', to: 'b3' }],
      [{ from: 'b3', to: 'b2' }],
      [{ from: 'b2', to: 'b3' }],
    ]);
  });

  it('is noted in the row as a move finishes, and dropped by the first write of another phase', () => {
    const [first] = run(skewed({}));
    const rows = first?.cluster.assignments.filter(({ moved }) => moved !== undefined);
    expect(rows?.map(({ moved }) => moved)).toEqual([{ phase: 0, leader: true, copies: [] }]);
    expect(first?.cluster.phase).toBe(0);
    const [, second] = run(skewed({}), { type: 'join', broker: broker('b3') });
    const moved = second?.cluster.assignments.flatMap((row) => (row.moved === undefined ? [] : [row.moved]));
    expect(moved?.length).toBeGreaterThan(0);
    expect(new Set(moved?.map(({ phase }) => phase))).toEqual(new Set([1]));
    expect(second?.cluster.phase).toBe(1);
  });
});

/** Each moved a leadership twice, or a copy back, while rows did not say what had moved. */
describe('no move is made good', () => {
  const cases: Readonly<Record<string, ClusterFile>> = {
    'where a copy that is out of sync is drained': clusterOf({
      brokers: [broker('b1'), broker('b2', { weight: 4 }), broker('b3', leaving), broker('b4')],
      resources: [
        resource('r0', 4, { replicationFactor: 3 }),
        resource('r2', 4, { kind: 'cache', replicationFactor: 2 }),
      ],
      assignments: [
        assignment('stream:r0/3', ['b3', 'b4', 'b2'], { inSync: ['b3'] }),
        assignment('cache:r2/2', ['b3', 'b4']),
        assignment('cache:r2/3', ['b4', 'b3']),
      ],
      policy: { maxConcurrentMoves: 2, maxMovesPerBroker: 2, zonePolicy: 'majority' },
    }),
    'where some copies are out of sync and some shards have no log': clusterOf({
      brokers: [
        broker('b0'),
        broker('b1', { weight: 2 }),
        broker('b2'),
        broker('b3', leaving),
        broker('b4', { weight: 3 }),
      ],
      resources: [
        resource('r0', 2, { replicationFactor: 2, durable: false }),
        resource('r1', 3, { replicationFactor: 3 }),
        resource('r2', 5, { kind: 'cache', replicationFactor: 2, durable: false }),
        resource('r3', 9, { durable: false }),
        resource('r4', 1, { replicationFactor: 2 }),
      ],
      assignments: [
        assignment('stream:r1/0', ['b3', 'b4', 'b0'], { inSync: ['b3'] }),
        assignment('stream:r1/1', ['b3', 'b4', 'b0']),
        assignment('stream:r1/2', ['b0', 'b4', 'b3'], { inSync: ['b0', 'b4'] }),
        assignment('cache:r2/1', ['b4', 'b0'], { inSync: ['b4'] }),
        assignment('cache:r2/2', ['b0', 'b4']),
        assignment('cache:r2/3', ['b4', 'b0']),
        assignment('stream:r4/0', ['b3', 'b2']),
      ],
      policy: { maxConcurrentHandovers: 2, zonePolicy: 'zone' },
    }),
    'where room for new shards is found late': clusterOf({
      brokers: [
        broker('b0', { zone: 'z0' }),
        broker('b2', { zone: 'z2', weight: 2 }),
        broker('b3', lost),
        broker('b4', { zone: 'z0', weight: 2, maxShards: 12 }),
        broker('b5', { zone: 'z2', weight: 2 }),
      ],
      resources: [
        resource('r1', 7, { replicationFactor: 2 }),
        resource('r2', 4, { kind: 'cache', replicationFactor: 4 }),
        resource('r3', 4),
        resource('r4', 2, { replicationFactor: 2 }),
      ],
      assignments: [
        ...[0, 4, 6].map((n) => assignment(`stream:r1/${n}`, ['b3', 'b4'])),
        ...[1, 2, 3, 5].map((n) => assignment(`stream:r1/${n}`, ['b4', 'b3'])),
        assignment('stream:r4/0', ['b3', 'b4']),
        assignment('stream:r4/1', ['b3', 'b4', 'b5']),
      ],
    }),
  };

  it.each(Object.entries(cases))('%s', (_, file) => {
    const [phase] = run(file);
    if (phase === undefined) throw new Error('no phase');
    judgeCalm(file, phase);
    // What has moved is in the file: planned from there, the cluster still wants nothing.
    expect(planFile(phase.cluster, { plan }).steps).toEqual([]);
  });
});
