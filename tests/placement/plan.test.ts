import { describe, expect, it } from 'vitest';
import { plan, type Move, type Plan, type Reports } from '../../placement/index.ts';
import { assignment, broker, brokers, NO_REPORTS, resource, snapshot } from './support/rows.ts';

const steps = (made: Plan): string[] => made.steps.map(({ step, shard, to }) => `${step} ${shard} ${to}`);
const leased = (id: string, untilMs: number): Reports => ({
  shards: new Map(),
  leasedUntilMs: new Map([[id, untilMs]]),
  unheard: new Set(),
  unconfirmed: new Map(),
});

describe('placing', () => {
  it('gives every broker its floor of a fresh stream whatever it leads already', () => {
    const old = Array.from({ length: 12 }, (_, i) =>
      assignment(`stream:old/${i}`, [i % 2 === 0 ? 'b1' : 'b2']),
    );
    const made = plan(
      snapshot({
        brokers: brokers('b1', 'b2', 'b3'),
        resources: [resource('old', 12), resource('new', 12)],
        assignments: old,
        policy: { paused: true },
      }),
      NO_REPORTS,
    );
    const led = ['b1', 'b2', 'b3'].map((id) => made.steps.filter((step) => step.to === id).length);
    expect(led).toEqual([4, 4, 4]);
    expect(made.steps.every((step) => step.expect === 0 && step.opensEpoch)).toBe(true);
  });

  it('spreads a burst of one-shard streams as one stream would be', () => {
    const names = ['a', 'b', 'c', 'd', 'e'];
    const made = plan(
      snapshot({
        brokers: brokers('b1', 'b2', 'b3', 'b4'),
        resources: names.map((name) => resource(name, 1)),
      }),
      NO_REPORTS,
    );
    const led = ['b1', 'b2', 'b3', 'b4'].map((id) => made.steps.filter((step) => step.to === id).length);
    expect([...led].sort((a, b) => a - b)).toEqual([1, 1, 1, 2]);
  });

  it('says which tier decided, who scored higher and why it was passed over', () => {
    const made = plan(snapshot({ brokers: brokers('b1', 'b2'), resources: [resource('s', 3)] }), NO_REPORTS);
    expect(made.steps.map((step) => step.why.rule)).toEqual([
      'resource_floor',
      'resource_floor',
      'resource_target',
    ]);
    expect(made.steps[2]?.why.detail).toContain('target 2');
  });

  it('treats a cap as a wall, and says what is missing', () => {
    const rows = ['b1', 'b2'].map((id) => broker(id, { maxShards: 1 }));
    const made = plan(snapshot({ brokers: rows, resources: [resource('s', 3)] }), NO_REPORTS);
    expect(made.steps).toHaveLength(2);
    expect(made.unplaceable).toMatchObject([{ shard: 'stream:s/2', reason: 'no_room' }]);
    expect(made.unplaceable[0]?.detail).toContain('b1 holds 0 of maxShards 1');
  });

  it('places nothing short where the room is for fewer full sets', () => {
    const rows = ['b1', 'b2', 'b3'].map((id) => broker(id, { maxShards: 4 }));
    const made = plan(
      snapshot({ brokers: rows, resources: [resource('s', 5, { replicationFactor: 3 })] }),
      NO_REPORTS,
    );
    expect(made.steps.every((step) => step.next.replicas.length === 3)).toBe(true);
    expect([made.steps.length, made.unplaceable.length]).toEqual([4, 1]);
  });

  it('says so when no broker is live, and harms nothing', () => {
    const none = plan(snapshot({ resources: [resource('s', 1)] }), NO_REPORTS);
    expect(none).toMatchObject({
      steps: [],
      unplaceable: [{ reason: 'no_live_broker', detail: 'no broker has registered' }],
    });
    const rows = [broker('b1', { lifecycle: 'down', downSinceMs: 0 })];
    const down = plan(snapshot({ brokers: rows, resources: [resource('s', 1)] }), NO_REPORTS);
    expect(down.unplaceable[0]?.detail).toContain('b1 down');
  });

  it('waits in the settle window for as many brokers as the factor, and no longer', () => {
    const young = (nowMs: number): Plan =>
      plan(
        snapshot({
          nowMs,
          firstRegisteredAtMs: 0,
          brokers: brokers('b1', 'b2'),
          resources: [resource('s', 1, { replicationFactor: 3 })],
        }),
        NO_REPORTS,
      );
    expect(young(9_999)).toMatchObject({
      steps: [],
      waiting: [{ reason: 'settling' }],
      nextDeadlineMs: 10_000,
    });
    expect(young(10_000).steps).toMatchObject([{ step: 'place' }]);
  });
});

