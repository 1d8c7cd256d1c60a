import { beforeEach, describe, expect, it } from 'vitest';
import { assignmentRow, brokerRow, decided, Harness, importOf, resource, staged } from './harness.ts';

let h: Harness;

/** b1 leads stream:s/0 with an in-sync follower on b2, confirmed. */
beforeEach(() => {
  h = new Harness();
  h.timeMs = 1_000;
  for (const id of ['b1', 'b2', 'b3']) h.register(id);
  h.create('s');
  expect(h.place({ next: decided(['b1', 'b2']) }).result).toBe('accepted');
  expect(h.confirm('b1')).toBe('accepted');
});

describe('a registration', () => {
  it('counts incarnations from 1 and notes the first registration of the cluster', () => {
    expect(h.broker('b1')).toMatchObject({ incarnation: 1, lifecycle: 'live', imported: false });
    expect(h.state.firstRegisteredAtMs).toBe(1_000);
    h.timeMs = 9_000;
    expect(h.register('b1')).toEqual({ incarnation: 2, lifecycle: 'live' });
    expect(h.broker('b1').registeredAtMs).toBe(9_000);
    expect(h.state.firstRegisteredAtMs).toBe(1_000);
  });

  it('with the same store keeps the marks; what it leads is opened at a new epoch', () => {
    const before = h.assignment();
    h.register('b1');
    expect(h.assignment()).toMatchObject({
      state: 'assigning',
      inSync: ['b1', 'b2'],
      generation: before.generation + 1,
      epoch: before.generation + 1,
    });
  });

  it('with the same store gives what it follows a new generation and no new epoch', () => {
    const before = h.assignment();
    h.register('b2');
    expect(h.assignment()).toMatchObject({
      state: 'active',
      inSync: ['b1', 'b2'],
      generation: before.generation + 1,
      epoch: before.epoch,
    });
  });

  it.each([
    ['another store', 'store-new'],
    ['no store', null],
  ])('with %s leaves every in-sync set, also where it is the last', (_what, storeId) => {
    const before = h.assignment();
    h.register('b2', { storeId });
    expect(h.assignment()).toMatchObject({
      inSync: ['b1'],
      generation: before.generation + 1,
      epoch: before.epoch,
    });
    h.register('b1', { storeId });
    expect(h.assignment()).toMatchObject({ inSync: [], state: 'active', leader: 'b1', epoch: before.epoch });
  });

  it.each([
    ['above the last registered', 4, ['b1', 'b2'], { storeId: 'store-b2', starts: 4 }],
    ['equal to the last registered', 3, ['b1'], { storeId: null, starts: null }],
    ['below the last registered', 1, ['b1'], { storeId: null, starts: null }],
    ['no longer given', null, ['b1'], { storeId: null, starts: null }],
  ])('with the same store and a count of starts %s (%j after 3)', (_what, starts, inSync, row) => {
    h.register('b2', { starts: 3 });
    expect(h.assignment().inSync).toEqual(['b1', 'b2']);
    h.register('b2', { starts });
    expect(h.assignment().inSync).toEqual(inSync);
    expect(h.broker('b2')).toMatchObject(row);
  });

  it('after its store went back in time that id vouches for nothing, however high its count; another one does', () => {
    h.register('b2', { starts: 3 });
    h.register('b2', { starts: 3 });
    h.report('b1', [{ inSync: ['b1', 'b2'] }]);
    // The twin that had the higher count: it lacks what the other one has been given since.
    h.register('b2', { starts: 9 });
    expect(h.assignment().inSync).toEqual(['b1']);
    expect(h.register('b2', { storeId: 'renewed', starts: 1 })).toMatchObject({ lifecycle: 'live' });
    h.report('b1', [{ inSync: ['b1', 'b2'] }]);
    h.register('b2', { storeId: 'renewed', starts: 2 });
    expect(h.assignment().inSync).toEqual(['b1', 'b2']);
  });

  it('leads nothing more whose store went back in time, and its last copy is in no set', () => {
    h.register('b1', { starts: 2 });
    h.register('b2', { storeId: 'empty' });
    expect(h.assignment()).toMatchObject({ leader: 'b1', inSync: ['b1'] });
    h.register('b1', { starts: 2 });
    expect(h.assignment()).toMatchObject({ leader: 'b1', inSync: [] });
  });

  it('without a store is never taken for the one before it', () => {
    h.register('b2', { storeId: null });
    h.report('b1', [{ inSync: ['b1', 'b2'] }]);
    h.register('b2', { storeId: null });
    expect(h.assignment().inSync).toEqual(['b1']);
  });

  it('makes reports under way about the old incarnation stale', () => {
    const { generation } = h.assignment();
    h.register('b2', { storeId: 'store-new' });
    expect(h.report('b1', [{ generation, inSync: ['b1', 'b2'] }])).toEqual(['stale']);
    expect(h.assignment().inSync).toEqual(['b1']);
  });

  it('touches no assignment that does not name it', () => {
    const before = h.assignment();
    h.register('b3', { storeId: 'store-new' });
    expect(h.assignment()).toBe(before);
  });

  it('revives a broker that was down, and an operator’s drain survives it', () => {
    h.ok({ type: 'setDrain', broker: 'b2', drain: true });
    h.ok({ type: 'setLifecycle', broker: 'b2', incarnation: 1, lifecycle: 'down', silentSinceMs: 500 });
    expect(h.broker('b2')).toMatchObject({ lifecycle: 'down', drain: true, downSinceMs: 500 });
    expect(h.register('b2')).toEqual({ incarnation: 2, lifecycle: 'draining' });
    expect(h.broker('b2')).toMatchObject({ drain: true, downSinceMs: null });
  });

  it('undoes a fence of what it leads: the move is staged again', () => {
    h.place({ step: 'stage', next: decided(['b1', 'b2'], { state: 'active', move: staged() }) });
    const fence = decided(['b1', 'b2'], { state: 'draining', move: staged({ step: 'fenced' }) });
    expect(h.place({ step: 'fence', opensEpoch: true, next: fence }).result).toBe('accepted');
    expect(h.report('b1', [{ drained: true }])).toEqual(['accepted']);
    h.register('b1');
    expect(h.assignment()).toMatchObject({ state: 'assigning', drained: false, move: { step: 'staged' } });
    expect(h.assignment().epoch).toBe(h.assignment().generation);
  });

  it('of a destination re-stages a move that is not fenced, and bars the cut-over of one that is', () => {
    const stage = () =>
      h.place({ step: 'stage', next: decided(['b1', 'b2'], { state: 'active', move: staged() }) }).result;
    const fence = () =>
      h.place({
        step: 'fence',
        opensEpoch: true,
        next: decided(['b1', 'b2'], { state: 'draining', move: staged({ step: 'fenced' }) }),
      }).result;
    const cutOver = () => h.place({ step: 'cutOver', opensEpoch: true, next: decided(['b2', 'b1']) });
    expect(stage()).toBe('accepted');
    h.register('b2', { storeId: 'fresh' });
    expect(h.assignment()).toMatchObject({ stagedIncarnation: 2, inSync: ['b1'] });
    h.report('b1', [{ inSync: ['b1', 'b2'] }]);
    h.register('b2', { storeId: 'fresh' });
    expect(h.assignment()).toMatchObject({ stagedIncarnation: 3, inSync: ['b1', 'b2'] });
    expect(fence()).toBe('accepted');
    h.register('b2', { storeId: 'fresh' });
    expect(cutOver()).toMatchObject({ result: 'stale', detail: expect.stringMatching(/registered anew/) });
  });

  it('refuses what breaks a limit or a name', () => {
    const bad = (over: object) => h.refused({ type: 'registerBroker', broker: { ...base, ...over } });
    const base = {
      id: 'b9',
      zone: null,
      addresses: {},
      maxShards: null,
      weight: 1,
      labels: {},
      storeId: null,
      starts: null,
    };
    expect(bad({ id: 'b 9' })).toMatchObject({
      code: 'invalid_argument',
      message: expect.stringMatching(/broker id "b 9"/),
    });
    expect(bad({ zone: '' })).toMatchObject({ code: 'invalid_argument' });
    expect(bad({ weight: 0 })).toMatchObject({
      code: 'limit_exceeded',
      message: expect.stringMatching(/weight 0 must be 1 to 1000/),
    });
    expect(bad({ weight: 1_001 })).toMatchObject({ code: 'limit_exceeded' });
    expect(bad({ labels: { a: 'x'.repeat(4_096) } })).toMatchObject({
      message: expect.stringMatching(/labels take \d+ bytes/),
    });
    expect(bad({ addresses: { client: 'x'.repeat(257) } })).toMatchObject({
      message: expect.stringMatching(/address client/),
    });
    expect(bad({ storeId: '' })).toMatchObject({ message: expect.stringMatching(/storeId/) });
    expect(bad({ starts: 1 })).toMatchObject({ message: expect.stringMatching(/send its storeId too/) });
    for (const starts of [0, 2 ** 52 + 1]) {
      expect(bad({ storeId: 's', starts })).toMatchObject({
        code: 'limit_exceeded',
        message: expect.stringMatching(/starts \d+ must be 1 to/),
      });
    }
    expect(h.state.brokers.has('b9')).toBe(false);
  });
});

