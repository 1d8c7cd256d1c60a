import { describe, expect, it } from 'vitest';
import {
  clusterFile,
  DEFAULT_POLICY,
  EventRefused,
  plan as realPlan,
  planFile,
  simulate,
  type Assignment,
  type Broker,
  type ClusterFile,
  type Plan,
  type Planner,
  type Policy,
  type Reports,
  type Resource,
  type SimAction,
  type SimEvent,
  type Snapshot,
  type Step,
} from '../../placement/index.ts';

const broker = (id: string, over: Partial<Broker> = {}): Broker => ({
  id,
  zone: null,
  lifecycle: 'live',
  drain: false,
  maxShards: null,
  weight: 1,
  incarnation: 1,
  registeredAtMs: 0,
  downSinceMs: null,
  ...over,
});

const resource = (name: string, over: Partial<Resource> = {}): Resource => ({
  kind: 'stream',
  name,
  shards: 1,
  replicationFactor: 2,
  durable: true,
  zonePolicy: null,
  labels: {},
  ...over,
});

const row = (shard: string, replicas: string[], over: Partial<Assignment> = {}): Assignment => ({
  shard,
  leader: replicas[0] ?? '',
  replicas,
  inSync: replicas,
  generation: 1,
  epoch: 1,
  state: 'active',
  failedMoves: 0,
  move: null,
  ...over,
});

const file = (
  over: Partial<Omit<ClusterFile, 'policy' | 'version'>> & { policy?: Partial<Policy> } = {},
): ClusterFile =>
  clusterFile({
    brokers: [broker('b1'), broker('b2'), broker('b3')],
    resources: [resource('s')],
    assignments: [row('stream:s/0', ['b1', 'b2'])],
    ...over,
    policy: { ...DEFAULT_POLICY, ...over.policy },
  });

const event = (action: SimAction, afterMs: number | null = null): SimEvent => ({
  action,
  afterMs,
  source: { [action.type]: true },
});

const NOTHING: Plan = {
  steps: [],
  waiting: [],
  unplaceable: [],
  unspread: [],
  conflicts: [],
  minimumLeaderMoves: 0,
  nextDeadlineMs: null,
  levels: {
    leaders: {},
    leadersTotal: {},
    copiesTotal: {},
    maxLeaderSpreadPerResource: 0,
    leaderSpreadTotal: 0,
    copySpreadTotal: 0,
    maxCopySpreadPerResource: 0,
    minZonesPerShard: 0,
  },
};

interface Seen {
  readonly snapshot: Snapshot;
  readonly reports: Reports;
}

/** A planner that answers what the test says, pass by pass, and keeps what it was shown. */
function scripted(answer: (seen: Seen, pass: number) => Partial<Plan>): Planner & { readonly seen: Seen[] } {
  const seen: Seen[] = [];
  return {
    seen,
    plan(snapshot, reports) {
      seen.push({ snapshot, reports });
      return { ...NOTHING, ...answer({ snapshot, reports }, seen.length) };
    },
    startMove: () => ({ refused: 'not here' }),
    cancelMove: () => ({ refused: 'not here' }),
  };
}

const rowIn = (snapshot: Snapshot, shard = 'stream:s/0'): Assignment => {
  const found = snapshot.assignments.find((candidate) => candidate.shard === shard);
  if (found === undefined) throw new Error(`${shard} is not placed`);
  return found;
};

/** A step from the row as the planner sees it. */
function stepFrom(
  current: Assignment,
  over: Partial<Omit<Step, 'next'>> & { next: Partial<Step['next']> },
): Step {
  const { leader, replicas, inSync, state, failedMoves, move } = current;
  const next = { leader, replicas, inSync, state, failedMoves, move, ...over.next };
  const ids = [...new Set([...next.replicas, next.leader])];
  return {
    step: 'stage',
    shard: current.shard,
    role: 'leader',
    from: current.leader,
    to: next.move?.to ?? next.leader,
    drops: null,
    reason: 'balance',
    copies: false,
    vector: null,
    expect: current.generation,
    requires: ids.map((id) => ({ broker: id, incarnation: 1, allowDraining: true })),
    opensEpoch: false,
    why: { rule: 'test', detail: '', rejected: [], runnerUp: null },
    ...over,
    next,
  };
}

