import { applyAll } from '../support/apply-all.ts';
import { describe, expect, it } from 'vitest';
import { Machine } from '../../src/apply/index.ts';
import { ChangeRing } from '../../src/watch/index.ts';
import { clusterFile, skewed } from '../support/layouts.ts';
import { memberLog } from '../support/member-log.ts';
import { Stage } from '../support/stage.ts';

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
    const logs = await Promise.all(['n1', 'n2', 'n3'].map((member) => memberLog(stage.cluster, member)));
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
    applyAll(machine, shared[0] ?? []);
    expect(machine.view.stateHash).toBe(hash);
    expect(machine.view.assignments.size).toBe(12);
  });
});