describe('an imported broker', () => {
  it('keeps on its first registration what the file gave it, and on the next only with its store', () => {
    const g = new Harness();
    for (const command of importOf({
      brokers: [brokerRow('b1', { incarnation: 3 }), brokerRow('b2')],
      resources: [resource('s')],
      assignments: [assignmentRow('stream:s/0', ['b1', 'b2'], { generation: 4, epoch: 4 })],
    })) {
      g.ok(command);
    }
    expect(g.broker('b1')).toMatchObject({ incarnation: 3, imported: true });
    expect(g.register('b1', { storeId: 'fresh' })).toMatchObject({ incarnation: 4 });
    expect(g.assignment()).toMatchObject({
      inSync: ['b1', 'b2'],
      state: 'assigning',
      generation: 5,
      epoch: 5,
    });
    g.register('b1', { storeId: 'other' });
    expect(g.assignment().inSync).toEqual(['b2']);
  });
});

describe('down and left', () => {
  const down = (broker: string, incarnation = 1) =>
    ({ type: 'setLifecycle', broker, incarnation, lifecycle: 'down', silentSinceMs: 700 }) as const;

  it('take a copy out of the in-sync set where a live leader can acknowledge without it', () => {
    const before = h.assignment();
    h.ok(down('b2'));
    expect(h.assignment()).toMatchObject({ inSync: ['b1'], leader: 'b1', generation: before.generation + 1 });
  });

  it('leave the set as it is once its leader is gone: nothing more is acknowledged', () => {
    const before = h.assignment();
    h.ok(down('b1'));
    h.ok(down('b2'));
    expect(h.assignment()).toBe(before);
  });

  it('leave the set as it is where its leader is silent too, whoever is declared first', () => {
    const before = h.assignment();
    h.ok({ ...down('b2'), unheard: ['b1'] });
    h.ok(down('b1'));
    expect(h.assignment()).toBe(before);
  });

  it('let any copy of a cluster that was silent as a whole lead again', () => {
    h.ok({ ...down('b2'), unheard: ['b1'] });
    h.ok(down('b1'));
    h.register('b2');
    const requires = [{ broker: 'b2', incarnation: 2, allowDraining: false }];
    const promoted = decided(['b2', 'b1'], { inSync: ['b2'] });
    const promote = { step: 'promote', opensEpoch: true, next: promoted, requires } as const;
    expect(h.place(promote).result).toBe('accepted');
  });

  it('keep a set that stood until its leader serves: then those that are gone leave it', () => {
    h.ok({ ...down('b2'), unheard: ['b1'] });
    h.ok(down('b1'));
    h.register('b1');
    expect(h.assignment()).toMatchObject({ inSync: ['b1', 'b2'], state: 'assigning' });
    h.confirm('b1');
    expect(h.assignment()).toMatchObject({ inSync: ['b1'], state: 'active' });
  });

  it('of a broker with another store take it out of the set whoever is silent', () => {
    h.ok({ ...down('b2'), unheard: ['b1'] });
    h.ok(down('b1'));
    h.register('b2', { storeId: 'fresh' });
    expect(h.assignment().inSync).toEqual(['b1']);
  });

  it('hold only for the incarnation they were decided for', () => {
    h.register('b1');
    expect(h.refused(down('b1', 1))).toMatchObject({ code: 'stale_incarnation' });
    expect(h.broker('b1').lifecycle).toBe('live');
    expect(h.refused(down('b9'))).toMatchObject({ code: 'not_found' });
  });

  it('keep the time of the first silence, and left is not turned into down', () => {
    h.ok(down('b1'));
    h.ok({ type: 'setLifecycle', broker: 'b1', incarnation: 1, lifecycle: 'left', silentSinceMs: 900 });
    expect(h.broker('b1')).toMatchObject({ lifecycle: 'left', downSinceMs: 700 });
    expect(h.ok(down('b1'))).toEqual({ lifecycle: 'left' });
  });

  it('keep what a fenced leader said where the destination stays in sync', () => {
    h.place({ step: 'stage', next: decided(['b1', 'b2'], { state: 'active', move: staged() }) });
    const fence = decided(['b1', 'b2'], { state: 'draining', move: staged({ step: 'fenced' }) });
    h.place({ step: 'fence', opensEpoch: true, next: fence });
    h.report('b1', [{ drained: true }]);
    h.ok(down('b1'));
    expect(h.assignment()).toMatchObject({ drained: true, inSync: ['b1', 'b2'] });
    const cut = decided(['b2', 'b1'], { inSync: ['b2'] });
    const requires = [{ broker: 'b2', incarnation: 1, allowDraining: false }];
    expect(h.place({ step: 'cutOver', opensEpoch: true, next: cut, requires }).result).toBe('accepted');
    expect(h.assignment()).toMatchObject({ leader: 'b2', drained: false, stagedIncarnation: null });
  });
});

