import { describe, expect, it } from 'vitest';
import {
  plan,
  type Assignment,
  type Broker,
  type Move,
  type Plan,
  type Policy,
  type ShardReport,
} from '../../placement/index.ts';
import { assignment, broker, brokers, NO_REPORTS, resource, snapshot } from './support/rows.ts';

const MOVE: Move = {
  role: 'leader',
  from: 'b1',
  to: 'b3',
  step: 'staged',
  reason: 'operator',
  copied: true,
  drops: 'b1',
  startedAtMs: 0,
  progressAtMs: 0,
};
const FENCED: Move = { ...MOVE, step: 'fenced' };
const JOIN: Move = { ...MOVE, role: 'follower', from: 'b2', drops: 'b2', step: 'joining' };

/** One shard of two copies on b1 (leader) and b2, moving to b3. */
function pass(options: {
  move: Move;
  inSync?: string[];
  state?: Assignment['state'];
  rows?: Broker[];
  report?: Partial<ShardReport>;
  nowMs?: number;
  policy?: Partial<Policy>;
  leasedUntilMs?: [string, number][];
  unheard?: string[];
}): Plan {
  const row = assignment('stream:s/0', ['b1', 'b2', 'b3'], {
    inSync: options.inSync ?? ['b1', 'b2'],
    state: options.state ?? (options.move.step === 'fenced' ? 'draining' : 'active'),
    generation: 7,
    move: options.move,
  });
  const report = {
    generation: 7,
    lagRecords: null,
    copiedPerSecond: null,
    drained: false,
    progressAtMs: null,
    ...options.report,
  };
  return plan(
    snapshot({
      nowMs: options.nowMs ?? 0,
      brokers: options.rows ?? brokers('b1', 'b2', 'b3'),
      resources: [resource('s', 1, { replicationFactor: 2 })],
      assignments: [row],
      ...(options.policy === undefined ? {} : { policy: options.policy }),
    }),
    {
      shards: options.report === undefined ? new Map() : new Map([['stream:s/0', report]]),
      leasedUntilMs: new Map(options.leasedUntilMs ?? []),
      unheard: new Set(options.unheard ?? []),
      unconfirmed: new Map(),
    },
  );
}

function shown({ steps }: Plan): unknown[] {
  return steps.map(({ step, to, drops, opensEpoch, why }) => [step, to, drops, opensEpoch, why.rule]);
}

describe('the last copy that holds everything', () => {
  const fallen = [broker('b1'), broker('b2'), broker('b3', { lifecycle: 'down', downSinceMs: 0 })];

  it('stays when the move to it is given up: it may be the only one to come back', () => {
    // The leader registered anew after it had been counted out; the destination is gone before it could be promoted.
    const { steps } = pass({ move: MOVE, inSync: ['b3'], state: 'assigning', rows: fallen });
    expect(steps.map(({ step, drops }) => [step, drops])).toEqual([['abandon', null]]);
    expect(steps[0]?.next).toMatchObject({ replicas: ['b1', 'b2', 'b3'], inSync: ['b3'], move: null });
  });

  it('leads once its broker is back', () => {
    const rows = brokers('b1', 'b2', 'b3');
    const row = assignment('stream:s/0', ['b1', 'b2', 'b3'], { inSync: ['b3'], state: 'assigning' });
    const resources = [resource('s', 1, { replicationFactor: 2 })];
    const { steps } = plan(snapshot({ nowMs: 0, brokers: rows, resources, assignments: [row] }), NO_REPORTS);
    expect(steps.map(({ step, next }) => [step, next.leader])).toEqual([['promote', 'b3']]);
  });
});

