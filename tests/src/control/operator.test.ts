import { beforeEach, describe, expect, it } from 'vitest';
import { plan } from '../../../placement/index.ts';
import type { Command } from '../../../src/command/index.ts';
import { BrokerWorld, type WorldBroker } from '../../support/broker-world.ts';
import type { LocalMember } from '../../support/local-control-plane.ts';
import { streamOf } from '../../support/placed.ts';

describe("operators' requests to the leader", () => {
  let w: BrokerWorld;
  let brokers: Map<string, WorldBroker>;
  const shard = 'stream:orders/0';
  const row = () => w.quorum.machine.view.assignments.get(shard);
  const idle = () => w.quorum.machine.view.assignments.list().every(({ move }) => move === null);

  beforeEach(async () => {
    w = new BrokerWorld({ plan });
    for (const id of ['n1', 'n2', 'n3']) await w.node(id);
    w.quorum.elect('n1');
    brokers = new Map();
    for (const id of ['b1', 'b2', 'b3']) {
      brokers.set(id, w.broker(id, { seedRecords: 2_000, copyRate: 200 }));
    }
    await w.write({ type: 'createResource', resource: streamOf('orders', 3, 2) });
    await w.until('all is placed and served', () => {
      const rows = w.quorum.machine.view.assignments.list();
      return rows.length === 3 && rows.every(({ state }) => state === 'active') && idle();
    });
    await w.run(3_000);
  });

  function plane(): LocalMember {
    const found = w.nodes.get('n2')?.plane;
    if (found === undefined) throw new Error('no n2');
    return found;
  }

  function ask(method: string, params: object): Promise<unknown> {
    return w.settled(plane().askLeader(method, params));
  }

  const start = (params: object) =>
    ask('move.start', {
      shard,
      role: 'leader',
      from: null,
      expectedGeneration: null,
      dryRun: false,
      request: null,
      ...params,
    });

  /** The broker that holds no copy of the shard. */
  const stranger = () => ['b1', 'b2', 'b3'].find((id) => !row()?.replicas.includes(id)) ?? '';
  const follower = () => row()?.replicas.find((id) => id !== row()?.leader) ?? '';

  it('placement.status tells level from not', async () => {
    expect(await ask('placement.status', {})).toEqual({
      paused: false,
      level: true,
      leaderMovesLeft: 0,
      movesInFlight: 0,
    });
    // Whoever was answered that a stream was created must not read of a state before it that all is level.
    await w.write({ type: 'createResource', resource: streamOf('more', 6, 2) });
    while (!((await ask('placement.status', {})) as { level: boolean }).level) await w.run(10);
    expect(w.quorum.machine.view.assignments.size).toBe(9);
    await w.until('all is at rest', idle);
    await start({ to: stranger() });
    expect(await ask('placement.status', {})).toMatchObject({ level: false, movesInFlight: 1 });
  });

  it('placement.plan answers the whole plan and writes nothing', async () => {
    const entries = w.quorum.log.length;
    await w.write({ type: 'setPolicy', expectedRevision: null, patch: { paused: true } });
    await w.write({ type: 'createResource', resource: streamOf('more', 2, 1) });
    const answer = await ask('placement.plan', {});
    expect(answer).toMatchObject({ minimumLeaderMoves: 0, levels: { copySpreadTotal: expect.any(Number) } });
    expect(w.quorum.log.length - entries).toBeLessThanOrEqual(3);
  });

  it('a dry run says what would be and writes nothing', async () => {
    const entries = w.quorum.log.length;
    const generation = row()?.generation;
    expect(await start({ to: stranger(), dryRun: true })).toMatchObject({
      written: false,
      step: 'stage',
      shard,
      from: row()?.leader,
      to: stranger(),
      copies: true,
      generation,
      zonesBefore: 2,
      zonesAfter: 2,
    });
    expect(w.quorum.log).toHaveLength(entries);
  });

  it('a move by hand is carried out; the paused planner does not undo it', async () => {
    await w.write({ type: 'setPolicy', expectedRevision: null, patch: { paused: true } });
    const to = follower();
    const generation = row()?.generation ?? 0;
    expect(await start({ to, expectedGeneration: generation })).toMatchObject({
      written: true,
      generation: generation + 1,
      copies: false,
    });
    await w.until('it leads', () => row()?.leader === to && row()?.state === 'active');
    expect(row()?.decision).toMatchObject({ reason: 'operator' });
  });

  it('refuses with the reason', async () => {
    const cases: [object, string, RegExp][] = [
      [{ to: row()?.leader }, 'refused', /leads it already/],
      [{ to: 'b9' }, 'not_found', /no broker b9/],
      [{ shard: 'stream:nope/0', to: 'b1' }, 'not_found', /no shard/],
      [{ to: stranger(), expectedGeneration: 1 }, 'stale', /is at generation/],
    ];
    for (const [params, code, message] of cases) {
      await expect(start(params)).rejects.toMatchObject({ code, message: expect.stringMatching(message) });
    }
    const to = stranger();
    await start({ to });
    await expect(start({ to })).rejects.toMatchObject({
      code: 'refused',
      message: expect.stringMatching(/in flight/),
    });
  });

  it('cancels before the fence: the destination is dropped, the leader never stopped', async () => {
    const { leader = '', replicas = [], epoch } = row() ?? {};
    const to = stranger();
    await start({ to });
    await w.until('it is being copied', () => (brokers.get(to)?.broker.offsets(shard)?.end ?? 0) > 100);
    expect(await ask('move.cancel', { shard, expectedGeneration: null, request: null })).toMatchObject({
      step: 'abandon',
      drops: to,
      detail: expect.stringContaining(to),
    });
    expect(row()).toMatchObject({ leader, replicas, epoch, move: null });
    await w.until('its copy is gone', () => brokers.get(to)?.broker.offsets(shard) === null);
    await expect(
      ask('move.cancel', { shard, expectedGeneration: null, request: null }),
    ).rejects.toMatchObject({
      code: 'refused',
      message: expect.stringMatching(/nothing to cancel/),
    });
  });

  it('explains a place, the decision behind it and what is next', async () => {
    expect(await ask('shard.explain', { shard })).toMatchObject({
      shard,
      assignment: { leader: row()?.leader },
      decision: { rule: expect.any(String), detail: expect.any(String) },
      place: [expect.stringMatching(/leads and serves it/), expect.any(String), expect.any(String)],
      next: [],
      waiting: [],
    });
    await expect(ask('shard.explain', { shard: 'stream:orders/7' })).rejects.toMatchObject({
      code: 'not_found',
    });
  });

  it('abandons a shard only when nobody can serve it and no lease can run', async () => {
    const abandon = () => ask('shard.abandon', { shard, expectedGeneration: null, request: null });
    await expect(abandon()).rejects.toMatchObject({
      code: 'refused',
      message: expect.stringMatching(/holds all of it/),
    });
    const holders = [...(row()?.replicas ?? [])];
    for (const id of holders) brokers.get(id)?.process.kill();
    await w.until('both are down', () =>
      holders.every((id) => w.quorum.machine.view.brokers.get(id)?.lifecycle === 'down'),
    );
    await w.run(1_000);
    const before = row()?.generation ?? 0;
    await abandon();
    await w.until('it is served, empty, by the one that lives', () => row()?.state === 'active');
    expect(row()?.generation).toBeGreaterThan(before);
    expect(holders).not.toContain(row()?.leader);
  });

  describe('decided of a state that has changed by the time they are written', () => {
    /** What the request is answered where `changes` reach the log before it, though after it was decided. */
    async function raced(changes: readonly Command[], request: () => Promise<unknown>): Promise<unknown> {
      w.quorum.writesHeld = true;
      const written = changes.map((command) => {
        const done = w.quorum.leader?.propose(command, { deadlineMs: 10_000 }) ?? Promise.resolve();
        done.catch(() => undefined);
        return done;
      });
      await w.run(100);
      const answer = request().then(
        (value) => value,
        (error: unknown) => error,
      );
      await w.run(1_000);
      w.quorum.release();
      await w.settled(Promise.all(written));
      return w.settled(answer);
    }

    const begin = (params: object) => () =>
      plane().askLeader('move.start', {
        ...{ shard, role: 'leader', from: null, expectedGeneration: null, dryRun: false, request: null },
        ...params,
      });
    const resource = { kind: 'stream', name: 'orders', expectedRevision: null } as const;
    const drain = (broker: string): Command => ({ type: 'setDrain', broker, drain: true });
    const again = (id: string): Command => ({
      type: 'registerBroker',
      broker: {
        id,
        zone: null,
        addresses: {},
        maxShards: null,
        weight: 1,
        labels: {},
        storeId: 'other',
        starts: null,
      },
    });

    it.each<[string, () => readonly Command[], string, RegExp]>([
      ['the destination is drained', () => [drain(stranger())], 'stale', /b\d is draining/],
      [
        'the destination registers anew',
        () => [again(stranger())],
        'stale',
        /b\d is at incarnation 2, decided for 1/,
      ],
      [
        'the leader registers anew',
        () => [again(row()?.leader ?? '')],
        'stale',
        /is at generation \d+, the step was decided for \d+/,
      ],
      [
        'the resource is deleted',
        () => [{ type: 'deleteResource', ...resource }],
        'not_found',
        /no shard of a resource/,
      ],
      [
        'the resource is deleted and created again',
        () => [
          { type: 'deleteResource', ...resource },
          { type: 'createResource', resource: streamOf('orders', 3, 2) },
        ],
        'stale',
        /its resource was created at \d+, the row was decided for \d+/,
      ],
    ])('move.start: %s', async (_, changes, code, message) => {
      await w.write({ type: 'setPolicy', expectedRevision: null, patch: { paused: true } });
      const to = stranger();
      expect(await raced(changes(), begin({ to }))).toMatchObject({
        code,
        message: expect.stringMatching(message),
        retriable: false,
      });
      expect(row()?.move ?? null).toBeNull();
    });

    it('move.start: the destination is gone', async () => {
      await w.write({ type: 'setPolicy', expectedRevision: null, patch: { paused: true } });
      w.broker('b4');
      await w.until('b4 is there', () => w.quorum.machine.view.brokers.has('b4'));
      const answer = await raced(
        [{ type: 'removeBroker', broker: 'b4', incarnation: null }],
        begin({ to: 'b4' }),
      );
      expect(answer).toMatchObject({ code: 'stale', message: expect.stringMatching(/b4 is not registered/) });
    });

    it('move.cancel: the leader it would go on with has registered anew', async () => {
      const to = stranger();
      await start({ to });
      const ref = { shard, expectedGeneration: null, request: null };
      const answer = await raced([again(row()?.leader ?? '')], () => plane().askLeader('move.cancel', ref));
      expect(answer).toMatchObject({
        code: 'stale',
        message: expect.stringMatching(/is at generation \d+, the step was decided for \d+/),
      });
    });

    it('shard.abandon: the shard was written since, even where it might still be given up', async () => {
      const holders = [...(row()?.replicas ?? [])];
      for (const id of holders) brokers.get(id)?.process.kill();
      const down = () => holders.every((id) => w.quorum.machine.view.brokers.get(id)?.lifecycle === 'down');
      await w.until('both are down', down);
      await w.run(1_000);
      const { leader = '', generation = 0 } = row() ?? {};
      const back = again(leader);
      const gone: Command = {
        ...{ type: 'setLifecycle', broker: leader, incarnation: 2, lifecycle: 'left', silentSinceMs: 0 },
      };
      const ref = { shard, expectedGeneration: null, request: null };
      const answer = await raced([back, gone], () => plane().askLeader('shard.abandon', ref));
      expect(answer).toMatchObject({
        code: 'stale',
        message: expect.stringMatching(`is at generation \\d+, not ${generation}`),
      });
      expect(row()).toBeDefined();
    });
  });
});
