import { describe, expect, it } from 'vitest';
import { rpc, until } from '../support/cluster.ts';
import { clusterFile, skewed } from '../support/layouts.ts';
import { Stage } from '../support/stage.ts';
import { leaderCounts } from '../support/watcher.ts';

describe('levelling by a real quorum', () => {
  const stage = new Stage();
  const three = ['b1', 'b2', 'b3'];
  const counts = (resource: string, brokers: readonly string[]): number[] =>
    leaderCounts(stage.watcher.rows.values(), resource, brokers);

  it('places a new stream 4/4/4 beside brokers at 6/6/0, three times over, and never moves it', async () => {
    const old = skewed({ name: 'old', brokers: three, leaders: [6, 6, 0], replicationFactor: 3 });
    await stage.set(clusterFile(three, [old], { paused: true }));
    const fresh = { kind: 'stream', name: 'new' };
    for (let round = 0; round < 3; round++) {
      const node = stage.cluster.address(round);
      await rpc(node, 'resource.create', { ...fresh, shards: 12, replicationFactor: 3 });
      await until('twelve leaders', async () => counts('stream:new', three).reduce((a, b) => a + b) === 12);
      expect(counts('stream:new', three)).toEqual([4, 4, 4]);
      if (round === 2) break;
      const { revision } = await rpc<{ revision: number }>(node, 'resource.delete', fresh);
      await stage.seen(revision);
    }
    await rpc(stage.cluster.address(0), 'placement.resume');
    await stage.level();
    expect(counts('stream:old', three)).toEqual([4, 4, 4]);
    expect(counts('stream:new', three)).toEqual([4, 4, 4]);
    expect(stage.watcher.leaderChanges.filter(({ shard }) => shard.startsWith('stream:new/'))).toEqual([]);
    expect(stage.watcher.leaderChanges).toHaveLength(4);
    expect(stage.watcher.faults).toEqual([]);
  });

  it('levels five streams skewed different ways, no shard moving twice', async () => {
    const streams = [
      skewed({ name: 's1', brokers: three, leaders: [10, 1, 1], replicationFactor: 3 }),
      skewed({ name: 's2', brokers: three, leaders: [0, 12, 0], replicationFactor: 3 }),
      skewed({ name: 's3', brokers: three, leaders: [1, 3, 9], replicationFactor: 3 }),
      skewed({ name: 's4', brokers: three, leaders: [5, 5, 0], replicationFactor: 3 }),
      skewed({ name: 's5', brokers: three, leaders: [0, 0, 7], replicationFactor: 3 }),
    ];
    await stage.set(clusterFile(three, streams));
    await stage.level();
    for (const { resource } of streams) {
      const led = counts(`stream:${resource.name}`, three);
      expect(Math.max(...led) - Math.min(...led), resource.name).toBeLessThanOrEqual(1);
    }
    const moved = stage.watcher.leaderChanges.map(({ shard }) => shard);
    expect(new Set(moved).size).toBe(moved.length);
    expect(stage.watcher.faults).toEqual([]);
  });

  it('levels five brokers with replication factor 2, copying where it must', async () => {
    const five = ['b1', 'b2', 'b3', 'b4', 'b5'];
    const among = ['b1', 'b2', 'b3'];
    const stream = skewed({
      name: 's',
      brokers: five,
      leaders: [8, 6, 1, 0, 0],
      replicationFactor: 2,
      among,
    });
    await stage.set(clusterFile(five, [stream]));
    await stage.level();
    expect(counts('stream:s', five)).toEqual([3, 3, 3, 3, 3]);
    // 8 and 6 lead where 3 are wanted: 5 + 3 leaderships must go, and no more do.
    expect(stage.watcher.leaderChanges).toHaveLength(8);
    expect(new Set(stage.watcher.leaderChanges.map(({ shard }) => shard)).size).toBe(8);
    for (const row of stage.watcher.rows.values()) expect(row.replicas).toHaveLength(2);
    expect(stage.watcher.history.some(({ move }) => move?.role === 'leader' && move.to === 'b5')).toBe(true);
    expect(stage.watcher.faults).toEqual([]);
  });
});