const stageTo = (current: Assignment, to: string, copied: boolean): Step =>
  stepFrom(current, {
    copies: copied,
    next: {
      replicas: copied ? [...current.replicas, to] : current.replicas,
      move: {
        role: 'leader',
        from: current.leader,
        to,
        step: 'staged',
        reason: 'balance',
        copied,
        drops: null,
        startedAtMs: 0,
        progressAtMs: 0,
      },
    },
  });

const fenceOf = (current: Assignment): Step =>
  stepFrom(current, {
    step: 'fence',
    opensEpoch: true,
    next: { state: 'draining', move: current.move && { ...current.move, step: 'fenced' } },
  });

const cutOverOf = (current: Assignment): Step =>
  stepFrom(current, {
    step: 'cutOver',
    opensEpoch: true,
    next: { leader: current.move?.to ?? '', state: 'assigning', move: null },
  });

/** Stages a move to `to`, then does what the reports allow. */
const mover = (to: string, copied: boolean) =>
  scripted(({ snapshot, reports }, pass) => {
    const current = rowIn(snapshot);
    const report = reports.shards.get(current.shard);
    if (pass === 1) return { steps: [stageTo(current, to, copied)] };
    if (current.move?.step === 'staged' && report?.lagRecords === 0) return { steps: [fenceOf(current)] };
    if (current.move?.step === 'fenced' && report?.drained === true) return { steps: [cutOverOf(current)] };
    return {};
  });

const run = (from: ClusterFile, planner: Planner, events: SimEvent[] = [], maxPasses = 100) =>
  simulate(from, { events, maxPasses }, planner);

describe('copies and fences', () => {
  it('a copy that a step starts is in sync at the second pass after; a fenced leader has drained at the next', () => {
    const { phases, settled, passes } = run(file(), mover('b3', true));
    const [phase] = phases;
    expect(phase?.steps.map(({ pass, step }) => `${pass} ${step}`)).toEqual([
      '1 stage',
      '3 fence',
      '4 cutOver',
    ]);
    expect(phase?.moves).toEqual([
      { shard: 'stream:s/0', role: 'leader', from: 'b1', to: 'b3', reason: 'balance', copied: true },
    ]);
    expect(phase?.virtualMs).toBe(0);
    expect({ settled, passes }).toEqual({ settled: true, passes: 5 });
    expect(phase?.cluster.assignments[0]).toMatchObject({ leader: 'b3', state: 'active', move: null });
  });

  it('a hand-over to an in-sync copy copies nothing', () => {
    const [phase] = run(file(), mover('b2', false)).phases;
    expect(phase?.steps.map(({ pass, step }) => `${pass} ${step}`)).toEqual([
      '1 stage',
      '2 fence',
      '3 cutOver',
    ]);
    expect(phase?.moves).toMatchObject([{ copied: false }]);
  });

  it('a copy that the file shows as being made is in sync at the second pass, one that is merely out never', () => {
    const move = {
      role: 'follower',
      from: null,
      to: 'b2',
      step: 'joining',
      reason: 'restore',
      copied: true,
      drops: null,
      startedAtMs: 0,
      progressAtMs: 0,
    } as const;
    const given = file({
      resources: [resource('s', { shards: 2 })],
      assignments: [
        row('stream:s/0', ['b1', 'b2'], { inSync: ['b1'], move }),
        row('stream:s/1', ['b1', 'b2'], { inSync: ['b1'] }),
      ],
    });
    const planner = scripted((_seen, pass) => (pass < 4 ? { nextDeadlineMs: pass * 1_000 } : {}));
    run(given, planner);
    const inSync = (n: number) =>
      planner.seen.map(({ snapshot }) => rowIn(snapshot, `stream:s/${n}`).inSync.length);
    expect(inSync(0)).toEqual([1, 2, 2, 2]);
    expect(inSync(1)).toEqual([1, 1, 1, 1]);
  });

  it('a copy waits while its leader is down, and comes once it is back', () => {
    const move = {
      role: 'follower',
      from: null,
      to: 'b2',
      step: 'joining',
      reason: 'restore',
      copied: true,
      drops: null,
      startedAtMs: 0,
      progressAtMs: 0,
    } as const;
    const given = file({
      brokers: [broker('b1', { lifecycle: 'down' }), broker('b2')],
      assignments: [row('stream:s/0', ['b1', 'b2'], { inSync: ['b1'], move })],
    });
    const planner = scripted((_seen, pass) => (pass < 5 ? { nextDeadlineMs: pass * 1_000 } : {}));
    run(given, planner, [event({ type: 'up', broker: 'b1' })]);
    const inSync = planner.seen.map(({ snapshot }) => rowIn(snapshot).inSync.length);
    expect(inSync).toEqual([1, 1, 1, 1, 1, 2]);
  });
});

