import { describe, expect, it } from 'vitest';
import type { Plan } from '../../placement/index.ts';
import { rpc, until } from '../support/cluster.ts';
import { clusterFile, skewed } from '../support/layouts.ts';
import { Stage } from '../support/stage.ts';
import { leaderCounts } from '../support/watcher.ts';

/** Silence is part of it: a dead leader is replaced though placement is paused. */
const FLAGS = ['--expiry-ms', '5000', '--lease-ms', '4000', '--margin-ms', '500'];
const PATIENT = { fenceTimeoutMs: 3_600_000, moveStallMs: 3_600_000, moveTimeoutMs: 7_200_000 };

describe('a pause', () => {
  const stage = new Stage();
  const four = ['b1', 'b2', 'b3', 'b4'];
  const address = async (): Promise<string> => stage.cluster.address(await stage.cluster.leader());
  let created = 0;

  /** A pass over everything so far has been written: it placed a stream created just now, level. */
  async function placedAnew(): Promise<void> {
    const name = `n${created++}`;
    await rpc(await address(), 'resource.create', { kind: 'stream', name, shards: 2, replicationFactor: 2 });
    const led = (): number[] => leaderCounts(stage.watcher.rows.values(), `stream:${name}`, four);
    await until(`the place of ${name}`, async () => led().reduce((a, b) => a + b) === 2);
    expect(Math.max(...led())).toBe(1);
  }

  async function deposeTheLeader(): Promise<void> {
    const leader = await stage.cluster.leader();
    await stage.cluster.killNode(leader);
    await until('another leader', async () => (await stage.cluster.leader()) !== leader);
    await stage.cluster.startNode(leader);
    expect((await stage.cluster.status()).placement.paused).toBe(true);
  }

  it('holds everything but placing and failing over, through changes of leader, and lets a move finish', async () => {
    const stream = skewed({ name: 's', brokers: four, leaders: [6, 3, 0, 0], replicationFactor: 3 });
    const policy = { ...PATIENT, restoreAfterMs: 1 };
    await stage.set(clusterFile(four, [stream], policy), {
      flags: FLAGS,
      before: (broker) => (broker.hold.drain = true),
    });
    const moving = await until('a move at its fence', async () =>
      [...stage.watcher.rows.values()].find(({ move }) => move?.step === 'fenced'),
    );
    const { code } = await stage.cluster.cli('placement', 'pause');
    expect(code).toBe(0);
    // In flight, it finishes; nothing follows it.
    stage.release();
    await until('the end of the move', async () => stage.watcher.rows.get(moving.shard)?.state === 'active');
    await placedAnew();
    const led = (): number[] => leaderCounts(stage.watcher.rows.values(), 'stream:s', four);
    const paused = led();
    expect(paused.slice(0, 2)).toEqual([5, 3]);
    expect(paused.reduce((a, b) => a + b)).toBe(9);
    expect(stage.watcher.leaderChanges).toHaveLength(1);
    await deposeTheLeader();

    // A drain waits.
    await rpc(await address(), 'broker.drain', { id: 'b2' });
    await placedAnew();
    expect(led()).toEqual(paused);
    expect([...stage.watcher.rows.values()].every(({ move }) => move === null)).toBe(true);

    // A dead leader is replaced, its copies are not.
    const onB1 = (): number =>
      [...stage.watcher.rows.values()].filter(({ replicas }) => replicas.includes('b1')).length;
    const copies = onB1();
    stage.kill('b1');
    await until('b1 to lead nothing', async () => led()[0] === 0);
    await placedAnew();
    expect(onB1()).toBe(copies);
    await deposeTheLeader();
    const { steps } = await rpc<Plan>(await address(), 'placement.plan');
    expect(steps).toEqual([]);
    expect(stage.watcher.copyStarts).toEqual([]);

    // By hand it may be done all the same.
    const own = [...stage.watcher.rows.values()].find(
      ({ shard, leader, inSync }) =>
        shard.startsWith('stream:s/') && leader !== 'b3' && inSync.includes('b3'),
    );
    await rpc(await address(), 'move.start', { shard: own?.shard, to: 'b3' });
    await until('the move by hand', async () => stage.watcher.rows.get(own?.shard ?? '')?.leader === 'b3');

    await rpc(await address(), 'placement.resume');
    await until('b2 to lead nothing', async () => led()[1] === 0);
    // With b1 dead only two are left for sets of three: the copies wait for another broker.
    await stage.join({ id: 'b5' });
    const gone = (id: string): boolean =>
      [...stage.watcher.rows.values()].every(({ replicas }) => !replicas.includes(id));
    await until('the drain and the restore', async () => gone('b1') && gone('b2'), 90_000);
    await stage.level();
    expect(stage.watcher.faults).toEqual([]);
  });
});
