import { describe, expect, it } from 'vitest';
import type { Broker } from '../../placement/index.ts';
import { bestPromotions, levelness } from '../placement/oracle.ts';
import { brokerRow } from '../src/apply/harness.ts';
import { rpc, until } from '../support/cluster.ts';
import { clusterFile, skewed } from '../support/layouts.ts';
import { Stage } from '../support/stage.ts';

/** Silence is the subject here. Long enough for a busy machine's heartbeats, four a second. */
const FLAGS = ['--expiry-ms', '5000', '--lease-ms', '4000', '--margin-ms', '500'];

describe('a broker is killed', () => {
  const stage = new Stage();
  const four = ['b1', 'b2', 'b3', 'b4'];
  const rowsOn = (id: string) =>
    [...stage.watcher.rows.values()].filter(({ replicas }) => replicas.includes(id));
  const ledBy = (id: string) => [...stage.watcher.rows.values()].filter(({ leader }) => leader === id);
  const address = async (): Promise<string> => stage.cluster.address(await stage.cluster.leader());

  /** Two streams and more, level, every set three of four brokers, everything in sync. */
  async function setLevel(policy: Readonly<Record<string, unknown>>): Promise<void> {
    const streams = [
      skewed({ name: 'a', brokers: four, leaders: [3, 3, 3, 3], replicationFactor: 3 }),
      skewed({ name: 'b', brokers: four, leaders: [2, 2, 1, 1], replicationFactor: 3 }),
      skewed({ name: 'c', brokers: four, leaders: [0, 1, 1, 1], replicationFactor: 3 }),
    ];
    await stage.set(clusterFile(four, streams, policy), { flags: FLAGS });
    await stage.level();
    stage.watcher.copyStarts.length = 0;
    stage.watcher.leaderChanges.length = 0;
  }

  it('its shards are promoted together, as level as can be; back with its disk, nothing is copied', async () => {
    await setLevel({});
    const led = new Map<string, string>();
    const lost = new Map<string, string[]>();
    for (const { shard, leader, inSync } of stage.watcher.rows.values()) {
      if (leader === 'b1')
        lost.set(
          shard,
          inSync.filter((id) => id !== 'b1'),
        );
      else led.set(shard, leader);
    }
    stage.kill('b1');
    await until('b1 to lead nothing', async () => ledBy('b1').length === 0);
    const promotions = stage.watcher.leaderChanges.slice(0, lost.size);
    expect(promotions.map(({ shard }) => shard).sort()).toEqual([...lost.keys()].sort());
    expect(new Set(promotions.map(({ revision }) => revision)).size).toBe(1);
    const live: Broker[] = four.slice(1).map((id) => brokerRow(id));
    const after = new Map(led);
    for (const { shard, from, to } of promotions) {
      expect(from).toBe('b1');
      expect(lost.get(shard)).toContain(to);
      after.set(shard, to);
    }
    expect(levelness(live, after)).toBe(bestPromotions(live, led, lost));
    await stage.level();
    const before = rowsOn('b1');
    expect(before.every(({ inSync }) => !inSync.includes('b1'))).toBe(true);
    await stage.join({ id: 'b1' });
    await until('b1 in sync everywhere', async () =>
      rowsOn('b1').every(({ inSync }) => inSync.includes('b1')),
    );
    await stage.level();
    expect(
      rowsOn('b1')
        .map(({ shard }) => shard)
        .sort(),
    ).toEqual(before.map(({ shard }) => shard).sort());
    expect(ledBy('b1').length).toBeGreaterThan(0);
    expect(stage.watcher.copyStarts).toEqual([]);
    expect(stage.watcher.faults).toEqual([]);
  });

  it('gone for longer than restoreAfterMs, its copies are made elsewhere, once, and it can be removed', async () => {
    await setLevel({ restoreAfterMs: 1_000, maxConcurrentMoves: 4 });
    const lost = rowsOn('b1').map(({ shard }) => shard);
    const refused = rpc(await address(), 'broker.remove', { id: 'b1' });
    await expect(refused).rejects.toThrow(/still holds \d+ shards \(stream:/);
    stage.kill('b1');
    await until('nothing on b1', async () => rowsOn('b1').length === 0, 90_000);
    await stage.level();
    // Three brokers are left for sets of three: each of its shards was copied to the one that lacked it.
    expect(stage.watcher.copyStarts.map(({ shard }) => shard).sort()).toEqual(lost.sort());
    for (const { replicas, inSync } of stage.watcher.rows.values()) {
      expect([...replicas].sort()).toEqual(['b2', 'b3', 'b4']);
      expect(inSync).toHaveLength(3);
    }
    await rpc(await address(), 'broker.remove', { id: 'b1' });
    expect(stage.watcher.faults).toEqual([]);
    // Under the old id a broker never seen: it is given its share, whatever the old one held.
    const again = await stage.join({ id: 'b1', storeId: 'another' });
    expect(again.lifecycle).toBe('live');
    await until('its share', async () => ledBy('b1').length >= 5);
    await stage.level();
    expect(stage.watcher.faults).toEqual([]);
  });

  it('a durable shard whose only copy is gone waits, by name; only abandoning it gives it up', async () => {
    const two = ['b1', 'b2'];
    const alone = skewed({ name: 'alone', brokers: two, leaders: [1, 0], replicationFactor: 1 });
    await stage.set(clusterFile(two, [alone], { paused: true }), { flags: FLAGS });
    await stage.level();
    const shard = 'stream:alone/0';
    await expect(rpc(await address(), 'shard.abandon', { shard })).rejects.toThrow(
      /refused: .*b1.*holds all/,
    );
    stage.kill('b1');
    const told = await until('the explanation', async () => {
      const answer = await rpc<{ waiting: { reason: string; detail: string }[] }>(
        await address(),
        'shard.explain',
        {
          shard,
        },
      );
      return answer.waiting.find(({ reason }) => reason === 'only_copy_unavailable');
    });
    expect(told.detail).toContain('b1');
    expect(stage.watcher.rows.get(shard)?.leader).toBe('b1');
    const { code, stderr } = await stage.cluster.cli('cluster', 'health');
    expect([code, stderr]).toEqual([10, expect.anything()]);
    await until('the abandonment', async () => {
      const { code: exit } = await stage.cluster.cli('shard', 'abandon', shard);
      return exit === 0;
    });
    await until('a place anew', async () => stage.watcher.rows.get(shard)?.leader === 'b2');
    expect(stage.watcher.rows.get(shard)?.replicas).toEqual(['b2']);
  });
});