describe('the clock', () => {
  it('stands still while passes write, then goes to the next deadline', () => {
    const planner = scripted(({ snapshot }, pass) =>
      pass === 1
        ? { steps: [stageTo(rowIn(snapshot), 'b2', false)], nextDeadlineMs: 5 }
        : pass === 2
          ? { nextDeadlineMs: 700 }
          : {},
    );
    const { settled, phases } = run(file(), planner);
    expect(planner.seen.map(({ snapshot }) => snapshot.nowMs)).toEqual([0, 0, 700]);
    expect(settled).toBe(true);
    expect(phases[0]?.virtualMs).toBe(700);
  });

  it('with afterMs ends the phase before, settled or not', () => {
    const planner = scripted(({ snapshot }) => (snapshot.nowMs < 300_000 ? { nextDeadlineMs: 300_000 } : {}));
    const { phases, settled } = run(file(), planner, [
      event({ type: 'down', broker: 'b2' }, 10),
      event({ type: 'up', broker: 'b2' }, 1_000),
    ]);
    expect(phases.map((phase) => [phase.settled, phase.virtualMs])).toEqual([
      [false, 0],
      [false, 10],
      [true, 300_000],
    ]);
    const back = planner.seen.find(({ snapshot }) => snapshot.nowMs === 1_010);
    expect(back?.snapshot.brokers.find(({ id }) => id === 'b2')).toMatchObject({
      lifecycle: 'live',
      registeredAtMs: 1_010,
      incarnation: 2,
    });
    expect(settled).toBe(true);
  });

  it('refuses a planner whose deadline is past', () => {
    const planner = scripted(() => ({ nextDeadlineMs: 0 }));
    expect(() => run(file(), planner)).toThrow(/names a deadline at 0 ms/);
  });

  it('knows of brokers that were silent before, and of no settle window for those in the file', () => {
    const planner = scripted(() => ({}));
    run(file({ brokers: [broker('b1'), broker('b2', { lifecycle: 'down' })] }), planner);
    const [first] = planner.seen;
    expect(first?.snapshot.brokers[1]).toMatchObject({ lifecycle: 'down', downSinceMs: 0 });
    expect(first?.snapshot.firstRegisteredAtMs).toBeLessThan(-DEFAULT_POLICY.settleMs);
    const empty = scripted(() => ({}));
    run(file({ brokers: [], resources: [], assignments: [] }), empty, [
      event({ type: 'join', broker: broker('b1') }),
    ]);
    expect(empty.seen.map(({ snapshot }) => snapshot.firstRegisteredAtMs)).toEqual([null, 0]);
  });

  it('stops when the passes are used up, and says so', () => {
    let flip = 'b2';
    const planner = scripted(({ snapshot }) => {
      const current = rowIn(snapshot);
      flip = flip === 'b2' ? 'b1' : 'b2';
      return { steps: [stepFrom(current, { step: 'promote', opensEpoch: true, next: { leader: flip } })] };
    });
    const { settled, passes, phases } = run(file(), planner, [event({ type: 'drain', broker: 'b1' })], 7);
    expect({ settled, passes, phases: phases.length }).toEqual({ settled: false, passes: 7, phases: 1 });
  });
});

