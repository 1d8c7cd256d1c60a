import { describe, expect, it } from 'vitest';
import {
  DEFAULT_POLICY,
  MoveSlots,
  malformed,
  refusalOf,
  writeStep,
  type Assignment,
  type Broker,
  type DecidedAssignment,
  type DecidedStep,
  type Move,
  type WriteContext,
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

const move = (over: Partial<Move> = {}): Move => ({
  role: 'leader',
  from: 'b1',
  to: 'b2',
  step: 'staged',
  reason: 'balance',
  copied: false,
  drops: null,
  startedAtMs: 5,
  progressAtMs: 5,
  ...over,
});

const row = (over: Partial<Assignment> = {}): Assignment => ({
  shard: 'stream:s/0',
  leader: 'b1',
  replicas: ['b1', 'b2'],
  inSync: ['b1', 'b2'],
  generation: 7,
  epoch: 4,
  state: 'active',
  failedMoves: 0,
  move: null,
  ...over,
});

const decided = (over: Partial<DecidedAssignment> = {}): DecidedAssignment => {
  const { leader, replicas, inSync, state, failedMoves, move: m } = row();
  return { leader, replicas, inSync, state, failedMoves, move: m, ...over };
};

const step = (over: Partial<DecidedStep> = {}): DecidedStep => ({
  step: 'stage',
  shard: 'stream:s/0',
  expect: 7,
  requires: [{ broker: 'b2', incarnation: 1, allowDraining: false }],
  opensEpoch: false,
  next: decided({ move: move() }),
  ...over,
});

function context(over: Partial<WriteContext> & { brokers?: Broker[] } = {}): WriteContext {
  const brokers = over.brokers ?? [broker('b1'), broker('b2'), broker('b3')];
  return {
    broker: (id) => brokers.find((b) => b.id === id),
    copies: () => 0,
    slots: new MoveSlots(),
    policy: DEFAULT_POLICY,
    durable: true,
    stagedIncarnation: null,
    ...over,
  };
}

describe('writeStep', () => {
  it('counts the generation on and keeps the epoch unless the step opens one', () => {
    expect(writeStep(row(), step(), { maxGeneration: 90, phase: 2 })).toMatchObject({
      generation: 8,
      epoch: 4,
    });
    expect(writeStep(row(), step({ opensEpoch: true }), { maxGeneration: 90, phase: 2 })).toMatchObject({
      generation: 8,
      epoch: 8,
    });
  });

  it('notes what has moved, once it has, and only of this phase', () => {
    const copy = move({ role: 'follower', step: 'joining', from: 'b2', to: 'b3' });
    const at = (over: Partial<Assignment>, name: DecidedStep['step']) =>
      writeStep(row(over), step({ step: name, next: decided() }), { maxGeneration: 90, phase: 2 }).moved;
    const before = { phase: 2, leader: false, copies: [{ from: 'b4', to: 'b2' }] };
    expect(at({ move: move() }, 'cutOver')).toEqual({ phase: 2, leader: true, copies: [] });
    expect(at({ move: copy }, 'seat')).toEqual({
      phase: 2,
      leader: false,
      copies: [{ from: 'b2', to: 'b3' }],
    });
    // A copy that was missing has left nobody.
    expect(at({ move: { ...copy, from: null } }, 'seat')).toBeUndefined();
    expect(at({ move: copy }, 'abandon')).toBeUndefined();
    expect(at({ move: copy, moved: before }, 'seat')?.copies).toEqual([
      { from: 'b4', to: 'b2' },
      { from: 'b2', to: 'b3' },
    ]);
    expect(at({ move: move(), moved: before }, 'fence')).toEqual(before);
    expect(at({ move: move(), moved: { ...before, phase: 1 } }, 'fence')).toBeUndefined();
    expect(at({ move: move(), moved: { ...before, phase: 1 } }, 'cutOver')?.copies).toEqual([]);
  });

  it('starts a new shard one above the highest generation ever used, at its own epoch', () => {
    expect(writeStep(undefined, step(), { maxGeneration: 90, phase: 2 })).toMatchObject({
      generation: 91,
      epoch: 91,
    });
  });
});

describe('malformed', () => {
  it.each<[string, Partial<DecidedAssignment>, RegExp]>([
    ['a copy twice', { replicas: ['b1', 'b1'] }, /two copies/],
    ['a leader without a copy', { leader: 'b9' }, /leader b9 holds no copy/],
    ['in sync without a copy', { inSync: ['b1', 'b9'] }, /b9 is in sync/],
    ['in sync twice', { inSync: ['b1', 'b1'] }, /in sync twice/],
    ['a fence without a move', { state: 'draining' }, /fenced without a move/],
    ['a destination without a copy', { move: move({ to: 'b9' }) }, /destination b9/],
    ['a move to itself', { move: move({ to: 'b1' }) }, /to itself/],
    ['dropping a stranger', { move: move({ drops: 'b9' }) }, /b9 holds no copy to drop/],
    ['dropping the destination', { move: move({ drops: 'b2' }) }, /drops its own destination/],
    ['a leader move that joins', { move: move({ step: 'joining' }) }, /cannot be at step/],
    ['a leader move not from the leader', { move: move({ from: null }) }, /goes from the leader/],
    ['a fenced move of an active row', { move: move({ step: 'fenced' }) }, /does not fit/],
    [
      'a follower move of the leader',
      { move: move({ role: 'follower', step: 'joining', from: 'b1', drops: 'b1' }) },
      /names the leader/,
    ],
  ])('names %s', (_what, over, message) => {
    expect(malformed(decided(over))).toMatch(message);
  });

  it('passes rows that are whole, an empty in-sync set included', () => {
    expect(malformed(decided())).toBeNull();
    expect(malformed(decided({ inSync: [] }))).toBeNull();
    expect(malformed(decided({ state: 'draining', move: move({ step: 'fenced' }) }))).toBeNull();
  });
});

describe('refusalOf', () => {
  const refused = (s: DecidedStep, current: Assignment | undefined = row(), c = context()) =>
    refusalOf(current, s, c);

  it('passes a step that fits', () => {
    expect(refused(step())).toBeNull();
  });

  it('is stale for another generation, and for a shard that is gone or already there', () => {
    expect(refused(step({ expect: 6 }))).toMatchObject({ code: 'stale' });
    expect(refusalOf(undefined, step(), context())).toMatchObject({ code: 'stale' });
    expect(refused(step({ expect: 0 }))).toMatchObject({ code: 'stale' });
  });

  it('asks a condition for every newly named broker', () => {
    expect(refused(step({ requires: [] }))).toMatchObject({
      code: 'refused',
      detail: expect.stringMatching(/b2 carries no/),
    });
    const join = step({ step: 'join', next: decided({ replicas: ['b1', 'b2', 'b3'] }), requires: [] });
    expect(refused(join)).toMatchObject({ detail: expect.stringMatching(/b3 carries no condition/) });
  });

  it.each<[string, Partial<Broker>]>([
    ['at another incarnation', { incarnation: 2 }],
    ['draining', { lifecycle: 'draining' }],
    ['down', { lifecycle: 'down' }],
    ['left', { lifecycle: 'left' }],
  ])('is stale where a named broker is %s', (_what, over) => {
    const c = context({ brokers: [broker('b1'), broker('b2', over)] });
    expect(refused(step(), row(), c)).toMatchObject({ code: 'stale' });
  });

  it('lets a draining broker lead only where the step says so', () => {
    const c = context({ brokers: [broker('b2', { lifecycle: 'draining' })] });
    const promote = (allowDraining: boolean) =>
      step({
        step: 'promote',
        opensEpoch: true,
        next: decided({ leader: 'b2', state: 'assigning' }),
        requires: [{ broker: 'b2', incarnation: 1, allowDraining }],
      });
    expect(refused(promote(true), row(), c)).toBeNull();
    expect(refused(promote(false), row(), c)).toMatchObject({ code: 'stale' });
  });

  it('never lets a decision add to the in-sync set of a durable shard', () => {
    const current = row({ inSync: ['b1'] });
    const s = step({ next: decided({ inSync: ['b1', 'b2'] }) });
    expect(refused(s, current)).toMatchObject({
      code: 'refused',
      detail: expect.stringMatching(/only the leader/),
    });
    expect(refused(s, current, context({ durable: false }))).toBeNull();
  });

  it('never takes the last copy that holds everything of a durable shard', () => {
    const held = row({ inSync: ['b1'] });
    const drop = step({ opensEpoch: false, next: decided({ inSync: [] }) });
    expect(refused(drop, held)).toMatchObject({
      code: 'refused',
      detail: expect.stringMatching(/takes away b1, which alone holds everything/),
    });
    expect(refused(drop, held, context({ durable: false }))).toBeNull();
    expect(refused(drop, row({ inSync: [] }))).toBeNull();
  });

  it('never lets who serves change without an epoch', () => {
    expect(refused(step({ next: decided({ leader: 'b2' }) }))).toMatchObject({
      detail: expect.stringMatching(/without a new epoch/),
    });
    const fence = step({ next: decided({ state: 'draining', move: move({ step: 'fenced' }) }) });
    expect(refused(fence, row({ move: move() }))).toMatchObject({
      detail: expect.stringMatching(/fence changes without/),
    });
    expect(refused({ ...fence, step: 'fence', opensEpoch: true }, row({ move: move() }))).toBeNull();
  });

  it('never promotes a copy that is out of sync', () => {
    const s = step({ opensEpoch: true, next: decided({ leader: 'b2', inSync: ['b1'] }) });
    expect(refused(s)).toMatchObject({ code: 'refused', detail: expect.stringMatching(/b2 is not in sync/) });
  });

  it('does not replace a move in flight by another', () => {
    const other = step({ next: decided({ replicas: ['b1', 'b2', 'b3'], move: move({ to: 'b3' }) }) });
    const c = { ...other, requires: [{ broker: 'b3', incarnation: 1, allowDraining: false }] };
    expect(refused(c, row({ move: move() }))).toMatchObject({
      detail: expect.stringMatching(/move to b2 is in flight/),
    });
  });

  describe('a cut-over', () => {
    const fenced = row({ state: 'draining', epoch: 7, move: move({ step: 'fenced' }) });
    const cut = step({
      step: 'cutOver',
      opensEpoch: true,
      next: decided({ leader: 'b2', state: 'assigning' }),
    });
    it('is written for a live, in-sync destination in the incarnation that was staged', () => {
      expect(refused(cut, fenced, context({ stagedIncarnation: 1 }))).toBeNull();
    });
    it('is refused where the destination registered anew', () => {
      expect(refused(cut, fenced, context({ stagedIncarnation: 0 }))).toMatchObject({
        detail: expect.stringMatching(/anew/),
      });
    });
    it('is refused where the destination fell out of sync', () => {
      const out = { ...fenced, inSync: ['b1'] };
      expect(refused(cut, out, context({ stagedIncarnation: 1, durable: false }))).toMatchObject({
        code: 'stale',
        detail: expect.stringMatching(/not in sync/),
      });
    });
    it('is refused without a move', () => {
      expect(refused(cut, row())).toMatchObject({
        code: 'refused',
        detail: expect.stringMatching(/no move/),
      });
    });
  });

  it('holds a cap as a wall for new copies, not for those already there', () => {
    const join = step({
      next: decided({ replicas: ['b1', 'b2', 'b3'] }),
      requires: [{ broker: 'b3', incarnation: 1, allowDraining: false }],
    });
    const brokers = [broker('b1', { maxShards: 1 }), broker('b2'), broker('b3', { maxShards: 2 })];
    expect(refused(join, row(), context({ brokers, copies: () => 1 }))).toBeNull();
    expect(refused(join, row(), context({ brokers, copies: () => 2 }))).toMatchObject({
      code: 'limit_exceeded',
      detail: expect.stringMatching(/b3 is at maxShards 2/),
    });
  });

  it('keeps copies, copies at one broker and hand-overs inside their slots', () => {
    const slots = new MoveSlots();
    slots.add(move());
    expect(refused(step(), row(), context({ slots }))).toMatchObject({ code: 'limit_exceeded' });
    const copying = step({ next: decided({ move: move({ copied: true }) }) });
    expect(refused(copying, row(), context({ slots }))).toBeNull();
    slots.remove(move());
    expect(refused(step(), row(), context({ slots }))).toBeNull();

    slots.add(move({ copied: true, from: null, to: 'b1' }));
    expect(refused(copying, row(), context({ slots }))).toMatchObject({
      detail: expect.stringMatching(/maxConcurrentMoves/),
    });
    const policy = { ...DEFAULT_POLICY, maxConcurrentMoves: 5, maxMovesPerBroker: 1 };
    expect(refused(copying, row(), context({ slots, policy }))).toMatchObject({
      detail: expect.stringMatching(/b1 already/),
    });
    expect(slots.at('b1')).toBe(1);
  });

  it('asks no slot for going on with a move', () => {
    const slots = new MoveSlots();
    slots.add(move());
    const fence = step({
      step: 'fence',
      opensEpoch: true,
      next: decided({ state: 'draining', move: move({ step: 'fenced' }) }),
      requires: [],
    });
    expect(refused(fence, row({ move: move() }), context({ slots }))).toBeNull();
  });
});