describe('a cluster that starts', () => {
  /** Brokers that registered at these times, and a stream of one copy a shard. */
  const started = (nowMs: number, ...registered: number[]): Plan =>
    plan(
      snapshot({
        nowMs,
        firstRegisteredAtMs: 0,
        brokers: registered.map((registeredAtMs, i) => broker(`b${i + 1}`, { registeredAtMs })),
        resources: [resource('s', 12)],
      }),
      NO_REPORTS,
    );

  it('places nothing on the first broker while others register', () => {
    expect(started(1_000, 0)).toMatchObject({
      steps: [],
      waiting: expect.arrayContaining([expect.objectContaining({ reason: 'settling' })]),
      nextDeadlineMs: 2_000,
    });
    expect(started(2_499, 0, 400, 500).steps).toEqual([]);
    const led = started(2_500, 0, 400, 500).steps.map(({ to }) => to);
    expect(['b1', 'b2', 'b3'].map((id) => led.filter((to) => to === id).length)).toEqual([4, 4, 4]);
  });

  it('waits no longer than the settle window however many register', () => {
    expect(started(9_999, 0, 9_000).nextDeadlineMs).toBe(10_000);
    expect(started(10_000, 0, 9_999).steps).toHaveLength(12);
    expect(started(2_000, 0).steps).toHaveLength(12);
  });
});

describe('a broker that was not heard within its lease', () => {
  const silent = (...ids: string[]): Reports => ({
    ...NO_REPORTS,
    unheard: new Set(ids),
    unconfirmed: new Map(),
  });

  it('is given no new shard while another is heard', () => {
    const fresh = snapshot({ brokers: brokers('b1', 'b2', 'b3'), resources: [resource('s', 6)] });
    const made = plan(fresh, silent('b2'));
    expect(new Set(made.steps.map(({ to }) => to))).toEqual(new Set(['b1', 'b3']));
    expect(made.steps).toHaveLength(6);
    expect(plan(fresh, silent('b1', 'b2', 'b3'))).toMatchObject({
      steps: [],
      unplaceable: [],
      waiting: Array.from({ length: 6 }, () => ({ reason: 'brokers_unheard' })),
    });
  });

  it('is not promoted: it is heard again, or another copy leads once it is declared down', () => {
    const row = assignment('stream:s/0', ['b1', 'b2', 'b3']);
    const rows = [broker('b1', { lifecycle: 'down', downSinceMs: 0 }), broker('b2'), broker('b3')];
    const resources = [resource('s', 1, { replicationFactor: 3 })];
    const fallen = snapshot({ brokers: rows, resources, assignments: [row] });
    expect(plan(fallen, silent('b2')).steps[0]).toMatchObject({ step: 'promote', to: 'b3' });
    expect(plan(fallen, silent('b2', 'b3'))).toMatchObject({
      steps: [],
      waiting: [{ reason: 'copies_unheard' }],
    });
  });
});

describe('a leader that does not confirm in time', () => {
  type Served = 'never' | 'before' | 'leader';
  const late = (served: Served, over: Partial<Reports> = {}): Reports => ({
    ...NO_REPORTS,
    unconfirmed: new Map([['stream:s/0', served]]),
    ...over,
  });
  const shard = (copies: string[], factor: number, move: Move | null = null) =>
    snapshot({
      brokers: brokers('b1', 'b2', 'b3'),
      resources: [resource('s', 1, { replicationFactor: factor })],
      assignments: [assignment('stream:s/0', copies, { state: 'assigning', move })],
    });
  const handover: Move = {
    role: 'leader',
    from: 'b1',
    to: 'b2',
    step: 'staged',
    reason: 'drain',
    copied: false,
    drops: null,
    startedAtMs: 0,
    progressAtMs: 0,
  };

  it.each(['never', 'before'] as const)('gives way to another copy where it served %s', (served) => {
    const made = plan(shard(['b1', 'b2'], 2, handover), late(served));
    expect(made.steps).toMatchObject([
      { step: 'promote', to: 'b2', opensEpoch: true, next: { inSync: ['b1', 'b2'], move: null } },
    ]);
  });

  it('is waited for where it may still serve an earlier epoch, and its hand-over gives its slot back', () => {
    const made = plan(shard(['b1', 'b2'], 2, handover), late('leader'));
    expect(made.steps).toMatchObject([
      {
        step: 'abandon',
        drops: null,
        next: { leader: 'b1', failedMoves: 1 },
        why: { rule: 'leader_unconfirmed' },
      },
    ]);
    expect(made.waiting).toMatchObject([{ shard: 'stream:s/0', reason: 'leader_unconfirmed' }]);
    expect(plan(shard(['b1', 'b2'], 2), late('leader')).steps).toEqual([]);
  });

  it('is not replaced before the lease of its process before it is over, nor by a copy that is not heard', () => {
    const leased = plan(shard(['b1', 'b2'], 2), late('before', { leasedUntilMs: new Map([['b1', 500]]) }));
    expect(leased).toMatchObject({ steps: [], nextDeadlineMs: 500 });
    const alone = plan(shard(['b1', 'b2'], 2), late('before', { unheard: new Set(['b2']) }));
    expect(alone).toMatchObject({ steps: [], waiting: [{ reason: 'leader_unconfirmed' }] });
  });

  it('is listed with what it waits for where no other copy is in sync', () => {
    expect(plan(shard(['b1'], 1), late('before'))).toMatchObject({
      steps: [],
      unplaceable: [],
      waiting: [{ shard: 'stream:s/0', reason: 'leader_unconfirmed', detail: expect.stringContaining('b1') }],
    });
  });
});

