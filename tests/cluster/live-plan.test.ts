import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { rpc, until } from '../support/cluster.ts';
import { clusterFile, skewed } from '../support/layouts.ts';
import { Stage } from '../support/stage.ts';

const FLAGS = ['--expiry-ms', '5000', '--lease-ms', '4000', '--margin-ms', '500'];
/** What a test holds back must not run into a time-out, however slow the machine. */
const PATIENT = { fenceTimeoutMs: 3_600_000, moveStallMs: 3_600_000, moveTimeoutMs: 7_200_000 };

describe('the plan that a running cluster prints', () => {
  const stage = new Stage();
  const four = ['b1', 'b2', 'b3', 'b4'];

  const json = async (...args: string[]): Promise<Record<string, unknown>> => {
    const { code, stdout, stderr } = await stage.cluster.cli(...args, '-o', 'json');
    expect(code, stderr).toBe(0);
    return JSON.parse(stdout) as Record<string, unknown>;
  };

  /** Both, but for what an answer of a cluster carries besides. */
  async function bothPlans(): Promise<[unknown, unknown]> {
    const { revision: _, term: __, leaderId: ___, ...live } = await json('placement', 'plan');
    const path = join(stage.cluster.directory, 'export.json');
    writeFileSync(path, (await stage.cluster.cli('export')).stdout);
    return [live, await json('plan', '-f', path)];
  }

  it('is what the binary plans offline from its export: at rest, with a copy under way, drained, silent, out of room', async () => {
    const stream = skewed({ name: 's', brokers: four, leaders: [3, 3, 3, 3], replicationFactor: 2 });
    await stage.set(clusterFile(four, [stream], PATIENT), { flags: FLAGS });
    const same = async (what: string): Promise<void> => {
      const [live, offline] = await bothPlans();
      expect(live, what).toEqual(offline);
    };
    await stage.level();
    await same('at rest');
    const address = stage.cluster.address(0);
    for (const broker of stage.brokers.values()) broker.hold.copy = true;
    await rpc(address, 'broker.drain', { id: 'b4' });
    await until('a copy under way', async () =>
      [...stage.watcher.rows.values()].some(({ move, inSync }) => move !== null && !inSync.includes(move.to)),
    );
    await until('no hand-over under way', async () =>
      [...stage.watcher.rows.values()].every(({ state }) => state === 'active'),
    );
    await same('with a copy under way');
    stage.release();
    await until('the drain', async () =>
      [...stage.watcher.rows.values()].every(
        ({ replicas, move }) => !replicas.includes('b4') && move === null,
      ),
    );
    await stage.level();
    await same('drained');
    stage.kill('b3');
    await until('b3 to lead nothing', async () =>
      [...stage.watcher.rows.values()].every(({ leader, state }) => leader !== 'b3' && state === 'active'),
    );
    await stage.level();
    await same('a broker silent');
    // b1 and b2 are left: a set of two never fits three.
    await rpc(address, 'resource.create', { kind: 'cache', name: 'new', shards: 2, replicationFactor: 3 });
    await until('its shards', async () => stage.watcher.rows.get('cache:new/1')?.state === 'active');
    await stage.level();
    await same('short of brokers');
    const events = join(stage.cluster.directory, 'events.json');
    writeFileSync(events, JSON.stringify([{ join: { id: 'b5' } }]));
    const simulated = await stage.cluster.cli('simulate', '--live', '--events', events, '-o', 'json');
    expect(simulated.code, simulated.stderr).toBe(0);
    expect(JSON.parse(simulated.stdout)).toMatchObject({ settled: true, phases: [{}, { settled: true }] });
  });
});

describe('a cluster whose brokers come and go while it places', () => {
  const stage = new Stage();

  it('refuses what it decided too early, the same on every member, and ends level', async () => {
    const three = ['b1', 'b2', 'b3'];
    await stage.set(clusterFile(three, [], { maxConcurrentMoves: 20, maxConcurrentHandovers: 20 }));
    const address = stage.cluster.address(1);
    for (let round = 0; round < 5; round++) {
      const id = three[round % 3] ?? '';
      const created = rpc(address, 'resource.create', {
        ...{ kind: 'stream', name: `s${round}`, shards: 60, replicationFactor: 2 },
      });
      // Another process under the id: what was decided for the old one is stale.
      stage.kill(id);
      await stage.join({ id });
      await created;
      await rpc(address, round % 2 === 0 ? 'broker.drain' : 'broker.undrain', { id: 'b3' });
    }
    await rpc(address, 'broker.undrain', { id: 'b3' });
    await stage.level();
    expect(stage.watcher.rows.size).toBe(300);
    for (const { shard, replicas, inSync } of stage.watcher.rows.values()) {
      expect([shard, replicas.length, inSync.length]).toEqual([shard, 2, 2]);
    }
    expect(stage.watcher.faults).toEqual([]);
    await stage.cluster.sameHash();
  });
});
