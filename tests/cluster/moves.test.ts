import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { Cluster, type Process, rpc, RpcFailure, until } from '../support/cluster.ts';
import { skewed } from '../support/layouts.ts';
import { Stage } from '../support/stage.ts';
import { Watcher, type WatchedAssignment } from '../support/watcher.ts';

const PATIENT = { fenceTimeoutMs: 3_600_000, moveStallMs: 3_600_000, moveTimeoutMs: 7_200_000 };

interface Started {
  readonly written: boolean;
  readonly step: string;
  readonly copies: boolean;
  readonly drops: string | null;
  readonly zonesBefore: number;
  readonly zonesAfter: number;
}

/** Five brokers in three zones, nothing moved by the planner, one stream of every situation. */
function situations(policy: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  const row = (number: number, replicas: string[], over: Record<string, unknown> = {}) => ({
    ...{ shard: `stream:s/${number}`, leader: replicas[0], replicas },
    ...over,
  });
  return {
    version: 1,
    brokers: [
      { id: 'b1', zone: 'A' },
      { id: 'b2', zone: 'A' },
      { id: 'b3', zone: 'B' },
      { id: 'b4', zone: 'C' },
      { id: 'dead', zone: 'C', lifecycle: 'down' },
      { id: 'leaving', zone: 'C', lifecycle: 'draining', drain: true },
      { id: 'full', zone: 'C' },
    ],
    resources: [{ name: 's', shards: 8, replicationFactor: 2 }],
    assignments: [
      row(0, ['b1', 'b2']),
      row(1, ['b1', 'b2']),
      row(2, ['b1', 'b3'], { inSync: ['b1'] }),
      row(3, ['dead']),
      row(4, ['b3', 'full']),
      row(5, ['b2', 'b3']),
      row(6, ['b4', 'b3']),
      row(7, ['b1']),
    ],
    policy: { ...PATIENT, paused: true, maxConcurrentMoves: 2, ...policy },
  };
}