describe('failing over', () => {
  const rows = [broker('b1', { lifecycle: 'down', downSinceMs: 0 }), broker('b2'), broker('b3')];
  const three = resource('s', 1, { replicationFactor: 3 });

  it('promotes only a copy in sync, at a new epoch', () => {
    const row = assignment('stream:s/0', ['b1', 'b2', 'b3'], { inSync: ['b1', 'b3'], generation: 9 });
    const made = plan(snapshot({ brokers: rows, resources: [three], assignments: [row] }), NO_REPORTS);
    expect(made.steps).toMatchObject([
      {
        step: 'promote',
        to: 'b3',
        expect: 9,
        opensEpoch: true,
        next: { leader: 'b3', inSync: ['b3'], state: 'assigning' },
      },
    ]);
    expect(made.steps[0]?.why.rejected).toContainEqual({ broker: 'b2', by: 'out_of_sync' });
  });

  it('keeps a durable shard waiting for its only copy, and says who holds how much', () => {
    const row = assignment('stream:s/0', ['b1', 'b2'], { inSync: ['b1'] });
    const made = plan(
      snapshot({
        brokers: rows,
        resources: [resource('s', 1, { replicationFactor: 2 })],
        assignments: [row],
      }),
      NO_REPORTS,
    );
    expect(made.steps).toEqual([]);
    expect(made.unplaceable).toMatchObject([{ reason: 'only_copy_unavailable' }]);
    expect(made.unplaceable[0]?.detail).toMatch(/b1 \(down\) hold.*b2 \(live\) may be behind/);
  });

  it('takes a draining broker only as the last choice', () => {
    const draining = [
      broker('b1', { lifecycle: 'down' }),
      broker('b2', { lifecycle: 'draining', drain: true }),
      broker('b3'),
    ];
    const of = (inSync: string[]): Plan =>
      plan(
        snapshot({
          brokers: draining,
          resources: [three],
          assignments: [assignment('stream:s/0', ['b1', 'b2', 'b3'], { inSync })],
        }),
        NO_REPORTS,
      );
    expect(of(['b2', 'b3']).steps[0]).toMatchObject({ to: 'b3', why: { rule: 'in_sync_copy' } });
    expect(of(['b2']).steps[0]).toMatchObject({
      to: 'b2',
      why: { rule: 'draining_last_choice' },
      requires: [{ broker: 'b2', incarnation: 1, allowDraining: true }],
    });
  });

  it('takes nothing from a broker that left but may still serve on its lease', () => {
    const left = [broker('b1', { lifecycle: 'left' }), broker('b2'), broker('b3')];
    const at = (nowMs: number): Plan =>
      plan(
        snapshot({
          nowMs,
          brokers: left,
          resources: [three],
          assignments: [assignment('stream:s/0', ['b1', 'b2', 'b3'])],
        }),
        leased('b1', 6_500),
      );
    expect(at(6_499)).toMatchObject({ steps: [], waiting: [{ reason: 'leased' }], nextDeadlineMs: 6_500 });
    expect(at(6_500).steps[0]).toMatchObject({ step: 'promote' });
  });

  it('takes a shard from a leader that came back with another store once its old lease has passed', () => {
    const row = assignment('stream:s/0', ['b1', 'b2'], { inSync: ['b2'] });
    const at = (nowMs: number): Plan =>
      plan(
        snapshot({
          nowMs,
          brokers: brokers('b1', 'b2'),
          resources: [resource('s', 1, { replicationFactor: 2 })],
          assignments: [row],
        }),
        leased('b1', 100),
      );
    expect(at(99).steps).toEqual([]);
    expect(at(100).steps).toMatchObject([{ step: 'promote', to: 'b2' }]);
  });

  it('gives an ephemeral shard to any live broker, once the lease has passed', () => {
    const cache = resource('kv', 1, { kind: 'cache', durable: false });
    const row = assignment('cache:kv/0', ['b1']);
    const at = (nowMs: number): Plan =>
      plan(snapshot({ nowMs, brokers: rows, resources: [cache], assignments: [row] }), leased('b1', 10));
    expect(at(9).steps).toEqual([]);
    const [step] = at(10).steps;
    expect(step).toMatchObject({ step: 'promote', reason: 'failover', from: 'b1', drops: 'b1' });
    expect(step?.next.replicas).toEqual([step?.to]);
    expect(step?.next.inSync).toEqual([step?.to]);
  });

  it('chooses the promotions of a pass together', () => {
    // In shard order the first would go to b2 as good as anywhere; then the second has only b2 left, and a move is due.
    const lost = [
      assignment('stream:s/0', ['b1', 'b2', 'b3'], { inSync: ['b2', 'b3'] }),
      assignment('stream:s/1', ['b1', 'b2'], { inSync: ['b2'] }),
    ];
    const made = plan(
      snapshot({ brokers: rows, resources: [resource('s', 2, { replicationFactor: 3 })], assignments: lost }),
      NO_REPORTS,
    );
    expect(made.steps.map((step) => step.to)).toEqual(['b3', 'b2']);
    expect(made.minimumLeaderMoves).toBe(0);
  });
});

