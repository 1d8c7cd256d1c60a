import { describe, expect, it } from 'vitest';
import { rpc, until } from '../support/cluster.ts';
import { clusterFile, skewed } from '../support/layouts.ts';
import { Stage } from '../support/stage.ts';
import { leaderCounts } from '../support/watcher.ts';

/** Wall clocks hours apart: nothing may rest on them. */
const HOURS_APART = (node: number): Record<string, string> => ({
  NODE_OPTIONS: `--import ${new URL('../support/wall-clock-offset.mjs', import.meta.url).href}`,
  TEST_WALL_OFFSET_MS: String((node - 1) * 5 * 3_600_000),
});

/** What the test holds back must not run into a time-out, however slow the machine. */
const PATIENT = { fenceTimeoutMs: 3_600_000, moveStallMs: 3_600_000, moveTimeoutMs: 7_200_000 };

describe.each([
  ['with clocks together', undefined],
  ['with wall clocks hours apart', HOURS_APART],
])('the Raft leader is killed %s', (_, env) => {
  const stage = new Stage();
  const options = env ? { env } : {};
  const three = ['b1', 'b2', 'b3'];

  /** Kills the leader with a move held at the given step, lets another take over, starts it again, and lets go. */
  async function killAt(step: 'staged' | 'fenced'): Promise<string> {
    const held = await until(`a move at ${step}`, async () =>
      [...stage.watcher.rows.values()].find((row) => row.move?.step === step),
    );
    const leader = await stage.cluster.leader();
    await stage.cluster.killNode(leader);
    await until('another leader', async () => (await stage.cluster.leader()) !== leader);
    expect(stage.watcher.rows.get(held.shard)?.move?.step).toBe(step);
    stage.release();
    await stage.level();
    await stage.cluster.startNode(leader);
    await stage.cluster.sameHash();
    return held.shard;
  }

  function nothingRepeatedOrReversed(moves: number): void {
    expect(stage.watcher.faults).toEqual([]);
    expect(stage.watcher.leaderChanges).toHaveLength(moves);
    expect(new Set(stage.watcher.leaderChanges.map(({ shard }) => shard)).size).toBe(moves);
  }

  it('between fence and cut-over: the move is finished from the log, once', async () => {
    const stream = skewed({ name: 's', brokers: three, leaders: [1, 1, 10], replicationFactor: 3 });
    await stage.set(clusterFile(three, [stream], PATIENT), {
      ...options,
      before: (broker) => (broker.hold.drain = true),
    });
    const shard = await killAt('fenced');
    expect(leaderCounts(stage.watcher.rows.values(), 'stream:s', three)).toEqual([4, 4, 4]);
    nothingRepeatedOrReversed(6);
    expect(stage.watcher.leaderChanges[0]?.shard).toBe(shard);
  });

  it('during a copy: the copy goes on and nothing is staged twice', async () => {
    const four = ['b1', 'b2', 'b3', 'b4'];
    const among = ['b1', 'b2'];
    const stream = skewed({ name: 's', brokers: four, leaders: [4, 4, 0, 0], replicationFactor: 2, among });
    await stage.set(clusterFile(four, [stream], PATIENT), {
      ...options,
      before: (broker) => (broker.hold.copy = true),
    });
    const shard = await killAt('staged');
    expect(leaderCounts(stage.watcher.rows.values(), 'stream:s', four)).toEqual([2, 2, 2, 2]);
    nothingRepeatedOrReversed(4);
    const stages = stage.watcher.history.filter((row) => row.shard === shard && row.move?.step === 'staged');
    expect(new Set(stages.map(({ move }) => `${move?.from}>${move?.to}`)).size).toBe(1);
  });
});

describe('a whole cluster is killed', () => {
  const stage = new Stage();
  const three = ['b1', 'b2', 'b3'];

  it('and every acknowledged write and every in-sync mark is there again', async () => {
    const stream = skewed({ name: 's', brokers: three, leaders: [1, 1, 10], replicationFactor: 3 });
    await stage.set(clusterFile(three, [stream]));
    const names = Array.from({ length: 20 }, (_, n) => `r${n}`);
    for (const [n, name] of names.entries()) {
      const resource = { kind: 'stream', name, shards: 2, replicationFactor: 3, labels: { n: String(n) } };
      await rpc(stage.cluster.address(n % 3), 'resource.create', resource);
    }
    await stage.level();
    await until('every leader to have confirmed', async () =>
      [...stage.watcher.rows.values()].every(({ state }) => state === 'active'),
    );
    const before = new Map(stage.watcher.rows);
    for (const node of [0, 1, 2]) await stage.cluster.killNode(node);
    await Promise.all([0, 1, 2].map((node) => stage.cluster.startNode(node)));
    const { stdout } = await stage.cluster.cli('export');
    const after = JSON.parse(stdout) as {
      resources: { name: string; labels: Record<string, string> }[];
      assignments: { shard: string; inSync: string[]; generation: number }[];
    };
    for (const [n, name] of names.entries()) {
      expect(after.resources.find((resource) => resource.name === name)?.labels).toEqual({ n: String(n) });
    }
    expect(after.assignments).toHaveLength(before.size);
    for (const { shard, inSync, generation } of after.assignments) {
      expect([shard, inSync, generation]).toEqual([
        shard,
        before.get(shard)?.inSync,
        before.get(shard)?.generation,
      ]);
    }
    await stage.cluster.sameHash();
  });
});