describe('moves by hand', () => {
  const stage = new Stage();
  const row = (shard: string): WatchedAssignment => {
    const found = stage.watcher.rows.get(shard);
    if (!found) throw new Error(`no row of ${shard}`);
    return found;
  };
  const address = async (): Promise<string> => stage.cluster.address(await stage.cluster.leader());
  const start = async (params: Record<string, unknown>): Promise<Started> =>
    rpc<Started>(await address(), 'move.start', params);
  const cancel = async (shard: string): Promise<Record<string, unknown>> =>
    rpc(await address(), 'move.cancel', { shard });
  const refusal = async (asked: Promise<unknown>): Promise<string> =>
    asked.then(
      () => 'it was accepted',
      (error: unknown) => (error instanceof RpcFailure ? error.message : `no refusal: ${String(error)}`),
    );
  const settled = (shard: string, leader: string, replicas: readonly string[]): Promise<boolean> =>
    until(`${shard} on ${replicas.join()} under ${leader}`, async () => {
      const now = row(shard);
      return (
        now.leader === leader &&
        now.move === null &&
        now.state === 'active' &&
        [...now.replicas].sort().join() === [...replicas].sort().join()
      );
    });
  const setUp = async (policy: Readonly<Record<string, unknown>> = {}): Promise<void> => {
    await stage.set(situations(policy), {
      caps: { full: 1 },
      absent: ['dead'],
      before: (broker) => (broker.hold.copy = true),
    });
    await until('every leader that lives to have opened', async () =>
      [...stage.watcher.rows.values()].every(({ leader, state }) => leader === 'dead' || state === 'active'),
    );
    await stage.seen((await stage.cluster.status()).revision);
  };

  it('are refused with the reason, and write nothing', async () => {
    await setUp();
    const before = JSON.stringify([...stage.watcher.rows]);
    const cases: readonly [Record<string, unknown>, RegExp][] = [
      [{ shard: 'stream:none/0', to: 'b1' }, /^(not_found|refused): stream:none\/0/],
      [{ shard: 'stream:s/8', to: 'b1' }, /^(not_found|refused): stream:s\/8/],
      [{ shard: 'stream:s/0', to: 'nobody' }, /nobody/],
      [{ shard: 'stream:s/0', to: 'b1' }, /^refused: .*b1 leads it already/],
      [{ shard: 'stream:s/0', to: 'dead' }, /^refused: .*dead is down, not live/],
      [{ shard: 'stream:s/0', to: 'leaving' }, /^refused: .*leaving is draining, not live/],
      [{ shard: 'stream:s/0', to: 'full' }, /^refused: .*full is at maxShards 1/],
      [{ shard: 'stream:s/2', to: 'b3' }, /^refused: .*b3 holds a copy that is not in sync/],
      [{ shard: 'stream:s/3', to: 'b1' }, /^refused: .*leader dead \(down\)/],
      [{ shard: 'stream:s/0', role: 'follower', to: 'b3' }, /^invalid_argument: .*from/],
      [{ shard: 'stream:s/0', role: 'follower', from: 'b3', to: 'b4' }, /^refused: .*b3 holds no copy/],
      [{ shard: 'stream:s/0', role: 'follower', from: 'b1', to: 'b3' }, /^refused: .*b1 leads it/],
      [
        { shard: 'stream:s/0', role: 'follower', from: 'b2', to: 'b1' },
        /^refused: .*b1 holds a copy already/,
      ],
      [
        { shard: 'stream:s/0', role: 'follower', from: 'b2', to: 'full' },
        /^refused: .*full is at maxShards 1/,
      ],
      [{ shard: 'stream:s/0', role: 'follower', from: 'nobody', to: 'b3' }, /nobody/],
      [{ shard: 'stream:s/0', to: 'b3', expectedGeneration: 99 }, /^stale: .*generation/],
      [{ shard: 'stream:s/0', to: '' }, /^invalid_argument: .*to/],
      [{ shard: 'stream:s/0', to: 'b3', role: 'boss' }, /^invalid_argument: .*role/],
      [{ shard: 'stream:s/0', to: 'b3', dryRun: 'perhaps' }, /^invalid_argument: .*dryRun/],
      [{ shard: 'stream:s/0', to: 'b3', colour: 'red' }, /^invalid_argument: .*colour/],
      [{ shard: 's', to: 'b3' }, /^invalid_argument: .*shard/],
    ];
    for (const [params, reason] of cases) {
      expect(await refusal(start(params)), JSON.stringify(params)).toMatch(reason);
      // What is refused is refused unwritten, too.
      expect(await refusal(start({ ...params, dryRun: params['dryRun'] ?? true }))).toMatch(reason);
    }
    expect(await refusal(cancel('stream:s/0'))).toMatch(/^refused: .*nothing to cancel/);
    expect(await refusal(cancel('stream:s/99'))).toMatch(/^(not_found|refused): stream:s\/99/);
    expect(JSON.stringify([...stage.watcher.rows])).toBe(before);

    // Moving already; and no slot is left for a third copy, while a hand-over needs none of those.
    await start({ shard: 'stream:s/0', to: 'b3' });
    expect(await refusal(start({ shard: 'stream:s/0', to: 'b4' }))).toMatch(
      /^refused: .*move to b3 is in flight/,
    );
    await start({ shard: 'stream:s/5', role: 'follower', from: 'b3', to: 'b4' });
    expect(await refusal(start({ shard: 'stream:s/6', to: 'b1' }))).toMatch(/^refused: .*maxConcurrentMoves/);
    await start({ shard: 'stream:s/6', to: 'b3' });
    await settled('stream:s/6', 'b3', ['b3', 'b4']);
    const { code, stderr } = await stage.cluster.cli('move', 'start', 's/7', '--to', 'b3');
    expect(code).toBe(4);
    expect(stderr).toMatch(/^error: .*maxConcurrentMoves.*\(refused\)$/m);
  });

  it('say what they do before and do it: leaderships and copies, copied and not', async () => {
    await setUp();
    const dry = await start({ shard: 'stream:s/0', to: 'b3', dryRun: true });
    expect(dry).toMatchObject({ written: false, step: 'stage', copies: true, zonesBefore: 1, zonesAfter: 2 });
    expect(row('stream:s/0').move).toBeNull();
    const told = await stage.cluster.cli('move', 'start', 's/0', '--to', 'b3', '--dry-run');
    expect(told.stdout).toMatch(
      /^would move the leader of stream:s\/0 from b1 to b3: the data is copied, b[12] drops its copy, zones 1 -> 2$/m,
    );
    stage.release();
    const { drops } = await start({ shard: 'stream:s/0', to: 'b3' });
    await settled(
      'stream:s/0',
      'b3',
      ['b1', 'b2', 'b3'].filter((id) => id !== drops),
    );

    const handed = await start({ shard: 'stream:s/1', to: 'b2' });
    expect(handed).toMatchObject({
      written: true,
      copies: false,
      drops: null,
      zonesBefore: 1,
      zonesAfter: 1,
    });
    await settled('stream:s/1', 'b2', ['b1', 'b2']);

    const cli = await stage.cluster.cli(
      ...['move', 'start', 's/5', '--role', 'follower', '--from', 'b3', '--to', 'b4', '-o', 'json'],
    );
    expect(cli.code, cli.stderr).toBe(0);
    expect(JSON.parse(cli.stdout)).toMatchObject({
      written: true,
      step: 'join',
      zonesBefore: 2,
      zonesAfter: 2,
    });
    await settled('stream:s/5', 'b2', ['b2', 'b4']);
    const where = { brokers: stage.watcher.copyStarts };
    expect(where.brokers).toEqual([
      { shard: 'stream:s/0', to: 'b3' },
      { shard: 'stream:s/5', to: 'b4' },
    ]);
    expect(stage.watcher.faults).toEqual([]);
  });

  it('are cancelled before the fence, after it, and not after the cut-over', async () => {
    await setUp();
    const { epoch } = row('stream:s/0');
    await start({ shard: 'stream:s/0', to: 'b3' });
    await until('the stage', async () => row('stream:s/0').move?.step === 'staged');
    await cancel('stream:s/0');
    await settled('stream:s/0', 'b1', ['b1', 'b2']);
    // Before the fence its leader never stopped.
    expect(row('stream:s/0').epoch).toBe(epoch);

    for (const broker of stage.brokers.values()) broker.hold.drain = true;
    stage.broker('b1').hold.copy = false;
    await start({ shard: 'stream:s/0', to: 'b3' });
    await until('the fence', async () => row('stream:s/0').move?.step === 'fenced');
    const fenced = row('stream:s/0').epoch;
    expect(fenced).toBeGreaterThan(epoch);
    const cancelled = await stage.cluster.cli('move', 'cancel', 'stream:s/0');
    expect(cancelled.code, cancelled.stderr).toBe(0);
    // It holds everything: after the fence it is kept, and goes as a surplus copy once placement is not paused.
    await settled('stream:s/0', 'b1', ['b1', 'b2', 'b3']);
    expect(row('stream:s/0').epoch).toBeGreaterThan(fenced);

    stage.release();
    await start({ shard: 'stream:s/0', to: 'b3' });
    await until('the cut-over', async () => row('stream:s/0').leader === 'b3');
    expect(await refusal(cancel('stream:s/0'))).toMatch(/^refused: .*nothing to cancel/);
    expect(stage.watcher.faults).toEqual([]);
  });

  it('a leader that never reports drained gets the shard back within fenceTimeoutMs', async () => {
    await setUp({ fenceTimeoutMs: 1_000 });
    stage.release();
    stage.broker('b1').hold.drain = true;
    await start({ shard: 'stream:s/1', to: 'b2' });
    await until('the fence', async () =>
      stage.watcher.history.some((r) => r.shard === 'stream:s/1' && r.state === 'draining'),
    );
    const fence = stage.watcher.history.findLast((r) => r.shard === 'stream:s/1' && r.state === 'draining');
    await settled('stream:s/1', 'b1', ['b1', 'b2']);
    expect(row('stream:s/1').epoch).toBeGreaterThan(fence?.epoch ?? Infinity);
    expect(stage.watcher.leaderChanges).toEqual([]);
  });

  it('a destination that registers anew under way: staged it is copied to again, fenced the shard goes back', async () => {
    await setUp();
    await start({ shard: 'stream:s/0', to: 'b3' });
    await until('the stage', async () => row('stream:s/0').move?.step === 'staged');
    stage.kill('b3');
    await stage.join({ id: 'b3', storeId: 'new-disk' });
    stage.release();
    await until(
      'the cut-over',
      async () => row('stream:s/0').leader === 'b3' && row('stream:s/0').move === null,
    );

    stage.broker('b1').hold.drain = true;
    await start({ shard: 'stream:s/1', to: 'b2' });
    await until('the fence', async () => row('stream:s/1').move?.step === 'fenced');
    stage.kill('b2');
    await stage.join({ id: 'b2' });
    stage.release();
    await settled('stream:s/1', 'b1', ['b1', 'b2']);
    expect(stage.watcher.faults).toEqual([]);
  });
});