describe('levelling', () => {
  it('moves the totals only when no resource wants a move', () => {
    const rows = brokers('b1', 'b2');
    const skewed = Array.from({ length: 4 }, (_, i) => assignment(`stream:z/${i}`, ['b1', 'b2']));
    const single = ['a', 'c', 'd'].map((name) => assignment(`stream:${name}/0`, ['b1', 'b2']));
    const resources = [
      resource('z', 4, { replicationFactor: 2 }),
      ...['a', 'c', 'd'].map((name) => resource(name, 1, { replicationFactor: 2 })),
    ];
    const first = plan(
      snapshot({
        brokers: rows,
        resources,
        assignments: [...skewed, ...single],
        policy: { maxConcurrentHandovers: 9 },
      }),
      NO_REPORTS,
    );
    expect(first.steps.every((step) => step.shard.startsWith('stream:z/'))).toBe(true);
    expect(first.steps).toHaveLength(2);
    expect(first.minimumLeaderMoves).toBe(3);
  });

  it('counts moves in flight as finished: planning again starts nothing more', () => {
    const made = (moved: boolean): Plan =>
      plan(
        snapshot({
          brokers: brokers('b1', 'b2'),
          resources: [resource('s', 4, { replicationFactor: 2 })],
          assignments: [0, 1, 2, 3].map((i) =>
            assignment(`stream:s/${i}`, i < 3 ? ['b1', 'b2'] : ['b2', 'b1'], {
              state: moved && i === 0 ? 'assigning' : 'active',
              move:
                moved && i === 0
                  ? {
                      role: 'leader',
                      from: 'b1',
                      to: 'b2',
                      step: 'staged',
                      reason: 'balance',
                      copied: false,
                      drops: null,
                      startedAtMs: 0,
                      progressAtMs: 0,
                    }
                  : null,
            }),
          ),
          policy: { maxConcurrentHandovers: 5 },
        }),
        NO_REPORTS,
      );
    expect(made(false).steps).toHaveLength(1);
    expect(made(true).steps).toEqual([]);
    expect(made(true).minimumLeaderMoves).toBe(1);
  });

  it('starts nothing optional while paused, but places and promotes', () => {
    const skewed = [0, 1, 2, 3].map((i) => assignment(`stream:s/${i}`, ['b1', 'b2']));
    const input = {
      brokers: brokers('b1', 'b2'),
      resources: [resource('s', 4, { replicationFactor: 2 }), resource('new', 1)],
      assignments: skewed,
    };
    expect(steps(plan(snapshot({ ...input, policy: { paused: true } }), NO_REPORTS))).toHaveLength(1);
    expect(steps(plan(snapshot(input), NO_REPORTS))).toHaveLength(2);
  });

  it('never queues a hand-over behind a long copy', () => {
    const rows = brokers('b1', 'b2', 'b3');
    const copying = assignment('stream:c/0', ['b1', 'b3'], {
      inSync: ['b1'],
      move: {
        role: 'leader',
        from: 'b1',
        to: 'b3',
        step: 'staged',
        reason: 'operator',
        copied: true,
        drops: 'b1',
        startedAtMs: 0,
        progressAtMs: 0,
      },
    });
    const skewed = [0, 1, 2].map((i) => assignment(`stream:s/${i}`, ['b1', 'b2', 'b3']));
    const made = plan(
      snapshot({
        brokers: rows,
        resources: [resource('c', 1), resource('s', 3, { replicationFactor: 3 })],
        assignments: [copying, ...skewed],
      }),
      NO_REPORTS,
    );
    expect(made.steps).toMatchObject([{ step: 'stage', copies: false, reason: 'balance' }]);
  });

  it('hands nothing to a copy that is out of sync, and proves no minimum then', () => {
    const skewed = [0, 1, 2, 3].map((i) => assignment(`stream:s/${i}`, ['b1', 'b2'], { inSync: ['b1'] }));
    const made = plan(
      snapshot({
        brokers: brokers('b1', 'b2'),
        resources: [resource('s', 4, { replicationFactor: 2 })],
        assignments: skewed,
      }),
      NO_REPORTS,
    );
    expect(made).toMatchObject({ steps: [], minimumLeaderMoves: null });
  });
});

