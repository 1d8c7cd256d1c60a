import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Machine } from '../../src/apply/index.ts';
import { createLevelDisk } from '../../src/disk-level.ts';
import { openDataDirectory } from '../../src/log/index.ts';
import { createSystemRandom } from '../../src/random.ts';
import { ChangeRing } from '../../src/watch/index.ts';
import type { Entry } from '../../raft/index.ts';
import type { Cluster } from '../support/cluster.ts';
import { clusterFile, skewed } from '../support/layouts.ts';
import { Stage } from '../support/stage.ts';

/** The log of one stopped member, as its disk has it. */
async function logOf(cluster: Cluster, member: string): Promise<readonly Entry[]> {
  const directory = join(cluster.directory, `${member}-copy`);
  await cp(join(cluster.directory, member), directory, { recursive: true });
  const opened = await openDataDirectory({
    disk: createLevelDisk(),
    random: createSystemRandom(),
    directory,
    clusterId: cluster.clusterId,
    memberId: member,
  });
  const { snapshot, entries } = await opened.storage.load();
  await opened.storage.close();
  expect(snapshot).toBeNull();
  return entries;
}

describe('the log alone', () => {
  const stage = new Stage();
  const three = ['b1', 'b2', 'b3'];

  it('gives the same state on an empty machine, and is byte for byte the same on every member', async () => {
    const stream = skewed({ name: 's', brokers: three, leaders: [1, 1, 10], replicationFactor: 3 });
    await stage.set(clusterFile(three, [stream]));
    await stage.level();
    for (const id of three) stage.kill(id);
    const hash = await stage.cluster.sameHash();
    const { members } = await stage.cluster.status();
    const applied = members[0]?.appliedIndex ?? 0;
    for (const node of [0, 1, 2]) await stage.cluster.killNode(node);
    const logs = await Promise.all(['n1', 'n2', 'n3'].map((member) => logOf(stage.cluster, member)));
    const shared = logs.map((log) => log.filter(({ index }) => index <= applied));
    for (const log of shared) {
      expect(log).toHaveLength(applied);
      for (const [n, entry] of log.entries()) {
        expect([entry.term, Buffer.from(entry.data).toString('hex')]).toEqual([
          shared[0]?.[n]?.term,
          Buffer.from(shared[0]?.[n]?.data ?? []).toString('hex'),
        ]);
      }
    }
    const machine = new Machine(new ChangeRing());
    machine.apply(shared[0] ?? []);
    expect(machine.view.stateHash).toBe(hash);
    expect(machine.view.assignments.size).toBe(12);
  });
});
