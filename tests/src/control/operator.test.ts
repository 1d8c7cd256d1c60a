import { beforeEach, describe, expect, it } from 'vitest';
import { plan } from '../../../placement/index.ts';
import { BrokerWorld, type WorldBroker } from '../../support/broker-world.ts';
import { streamOf } from '../../support/placed.ts';

describe("operators' requests to the leader", () => {
  let w: BrokerWorld;
  let brokers: Map<string, WorldBroker>;
  const shard = 'stream:orders/0';
  const row = () => w.quorum.machine.view.assignments.get(shard);
  const idle = () => [...w.quorum.machine.view.assignments.values()].every(({ move }) => move === null);

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
      const rows = [...w.quorum.machine.view.assignments.values()];
      return rows.length === 3 && rows.every(({ state }) => state === 'active') && idle();
    });
    await w.run(3_000);
  });

  function ask(method: string, params: object): Promise<unknown> {
    const plane = w.nodes.get('n2')?.plane;
    if (plane === undefined) throw new Error('no n2');
    return w.settled(plane.askLeader(method, params));
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
});