describe('the old leader goes after the fence', () => {
  const stage = new Stage();

  it('and the shard is given to a copy in sync once its lease cannot run any more', async () => {
    const three = ['b1', 'b2', 'b3'];
    const stream = skewed({ name: 's', brokers: three, leaders: [1, 0, 0], replicationFactor: 3 });
    const file = {
      version: 1,
      brokers: three.map((id) => ({ id })),
      resources: [stream.resource],
      assignments: stream.assignments,
      policy: { ...PATIENT, paused: true },
    };
    const flags = ['--expiry-ms', '5000', '--lease-ms', '4000', '--margin-ms', '500'];
    await stage.set(file, { flags, before: (broker) => (broker.hold.drain = true) });
    await stage.level();
    const shard = 'stream:s/0';
    const address = stage.cluster.address(await stage.cluster.leader());
    // What is decided while its leader confirms is stale, and an operator is told so.
    await until('its leader', async () => stage.watcher.rows.get(shard)?.state === 'active');
    await rpc(address, 'move.start', { shard, to: 'b2' });
    await until('the fence', async () => stage.watcher.rows.get(shard)?.move?.step === 'fenced');
    stage.kill('b1');
    await until('b1 down', async () => {
      const { broker } = await rpc<{ broker: { lifecycle: string } }>(address, 'broker.show', { id: 'b1' });
      return broker.lifecycle === 'down';
    });
    await until('another leader', async () => {
      const row = stage.watcher.rows.get(shard);
      return row?.leader !== 'b1' && row?.state === 'active' && row.move === null;
    });
    expect(stage.watcher.leaderChanges).toHaveLength(1);
    expect(stage.watcher.copyStarts).toEqual([]);
    expect(stage.watcher.faults).toEqual([]);
  });
});

