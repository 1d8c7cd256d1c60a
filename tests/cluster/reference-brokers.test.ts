import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { Cluster, type Process, rpc, until } from '../support/cluster.ts';
import { Watcher } from '../support/watcher.ts';

const SEEDED = 20;
const SHARDS = 24;

describe('reference brokers under a real quorum', () => {
  let cluster: Cluster;
  let watcher: Watcher | undefined;
  afterEach(async () => {
    watcher?.close();
    await cluster?.stop();
  });

  const start = async (id: string): Promise<Process> => {
    const { clusterId, directory } = cluster;
    const started = cluster.run([
      ...['broker', 'run', '--id', id, '--cluster-id', clusterId, '--data-dir', join(directory, id)],
      ...['--seed-records', String(SEEDED), '--log-level', 'warn'],
    ]);
    await started.line(/^ready /);
    await until(id, async () => rpc(cluster.address(0), 'broker.show', { id }));
    return started;
  };
  const rows = () => [...(watcher?.rows.values() ?? [])];

  it('a drained broker is left empty, copied once, through a restart of it, and every record is there', async () => {
    cluster = await Cluster.start({ flags: ['--expiry-ms', '60000', '--lease-ms', '50000'] });
    await rpc(cluster.address(0), 'placement.policy.set', {
      maxConcurrentMoves: 6,
      maxConcurrentHandovers: 6,
    });
    const ids = ['b1', 'b2', 'b3', 'b4'];
    const running = new Map<string, Process>();
    for (const id of ids) running.set(id, await start(id));
    watcher = new Watcher([0, 1, 2].map((node) => cluster.address(node)));
    await rpc(cluster.address(0), 'resource.create', {
      ...{ kind: 'stream', name: 's', shards: SHARDS, replicationFactor: 3 },
    });
    await until('all in sync', async () => {
      return (
        rows().length === SHARDS &&
        rows().every(({ state, inSync }) => state === 'active' && inSync.length === 3)
      );
    });
    for (const n of [0, 7, 23]) {
      const { code, stderr } = await cluster.cli('broker', 'append', `s/${n}`, `before-${n}`);
      expect(code, stderr).toBe(0);
    }
    watcher.copyStarts.length = 0;
    const on = rows().filter(({ replicas }) => replicas.includes('b2'));
    expect(on).toHaveLength(18);
    const drain = cluster.run(['broker', 'drain', 'b2', '--wait']);
    await until('the first of it gone', async () =>
      rows().some(({ shard, replicas }) => on.some((row) => row.shard === shard) && !replicas.includes('b2')),
    );
    await running.get('b2')?.kill('SIGTERM');
    await start('b2');
    expect((await drain.exited).code, drain.stderr).toBe(0);
    expect(rows().some(({ replicas }) => replicas.includes('b2'))).toBe(false);
    await until('the end of every move', async () =>
      rows().every(({ move, inSync }) => move === null && inSync.length === 3),
    );
    expect(watcher.copyStarts.map(({ shard }) => shard).sort()).toEqual(on.map(({ shard }) => shard).sort());
    for (const n of [0, 7, 23]) {
      const { stdout, stderr } = await cluster.cli('broker', 'read', `s/${n}`, '--from', String(SEEDED));
      expect(stdout, stderr).toContain(`before-${n}`);
    }
    expect(watcher.faults).toEqual([]);
  });
});