describe('a leader move', () => {
  it('waits while the destination is far behind', () => {
    expect(shown(pass({ move: MOVE, report: { lagRecords: 1_001, copiedPerSecond: 5_000 } }))).toEqual([]);
  });

  it('waits while what is missing would take more than half of fenceTimeoutMs, or for an unknown time', () => {
    const lags = (lagRecords: number, copiedPerSecond: number | null) =>
      shown(pass({ move: MOVE, report: { lagRecords, copiedPerSecond } }));
    expect(lags(900, 50)).toEqual([]);
    expect(lags(251, 50)).toEqual([]);
    expect(lags(250, 50)).toHaveLength(1);
    expect(lags(1, null)).toEqual([]);
    expect(lags(1, 0)).toEqual([]);
    expect(lags(0, null)).toHaveLength(1);
  });

  it('fences once the destination is within fenceMaxLagRecords, or in sync', () => {
    const near = pass({ move: MOVE, report: { lagRecords: 1_000, copiedPerSecond: 5_000 } });
    expect(shown(near)).toEqual([['fence', 'b3', null, true, 'caught_up']]);
    expect(near.steps[0]?.next).toMatchObject({ state: 'draining', leader: 'b1', move: { step: 'fenced' } });
    expect(shown(pass({ move: MOVE, inSync: ['b1', 'b2', 'b3'] }))).toHaveLength(1);
  });

  it('does not believe a report of another generation', () => {
    expect(shown(pass({ move: MOVE, report: { generation: 6, lagRecords: 0 } }))).toEqual([]);
  });

  it('is not fenced before its leader has confirmed', () => {
    expect(shown(pass({ move: MOVE, inSync: ['b1', 'b2', 'b3'], state: 'assigning' }))).toEqual([]);
  });

  it('cuts over when the fenced leader has drained, and the recorded copy goes', () => {
    const done = pass({ move: FENCED, inSync: ['b1', 'b2', 'b3'], report: { drained: true } });
    expect(shown(done)).toEqual([['cutOver', 'b3', 'b1', true, 'drained']]);
    expect(done.steps[0]?.next).toMatchObject({
      leader: 'b3',
      replicas: ['b2', 'b3'],
      state: 'assigning',
      move: null,
    });
    expect(done.steps[0]?.requires).toEqual([{ broker: 'b3', incarnation: 1, allowDraining: false }]);
  });

  it('is given up at once when its destination registered anew after the fence, drained or not', () => {
    for (const drained of [false, true]) {
      const report = { drained, destinationRenewed: true };
      const given = pass({ move: FENCED, inSync: ['b1', 'b2', 'b3'], report });
      expect(shown(given)).toEqual([['abandon', 'b3', 'b3', true, 'destination_renewed']]);
      expect(given.steps[0]?.next).toMatchObject({ leader: 'b1', state: 'assigning', failedMoves: 0 });
    }
  });

  it('does not cut over to a destination that is not in sync', () => {
    expect(shown(pass({ move: FENCED, report: { drained: true } }))).toEqual([]);
  });

  it('chooses anew which copy goes when another has become unfit', () => {
    const rows = [broker('b1'), broker('b2', { lifecycle: 'down', downSinceMs: 0 }), broker('b3')];
    const done = pass({ move: FENCED, rows, inSync: ['b1', 'b3'], report: { drained: true } });
    expect(done.steps[0]?.drops).toBe('b2');
  });

  it('keeps every copy where the factor has been raised meanwhile', () => {
    const raised = plan(
      snapshot({
        brokers: brokers('b1', 'b2', 'b3'),
        resources: [resource('s', 1, { replicationFactor: 3 })],
        assignments: [
          assignment('stream:s/0', ['b1', 'b2', 'b3'], { state: 'draining', generation: 7, move: FENCED }),
        ],
      }),
      {
        shards: new Map([
          [
            'stream:s/0',
            { generation: 7, lagRecords: 0, copiedPerSecond: null, drained: true, progressAtMs: null },
          ],
        ]),
        leasedUntilMs: new Map(),
        unheard: new Set(),
        unconfirmed: new Map(),
      },
    );
    expect(raised.steps[0]).toMatchObject({ step: 'cutOver', drops: null });
  });

  it('is given up after moveStallMs without progress; the shard goes to the back of the queue', () => {
    const policy = { moveStallMs: 100 };
    expect(pass({ move: MOVE, nowMs: 99, policy }).nextDeadlineMs).toBe(100);
    const given = pass({ move: MOVE, nowMs: 100, policy });
    expect(shown(given)).toEqual([['abandon', 'b3', 'b3', false, 'stall']]);
    expect(given.steps[0]?.next).toMatchObject({ replicas: ['b1', 'b2'], failedMoves: 1, move: null });
    expect(shown(pass({ move: MOVE, nowMs: 100, policy, report: { progressAtMs: 50 } }))).toEqual([]);
  });

  it('is given up after moveTimeoutMs, progress or not', () => {
    const policy = { moveTimeoutMs: 1_000, moveStallMs: 100 };
    const given = pass({ move: MOVE, nowMs: 1_000, policy, report: { progressAtMs: 999 } });
    expect(shown(given)).toEqual([['abandon', 'b3', 'b3', false, 'timeout']]);
  });

  it('leaves a copy that was there before when it is given up', () => {
    const given = pass({ move: { ...MOVE, copied: false }, nowMs: 120_000 });
    expect(given.steps[0]).toMatchObject({
      step: 'abandon',
      drops: null,
      next: { replicas: ['b1', 'b2', 'b3'] },
    });
  });

  it('after the fence runs against fenceTimeoutMs alone: then the old leader serves at a new epoch', () => {
    const policy = { moveTimeoutMs: 1, moveStallMs: 1, fenceTimeoutMs: 10_000 };
    const move = { ...FENCED, progressAtMs: 5_000 };
    expect(pass({ move, nowMs: 14_999, policy })).toMatchObject({ steps: [], nextDeadlineMs: 15_000 });
    const given = pass({ move, nowMs: 15_000, policy });
    expect(shown(given)).toEqual([['abandon', 'b3', 'b3', true, 'fence_timeout']]);
    expect(given.steps[0]?.next).toMatchObject({ leader: 'b1', state: 'assigning', failedMoves: 1 });
  });

  it('is not taken back while its leader was not heard: the destination leads once that lease is over', () => {
    const late = { move: FENCED, inSync: ['b1', 'b2', 'b3'], nowMs: 60_000 };
    const waits = pass({ ...late, unheard: ['b1'] });
    expect(waits).toMatchObject({ steps: [], waiting: [{ reason: 'leader_unheard' }] });
    // Its destination went silent meanwhile: that one may be all that is left.
    const rows = [broker('b1'), broker('b2'), broker('b3', { lifecycle: 'down', downSinceMs: 0 })];
    expect(pass({ ...late, rows, unheard: ['b1'] }).steps).toEqual([]);
    const dead = [broker('b1', { lifecycle: 'down', downSinceMs: 0 }), broker('b2'), broker('b3')];
    const promoted = pass({ ...late, rows: dead });
    expect(promoted.steps[0]).toMatchObject({ step: 'promote' });
    expect(promoted.steps[0]?.next.inSync).toEqual(['b2', 'b3']);
  });

  it('keeps a copy that is in sync, or nearly, when its fence is not answered in time', () => {
    const late = { move: FENCED, nowMs: 60_000 };
    const kept = [pass({ ...late, inSync: ['b1', 'b3'] }), pass({ ...late, report: { lagRecords: 1_000 } })];
    for (const { steps } of kept) {
      expect(steps[0]).toMatchObject({
        step: 'abandon',
        drops: null,
        next: { replicas: ['b1', 'b2', 'b3'], leader: 'b1', state: 'assigning', failedMoves: 1 },
      });
      // The old leader must be there when it is given the shard back.
      expect(steps[0]?.requires).toEqual([{ broker: 'b1', incarnation: 1, allowDraining: true }]);
    }
    expect(pass({ ...late, report: { lagRecords: 1_001 } }).steps[0]?.drops).toBe('b3');
  });

  it('does not cut over to a destination that was not heard within its lease', () => {
    const drained = { move: FENCED, inSync: ['b1', 'b2', 'b3'], report: { drained: true } };
    expect(pass({ ...drained, unheard: ['b3'] }).steps).toEqual([]);
  });

  it('drops no copy while nobody that is heard holds everything', () => {
    const fallen = { inSync: ['b1'], nowMs: 120_000, unheard: ['b1'] };
    expect(pass({ move: MOVE, ...fallen }).steps[0]).toMatchObject({ step: 'abandon', drops: null });
    const seat = { move: JOIN, inSync: ['b1', 'b2', 'b3'] };
    expect(pass({ ...seat, unheard: ['b1', 'b3'] }).steps).toEqual([]);
    expect(pass({ ...seat, unheard: ['b1'] }).steps).toHaveLength(1);
  });

  it.each(['down', 'draining', 'left'] as const)('drops a destination that is %s', (lifecycle) => {
    const rows = [broker('b1'), broker('b2'), broker('b3', { lifecycle, downSinceMs: 0 })];
    expect(shown(pass({ move: MOVE, rows }))).toEqual([['abandon', 'b3', 'b3', false, 'destination_gone']]);
    expect(shown(pass({ move: FENCED, rows }))).toEqual([['abandon', 'b3', 'b3', true, 'destination_gone']]);
  });

  it('after the fence waits for the lease of a leader that died, then another copy is promoted', () => {
    const rows = [broker('b1', { lifecycle: 'left', downSinceMs: 0 }), broker('b2'), broker('b3')];
    const early = pass({ move: FENCED, rows, inSync: ['b1', 'b2'], leasedUntilMs: [['b1', 500]] });
    expect(early).toMatchObject({ steps: [], waiting: [{ reason: 'leased' }], nextDeadlineMs: 500 });
    const late = pass({ move: FENCED, rows, nowMs: 500, inSync: ['b1', 'b2'], leasedUntilMs: [['b1', 500]] });
    expect(late.steps[0]).toMatchObject({
      step: 'promote',
      to: 'b2',
      next: { move: null, replicas: ['b1', 'b2'] },
    });
  });

  it('cuts over at once though the leader died, when it had drained', () => {
    const rows = [broker('b1', { lifecycle: 'down', downSinceMs: 0 }), broker('b2'), broker('b3')];
    const report = { drained: true };
    const done = pass({ move: FENCED, rows, inSync: ['b2', 'b3'], report, leasedUntilMs: [['b1', 500]] });
    expect(done.steps[0]?.next.leader).toBe('b3');
  });

  it('goes on while placement is paused', () => {
    const policy = { paused: true };
    expect(shown(pass({ move: MOVE, policy, inSync: ['b1', 'b2', 'b3'] }))).toHaveLength(1);
  });
});