describe('what the planner may not do', () => {
  it('a step that no member would write stops the simulation', () => {
    const planner = scripted(({ snapshot }) => ({ steps: [stageTo(rowIn(snapshot), 'b9', true)] }));
    expect(() => run(file(), planner)).toThrow(/planner's stage is refused/);
  });
});

describe('events', () => {
  const quiet = () => scripted(() => ({}));
  const last = (actions: SimAction[], from = file()) => {
    const planner = quiet();
    const { phases } = run(
      from,
      planner,
      actions.map((action) => event(action)),
    );
    const cluster = phases.at(-1)?.cluster;
    if (cluster === undefined) throw new Error('no phase');
    return { cluster, planner };
  };

  it('down takes copies out of sync where another is in; up brings them back one pass later', () => {
    const { cluster, planner } = last([{ type: 'down', broker: 'b2' }]);
    expect(cluster.assignments[0]).toMatchObject({ inSync: ['b1'], generation: 2 });
    expect(cluster.brokers[1]).toMatchObject({ lifecycle: 'down', downSinceMs: 0 });
    expect(planner.seen).toHaveLength(2);
    const back = last([
      { type: 'down', broker: 'b2' },
      { type: 'up', broker: 'b2' },
    ]);
    const inSync = back.planner.seen.map(({ snapshot }) => rowIn(snapshot).inSync.length);
    expect(inSync).toEqual([2, 1, 1, 2]);
  });

  it('the last copy in sync stays so while its broker is down', () => {
    const { cluster } = last([
      { type: 'down', broker: 'b2' },
      { type: 'down', broker: 'b1' },
    ]);
    expect(cluster.assignments[0]?.inSync).toEqual(['b1']);
  });

  it('a leader that comes back leads at a new epoch', () => {
    const { cluster } = last([
      { type: 'down', broker: 'b1' },
      { type: 'up', broker: 'b1' },
    ]);
    const [assignment] = cluster.assignments;
    expect(assignment?.leader).toBe('b1');
    expect(assignment?.epoch).toBeGreaterThan(1);
  });

  it('drain is undone by undrain, and kept under down', () => {
    expect(last([{ type: 'drain', broker: 'b1' }]).cluster.brokers[0]).toMatchObject({
      lifecycle: 'draining',
    });
    const { cluster } = last([
      { type: 'drain', broker: 'b1' },
      { type: 'down', broker: 'b1' },
      { type: 'up', broker: 'b1' },
    ]);
    expect(cluster.brokers[0]).toMatchObject({ lifecycle: 'draining', drain: true });
    const undone = last([
      { type: 'drain', broker: 'b1' },
      { type: 'undrain', broker: 'b1' },
    ]);
    expect(undone.cluster.brokers[0]).toMatchObject({ lifecycle: 'live', drain: false });
  });

  it('settings, resources, policies and in-sync sets are replaced as they say', () => {
    const { cluster } = last([
      { type: 'setBroker', id: 'b1', patch: { maxShards: 4 } },
      { type: 'setResource', resource: 'stream:s', patch: { shards: 3 } },
      { type: 'setPolicy', patch: { zonePolicy: 'zone' } },
      { type: 'create', resource: resource('t') },
      { type: 'inSync', shard: 'stream:s/*', inSync: ['b2', 'b1'] },
    ]);
    expect(cluster.brokers[0]).toMatchObject({ maxShards: 4, weight: 1 });
    expect(cluster.resources).toMatchObject([{ name: 's', shards: 3 }, { name: 't' }]);
    expect(cluster.policy.zonePolicy).toBe('zone');
    expect(cluster.assignments[0]?.inSync).toEqual(['b1', 'b2']);
    const gone = last([
      { type: 'delete', resource: 'stream:s' },
      { type: 'remove', broker: 'b1' },
    ]);
    expect(gone.cluster).toMatchObject({
      resources: [],
      assignments: [],
      brokers: [{ id: 'b2' }, { id: 'b3' }],
    });
  });

  it.each<[string, SimAction, RegExp]>([
    ['a join of one that is there', { type: 'join', broker: broker('b1') }, /b1 is there already/],
    ['a drain of nobody', { type: 'drain', broker: 'b9' }, /event 1 \(drain\): there is no broker b9/],
    ['an up of one that is', { type: 'up', broker: 'b1' }, /b1 is live, not down/],
    ['a removal of a broker in use', { type: 'remove', broker: 'b1' }, /still holds 1 shard \(stream:s\/0\)/],
    ['a resource twice', { type: 'create', resource: resource('s') }, /stream:s is there already/],
    ['a delete of nothing', { type: 'delete', resource: 'stream:t' }, /no resource stream:t/],
    ['fewer shards', { type: 'setResource', resource: 'stream:s', patch: { shards: 0 } }, /only be raised/],
    ['in sync without a copy', { type: 'inSync', shard: 'stream:s/0', inSync: ['b3'] }, /b3 holds no copy/],
    ['an unplaced shard', { type: 'cancel', shard: 'stream:s/1' }, /stream:s\/1 is no placed shard/],
    [
      'a move that the planner refuses',
      { type: 'move', shard: 'stream:s/0', role: 'leader', from: null, to: 'b2' },
      /not here/,
    ],
  ])('%s is refused', (_what, action, message) => {
    expect(() => last([action])).toThrow(EventRefused);
    expect(() => last([action])).toThrow(message);
  });

  it('a move by hand is a step of pass 0, and counts like any other', () => {
    const byHand: Planner = {
      plan: (snapshot, reports) => {
        const current = rowIn(snapshot);
        const report = reports.shards.get(current.shard);
        if (current.move === null) return NOTHING;
        if (current.move.step === 'staged') return { ...NOTHING, steps: [fenceOf(current)] };
        return { ...NOTHING, steps: report?.drained === true ? [cutOverOf(current)] : [] };
      },
      startMove: (snapshot, _reports, { shard, to }) => stageTo(rowIn(snapshot, shard), to, false),
      cancelMove: () => ({ refused: 'not here' }),
    };
    const { phases } = run(file(), byHand, [
      event({ type: 'move', shard: 'stream:s/0', role: 'leader', from: null, to: 'b2' }),
    ]);
    expect(phases[1]?.steps.map(({ pass, step }) => `${pass} ${step}`)).toEqual([
      '0 stage',
      '1 fence',
      '2 cutOver',
    ]);
    expect(phases[1]?.moves).toHaveLength(1);
  });
});

describe('with the planner itself', () => {
  const planner: Planner = { ...scripted(() => ({})), plan: realPlan };
  const lopsided = file({
    resources: [resource('s', { shards: 6, replicationFactor: 3 })],
    assignments: [0, 1, 2, 3, 4, 5].map((n) => row(`stream:s/${n}`, ['b1', 'b2', 'b3'])),
  });

  it('a lopsided stream is levelled in the fewest moves, the same whatever the order of the rows', () => {
    const result = run(lopsided, planner);
    const [phase] = result.phases;
    expect(result.settled).toBe(true);
    expect(phase?.levels.leaders).toEqual({ 'stream:s': { b1: 2, b2: 2, b3: 2 } });
    expect(phase?.moves).toHaveLength(4);
    expect(phase?.minimumLeaderMoves).toBe(4);
    const shuffled = {
      ...lopsided,
      brokers: [...lopsided.brokers].reverse(),
      assignments: [...lopsided.assignments].reverse(),
    };
    expect(run(shuffled, planner)).toEqual(result);
  });

  it('a settled cluster is a fixed point: simulated again it writes nothing', () => {
    const cluster = run(lopsided, planner).phases[0]?.cluster;
    if (cluster === undefined) throw new Error('no phase');
    expect(planFile(cluster, planner).steps).toEqual([]);
    expect(run(cluster, planner)).toMatchObject({ settled: true, passes: 1 });
  });

  it('a broker that goes down is replaced after restoreAfterMs, not before', () => {
    const cluster = run(lopsided, planner).phases[0]?.cluster;
    if (cluster === undefined) throw new Error('no phase');
    const { brokers, resources, assignments } = cluster;
    const four = file({ brokers: [...brokers, broker('b4')], resources, assignments });
    const { phases } = run(four, planner, [event({ type: 'down', broker: 'b1' })], 1_000);
    const [, lost] = phases;
    expect(lost?.settled).toBe(true);
    expect(lost?.virtualMs).toBeGreaterThanOrEqual(DEFAULT_POLICY.restoreAfterMs);
    for (const { replicas } of lost?.cluster.assignments ?? []) expect(replicas).not.toContain('b1');
  });
});
