import { describe, expect, it } from 'vitest';
import { DEFAULT_POLICY, plan } from '../../../placement/index.ts';
import { BrokerWorld } from '../../support/broker-world.ts';
import { assignmentRow, brokerRow, importOf, resource, staged } from '../apply/harness.ts';

const DAY_MS = 86_400_000;

describe.each([
  ['an older', 30 * DAY_MS, 60_000],
  ['a younger', 60_000, 30 * DAY_MS],
])('after an import of the file of %s cluster', (_which, fileMs, ownMs) => {
  /** Two brokers that hold all, one that is down, one that never comes though a move goes to it. */
  async function imported() {
    const w = new BrokerWorld({ plan });
    for (const id of ['n1', 'n2', 'n3']) await w.node(id);
    w.quorum.write({ type: 'openSession' }, { deadlineMs: 1 }, ownMs);
    w.quorum.elect('n1');
    const at = { registeredAtMs: fileMs - 5_000 };
    const brokers = [
      brokerRow('b1', at),
      brokerRow('b2', at),
      brokerRow('b3', { ...at, lifecycle: 'down', downSinceMs: fileMs - 1_000 }),
      brokerRow('b4', at),
    ];
    const move = { ...staged(), role: 'follower', step: 'joining', from: null, to: 'b4' } as const;
    const times = { startedAtMs: fileMs - 1_000, progressAtMs: fileMs - 1_000 };
    const assignments = [
      assignmentRow('stream:s/0', ['b1', 'b2']),
      assignmentRow('stream:s/1', ['b1', 'b2', 'b4'], {
        inSync: ['b1', 'b2'],
        move: { ...move, ...times, copied: true },
      }),
      assignmentRow('stream:s/2', ['b2', 'b3'], { inSync: ['b2'] }),
    ];
    const rows = { brokers, resources: [resource('s', { shards: 3 })], assignments };
    const policy = { ...DEFAULT_POLICY, restoreAfterMs: 20_000, moveStallMs: 15_000 };
    for (const command of importOf(rows, { policy, timeMs: fileMs })) await w.write(command);
    return w;
  }

  it('cluster time goes on, and with it leases of brokers that left, stalls and restores', async () => {
    const w = await imported();
    const row = (n: number) => w.quorum.machine.view.assignments.get(`stream:s/${n}`);
    const beganMs = w.world.nowMs;
    const began = w.quorum.clusterTimeMs();
    const b1 = w.broker('b1');
    w.broker('b2');
    await w.until('b1 serves', () => b1.broker.serving.includes('stream:s/0'));
    expect(w.quorum.clusterTimeMs() - began).toBe(Math.floor(w.world.nowMs - beganMs));
    await w.until('the stalled move ends', () => row(1)?.move === null, 30_000);
    await w.until('b3’s copy is made elsewhere', () => row(2)?.replicas.join() !== 'b2,b3', 30_000);
    await w.settled(b1.broker.leave({ drain: false }));
    await w.until('what b1 led is led by another', () => row(0)?.leader === 'b2', 20_000);
  });
});