describe('a copy move', () => {
  it('seats a copy that has caught up, and the leaving one goes in the same write', () => {
    const done = pass({ move: JOIN, inSync: ['b1', 'b2', 'b3'] });
    expect(shown(done)).toEqual([['seat', 'b3', 'b2', false, 'caught_up']]);
    expect(done.steps[0]?.next).toMatchObject({ replicas: ['b1', 'b3'], inSync: ['b1', 'b3'], move: null });
  });

  it('is not held up by another copy that is out of sync', () => {
    expect(shown(pass({ move: JOIN, inSync: ['b1', 'b3'] }))).toHaveLength(1);
  });

  it('is dropped when the copy it restores comes back first', () => {
    const restore: Move = { ...JOIN, reason: 'restore' };
    expect(shown(pass({ move: restore, inSync: ['b1', 'b2'] }))).toEqual([
      ['abandon', 'b3', 'b3', false, 'copy_returned'],
    ]);
  });

  it('goes on under a promoted leader that it does not concern', () => {
    const rows = [
      broker('b1', { lifecycle: 'down', downSinceMs: 0 }),
      broker('b2'),
      broker('b3'),
      broker('b4'),
    ];
    const row = assignment('stream:s/0', ['b1', 'b2', 'b4', 'b3'], {
      inSync: ['b2', 'b4'],
      move: { ...JOIN, from: 'b4', drops: 'b4' },
    });
    const made = plan(
      snapshot({
        brokers: rows,
        resources: [resource('s', 1, { replicationFactor: 3 })],
        assignments: [row],
      }),
      NO_REPORTS,
    );
    const promoted = made.steps.find((step) => step.step === 'promote');
    expect(promoted?.next.move === null).toBe(promoted?.to === 'b4');
  });
});

describe('turn-taking', () => {
  it('lets two shards whose moves keep failing take turns', () => {
    const rows = brokers('b1', 'b2');
    const resources = [resource('s', 4)];
    const first = (failed: readonly number[]): string | undefined => {
      const assignments = failed.map((failedMoves, i) =>
        assignment(`stream:s/${i}`, ['b1'], { failedMoves }),
      );
      return plan(snapshot({ brokers: rows, resources, assignments }), NO_REPORTS).steps[0]?.shard;
    };
    const failed = [0, 0, 0, 0];
    const order: (string | undefined)[] = [];
    for (let i = 0; i < 8; i++) {
      const shard = first(failed);
      order.push(shard);
      failed[Number(shard?.split('/')[1])]!++;
    }
    expect(new Set(order.slice(0, 4)).size).toBe(4);
    expect(order.slice(4)).toEqual(order.slice(0, 4));
  });
});