describe('draining and removing', () => {
  it('drain is intent under down, and undone by undrain', () => {
    h.ok({ type: 'setLifecycle', broker: 'b3', incarnation: 1, lifecycle: 'down', silentSinceMs: 0 });
    expect(h.ok({ type: 'setDrain', broker: 'b3', drain: true })).toEqual({ lifecycle: 'down' });
    expect(h.ok({ type: 'setDrain', broker: 'b1', drain: true })).toEqual({ lifecycle: 'draining' });
    expect(h.ok({ type: 'setDrain', broker: 'b1', drain: false })).toEqual({ lifecycle: 'live' });
    expect(h.refused({ type: 'setDrain', broker: 'b9', drain: true })).toMatchObject({ code: 'not_found' });
  });

  it('changes nothing a reader sees where the drain is as asked', () => {
    const { revision } = h.state;
    h.ok({ type: 'setDrain', broker: 'b1', drain: false });
    expect(h.state.revision).toBe(revision);
  });

  it('refuses to remove a broker that an assignment names, and names the shards', () => {
    expect(h.refused({ type: 'removeBroker', broker: 'b2', incarnation: null })).toMatchObject({
      code: 'refused',
      message: expect.stringMatching(/stream:s\/0/),
    });
    h.ok({ type: 'removeBroker', broker: 'b3', incarnation: null });
    expect(h.state.brokers.has('b3')).toBe(false);
  });

  it('removes an incarnation that is gone, and not the one that came back', () => {
    const remove = (incarnation: number) => ({ type: 'removeBroker', broker: 'b3', incarnation }) as const;
    expect(h.refused(remove(1))).toMatchObject({ code: 'stale_incarnation' });
    h.ok({ type: 'setLifecycle', broker: 'b3', incarnation: 1, lifecycle: 'down', silentSinceMs: 0 });
    h.register('b3');
    expect(h.refused(remove(1))).toMatchObject({
      code: 'stale_incarnation',
      message: expect.stringMatching(/incarnation 2 and live/),
    });
    h.ok({ type: 'setLifecycle', broker: 'b3', incarnation: 2, lifecycle: 'left', silentSinceMs: 0 });
    h.ok(remove(2));
    expect(h.state.brokers.has('b3')).toBe(false);
  });

  it('never gives a removed broker’s incarnation again', () => {
    h.register('b3');
    h.ok({ type: 'removeBroker', broker: 'b3', incarnation: null });
    expect(h.register('b3')).toMatchObject({ incarnation: 3 });
  });
});

it.each([
  ['an address', { addresses: { client: 'b1:9\r\nx' } }],
  ['a store id', { storeId: 'a\u0000b' }],
  ['a label', { labels: { rack: '\u009b2J' } }],
])('%s with a control character is refused', (_what, over) => {
  const h = new Harness();
  expect(() => h.register('b1', over)).toThrow(/invalid_argument.*control character/);
});
