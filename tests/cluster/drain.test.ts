import { describe, expect, it } from 'vitest';
import { rpc, until } from '../support/cluster.ts';
import { clusterFile, skewed } from '../support/layouts.ts';
import { Stage } from '../support/stage.ts';

interface Shown {
  readonly broker: { readonly lifecycle: string; readonly leaders: number; readonly copies: number };
}
interface Planned {
  readonly waiting: readonly { readonly shard: string; readonly reason: string; readonly detail: string }[];
}

/** What a test holds back must not run into a time-out, however slow the machine. */
const PATIENT = { fenceTimeoutMs: 3_600_000, moveStallMs: 3_600_000, moveTimeoutMs: 7_200_000 };

describe('draining brokers of a real quorum', () => {
  const stage = new Stage();
  const four = ['b1', 'b2', 'b3', 'b4'];
  const address = async (): Promise<string> => stage.cluster.address(await stage.cluster.leader());
  const show = async (id: string): Promise<Shown['broker']> =>
    (await rpc<Shown>(await address(), 'broker.show', { id })).broker;
  const emptied = (id: string): Promise<boolean> =>
    until(`nothing on ${id}`, async () => (await show(id)).copies === 0, 100_000);
  const held = (id: string): number =>
    [...stage.watcher.rows.values()].filter(({ replicas }) => replicas.includes(id)).length;
  const shardsOf = (starts: readonly { shard: string }[]): string[] =>
    starts.map(({ shard }) => shard).sort();

  it('200 shards go, each copied once, and the CLI follows it to the end', async () => {
    const big = skewed({ name: 's', brokers: four, leaders: [67, 67, 67, 67], replicationFactor: 3 });
    const policy = { maxConcurrentMoves: 50, maxConcurrentHandovers: 50 };
    await stage.set(clusterFile(four, [big], policy));
    await until('the watcher', async () => stage.watcher.rows.size === 268);
    const before = [...stage.watcher.rows.values()].filter(({ replicas }) => replicas.includes('b2'));
    expect(before.length).toBeGreaterThanOrEqual(200);
    const { code, stderr } = await stage.cluster.cli('broker', 'drain', 'b2', '--wait');
    expect(code, stderr).toBe(0);
    expect(stderr).toMatch(/^draining b2$/m);
    expect(stderr).toMatch(/^b2: 0 leaders, 0 copies left$/m);
    await stage.level();
    expect(held('b2')).toBe(0);
    // Every set had three of four brokers: each of b2's shards needs exactly one new copy, and no other does.
    expect(shardsOf(stage.watcher.copyStarts)).toEqual(shardsOf(before));
    for (const row of stage.watcher.rows.values()) expect(row.inSync).toHaveLength(3);
    expect(stage.watcher.faults).toEqual([]);
    const { code: removed } = await stage.cluster.cli('broker', 'remove', 'b2');
    expect(removed).toBe(0);
    // Its process still runs: it comes back as a broker that was never seen, and is given its share again.
    await until('b2 anew', async () => (await show('b2')).lifecycle === 'live');
    await until('its share', async () => (await show('b2')).leaders === 67);
  });

  it('that cannot finish says what blocks it and how much room is missing, and goes on when a broker joins', async () => {
    const three = ['b1', 'b2', 'b3'];
    const small = skewed({ name: 's', brokers: three, leaders: [2, 2, 2], replicationFactor: 2 });
    await stage.set(clusterFile(three, [small]), { caps: { b1: 5, b3: 5 } });
    const drain = stage.cluster.run(['broker', 'drain', 'b2', '--wait']);
    // b1 and b3 hold 4 each and may hold 5: two of b2's four copies find room.
    await until('the reasons', async () => /waiting/.test(drain.stderr));
    await until('two left', async () => held('b2') === 2);
    const { waiting } = await rpc<Planned>(await address(), 'placement.plan');
    expect(waiting).toHaveLength(2);
    for (const { detail } of waiting) {
      expect(detail).toMatch(/maxShards/);
      expect(detail).toMatch(/b[13]/);
      expect(detail).toMatch(/missing/);
    }
    expect(drain.running).toBe(true);
    const health = await stage.cluster.cli('cluster', 'health');
    expect(health.code).toBe(10);
    expect(health.stdout).toMatch(/^\[-\] placement: .*: 2 no_room; stream:s\/\d: .*missing/m);
    await stage.join({ id: 'b4' });
    expect((await drain.exited).code).toBe(0);
    expect(drain.stderr).toMatch(/waiting, no_room: .*maxShards.*missing/);
    expect(drain.stderr).toMatch(/^ {2}in all, room for 2 more copies is missing$/m);
    expect(held('b2')).toBe(0);
    await stage.level();
    expect(stage.watcher.copyStarts.filter(({ to }) => to === 'b2')).toEqual([]);
    expect(stage.watcher.faults).toEqual([]);
  });

  it('survives a restart and a new registration of the broker and a change of Raft leader at every step', async () => {
    const stream = skewed({ name: 's', brokers: four, leaders: [2, 2, 2, 2], replicationFactor: 3 });
    await stage.set(clusterFile(four, [stream], PATIENT), {
      before: (broker) => Object.assign(broker.hold, { copy: true, drain: true }),
    });
    const before = [...stage.watcher.rows.values()].filter(({ replicas }) => replicas.includes('b2'));
    await rpc(await address(), 'broker.drain', { id: 'b2' });
    const deposeAt = async (step: string): Promise<void> => {
      const row = await until(`a move at ${step}`, async () =>
        [...stage.watcher.rows.values()].find(({ move }) => move?.step === step),
      );
      const leader = await stage.cluster.leader();
      await stage.cluster.killNode(leader);
      await until('another leader', async () => (await stage.cluster.leader()) !== leader);
      await stage.cluster.startNode(leader);
      expect(stage.watcher.rows.get(row.shard)?.move?.step).toBe(step);
      expect((await show('b2')).lifecycle).toBe('draining');
    };
    const letGo = (what: 'copy' | 'drain'): void => {
      for (const broker of stage.brokers.values()) {
        broker.hold[what] = false;
        broker.act();
      }
    };
    await deposeAt('fenced');
    letGo('drain');
    await deposeAt('joining');
    // Another process under its id, with the same store, then one more registration of it.
    stage.kill('b2');
    const again = await stage.join({ id: 'b2' });
    expect(again.lifecycle).toBe('draining');
    letGo('copy');
    await emptied('b2');
    await stage.level();
    expect(stage.brokers.get('b2')?.lifecycle).toBe('draining');
    expect(shardsOf(stage.watcher.copyStarts)).toEqual(shardsOf(before));
    expect(stage.watcher.copyStarts.every(({ to }) => to !== 'b2')).toBe(true);
    expect(stage.watcher.faults).toEqual([]);
    await stage.cluster.sameHash();
  });

  it('two drains at once never copy onto each other', async () => {
    const five = [...four, 'b5'];
    const stream = skewed({ name: 's', brokers: five, leaders: [4, 4, 4, 4, 4], replicationFactor: 2 });
    await stage.set(clusterFile(five, [stream], { maxConcurrentMoves: 3 }));
    await Promise.all(['b1', 'b2'].map(async (id) => rpc(await address(), 'broker.drain', { id })));
    await emptied('b1');
    await emptied('b2');
    await stage.level();
    expect(stage.watcher.copyStarts.filter(({ to }) => to === 'b1' || to === 'b2')).toEqual([]);
    const started = stage.watcher.leaderChanges.filter(({ to }) => to === 'b1' || to === 'b2');
    expect(started).toEqual([]);
    expect(stage.watcher.faults).toEqual([]);
    // A shard on both is copied twice, one on neither not at all, save to level what is left.
    for (const { replicas } of stage.watcher.rows.values()) expect(replicas).toHaveLength(2);
  });
});
