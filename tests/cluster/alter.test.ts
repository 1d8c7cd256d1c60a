import { describe, expect, it } from 'vitest';
import { until } from '../support/cluster.ts';
import { Stage } from '../support/stage.ts';
import { leaderCounts } from '../support/watcher.ts';

describe('a resource that is altered while it serves', () => {
  const stage = new Stage();
  const zones: Readonly<Record<string, string>> = { b1: 'A', b2: 'A', b3: 'B', b4: 'C' };
  const ids = Object.keys(zones);
  const rows = () => [...stage.watcher.rows.values()];
  const alter = async (...args: string[]): Promise<void> => {
    const { code, stderr } = await stage.cluster.cli('stream', 'alter', 's', ...args);
    expect(code, stderr).toBe(0);
  };
  const span = (replicas: readonly string[]): number => new Set(replicas.map((id) => zones[id])).size;

  it('gets more shards, more copies, another spread, fewer copies, and brokers another weight', async () => {
    await stage.set({
      version: 1,
      brokers: ids.map((id) => ({ id, zone: zones[id] })),
      resources: [{ name: 's', shards: 4 }],
      policy: { maxConcurrentMoves: 4, maxConcurrentHandovers: 4 },
    });
    await until('its shards', async () => rows().length === 4);
    await alter('--shards', '12');
    await until('more shards', async () => rows().length === 12);
    await stage.level();
    expect(leaderCounts(rows(), 'stream:s', ids)).toEqual([3, 3, 3, 3]);
    expect(stage.watcher.leaderChanges).toEqual([]);

    await alter('--replication-factor', '3', '--zone-policy', 'zone');
    await until('the copies', async () => rows().every(({ inSync }) => inSync.length === 3));
    await until('the spread', async () =>
      rows().every(({ replicas, move }) => move === null && span(replicas) === 3),
    );
    await stage.level();

    await alter('--replication-factor', '2', '--zone-policy', 'default');
    await until('fewer copies', async () => rows().every(({ replicas }) => replicas.length === 2));
    await stage.level();
    expect(rows().every(({ inSync }) => inSync.length === 2)).toBe(true);
    const { stdout } = await stage.cluster.cli('placement', 'replication');
    expect(stdout).toMatch(/^s +24 +24 +24 +0 +0 /m);

    // With its next registration a broker takes twice the share.
    stage.kill('b4');
    await stage.join({ id: 'b4', zone: 'C', weight: 2 });
    await until('twice the share', async () => {
      const led = leaderCounts(rows(), 'stream:s', ids);
      return (led[3] ?? 0) >= 4; // 12 * 2/5 is 4.8.
    });
    await stage.level();
    const led = leaderCounts(rows(), 'stream:s', ids);
    expect(led[3]).toBeGreaterThanOrEqual(4);
    expect(Math.max(...led.slice(0, 3))).toBeLessThanOrEqual(3);
    expect(stage.watcher.faults).toEqual([]);
  });
});