describe('draining', () => {
  const rows = [broker('b1', { lifecycle: 'draining', drain: true }), broker('b2'), broker('b3')];

  it('moves leaderships first, to in-sync copies below their target', () => {
    const made = plan(
      snapshot({
        brokers: rows,
        resources: [resource('s', 2, { replicationFactor: 2 })],
        assignments: [assignment('stream:s/0', ['b1', 'b2']), assignment('stream:s/1', ['b2', 'b1'])],
      }),
      NO_REPORTS,
    );
    // b2 leads its one already: the leadership goes to b3, which must be copied first.
    expect(made.steps).toMatchObject([
      { step: 'stage', shard: 'stream:s/0', to: 'b3', reason: 'drain', copies: true },
    ]);
  });

  it('says why what cannot move waits', () => {
    const made = plan(
      snapshot({
        brokers: [rows[0]!, broker('b2', { maxShards: 0 })],
        resources: [resource('s', 1)],
        assignments: [assignment('stream:s/0', ['b1'])],
      }),
      NO_REPORTS,
    );
    expect(made.waiting).toMatchObject([{ shard: 'stream:s/0', reason: 'no_room' }]);
    expect(made.waiting[0]?.detail).toContain('b2 0 of 0');
  });
});

describe('restoring', () => {
  const rows = [broker('b1'), broker('b2', { lifecycle: 'down', downSinceMs: 1_000 }), broker('b3')];
  const at = (nowMs: number, lifecycle: 'down' | 'left' = 'down'): Plan =>
    plan(
      snapshot({
        nowMs,
        brokers: [rows[0]!, { ...rows[1]!, lifecycle }, rows[2]!],
        resources: [resource('s', 1, { replicationFactor: 2 })],
        assignments: [assignment('stream:s/0', ['b1', 'b2'], { inSync: ['b1'] })],
      }),
      leased('b2', 5_000),
    );

  it('makes a lost copy anew after restoreAfterMs', () => {
    expect(at(300_999)).toMatchObject({ steps: [], nextDeadlineMs: 301_000 });
    expect(at(301_000).steps).toMatchObject([
      { step: 'join', from: 'b2', to: 'b3', reason: 'restore', copies: true },
    ]);
  });

  it('counts the copy of a broker that left as lost at once, but for its lease', () => {
    expect(at(4_999, 'left')).toMatchObject({ steps: [], nextDeadlineMs: 5_000 });
    expect(at(5_000, 'left').steps).toMatchObject([{ step: 'join', to: 'b3' }]);
  });

  it('drops a copy too many, and makes one that lacks', () => {
    const of = (replicas: string[], factor: number): string[] =>
      steps(
        plan(
          snapshot({
            brokers: brokers('b1', 'b2', 'b3'),
            resources: [resource('s', 1, { replicationFactor: factor })],
            assignments: [assignment('stream:s/0', replicas)],
          }),
          NO_REPORTS,
        ),
      );
    expect(of(['b1', 'b2', 'b3'], 2)).toEqual(['drop stream:s/0 null']);
    expect(of(['b1', 'b2'], 3)).toEqual(['join stream:s/0 b3']);
  });
});