describe('a real destination that wedges after the fence', () => {
  let cluster: Cluster | undefined;
  let watcher: Watcher | undefined;
  afterEach(async () => {
    watcher?.close();
    await cluster?.stop();
  });

  it('gives the shard back within fenceTimeoutMs, and its records are all there', async () => {
    cluster = await Cluster.start({ flags: ['--expiry-ms', '60000', '--lease-ms', '50000'] });
    const { directory, clusterId } = cluster;
    await cluster.import({
      version: 1,
      brokers: [],
      resources: [],
      assignments: [],
      policy: { paused: true, fenceTimeoutMs: 3_000, fenceMaxLagRecords: 1_500 },
    });
    const run = async (id: string, ...more: string[]): Promise<Process> => {
      const args = [
        'broker',
        'run',
        '--id',
        id,
        '--cluster-id',
        clusterId,
        '--data-dir',
        join(directory, id),
      ];
      const started = (cluster as Cluster).run([...args, ...more]);
      await started.line(/^ready /);
      return started;
    };
    // Slow enough that the last 1,500 records, which the fence waits for, take longer than its time-out.
    await run('b1', '--seed-records', '2000', '--copy-rate', '300');
    watcher = new Watcher([0, 1, 2].map((node) => (cluster as Cluster).address(node)));
    await rpc(cluster.address(0), 'resource.create', { kind: 'stream', name: 's', shards: 1 });
    const row = (): WatchedAssignment | undefined => watcher?.rows.get('stream:s/0');
    await until('its leader', async () => row()?.state === 'active');
    const b2 = await run('b2', '--copy-rate', '300');
    await until('b2', async () => rpc((cluster as Cluster).address(0), 'broker.show', { id: 'b2' }));
    await rpc(cluster.address(0), 'move.start', { shard: 'stream:s/0', to: 'b2' });
    await until('the fence', async () => row()?.move?.step === 'fenced');
    b2.child.kill('SIGSTOP');
    const epoch = row()?.epoch ?? 0;
    await until(
      'the shard back',
      async () => row()?.leader === 'b1' && row()?.move === null && row()?.state === 'active',
    );
    expect(row()?.epoch).toBeGreaterThan(epoch);
    // The copy lacks little, so it may be kept for the next try.
    expect(row()?.replicas).toContain('b1');
    const appended = await cluster.cli('broker', 'append', 'stream:s/0', 'after');
    expect(appended.code, appended.stderr).toBe(0);
    const read = await cluster.cli('broker', 'read', 'stream:s/0', '--from', '1999', '--limit', '10');
    expect(read.stdout).toMatch(/after/);
    b2.child.kill('SIGCONT');
    expect(watcher.leaderChanges).toEqual([]);
    expect(watcher.faults).toEqual([]);
  });
});
