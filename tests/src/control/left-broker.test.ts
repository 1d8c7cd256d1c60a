import { expect, it } from 'vitest';
import { plan } from '../../../placement/index.ts';
import { BrokerWorld } from '../../support/broker-world.ts';
import { resource } from '../apply/harness.ts';

it('a follower’s copy on a broker that left is made elsewhere once its lease is over, though nothing else happens', async () => {
  const w = new BrokerWorld({ plan });
  for (const id of ['n1', 'n2', 'n3']) await w.node(id);
  w.quorum.elect('n1');
  const brokers = new Map(['b1', 'b2', 'b3'].map((id) => [id, w.broker(id)]));
  await w.write({ type: 'createResource', resource: resource('s') });
  const row = () => w.quorum.machine.view.assignments.get('stream:s/0');
  await w.until('two are in sync', () => row()?.state === 'active' && row()?.inSync.length === 2);
  const follower = row()?.replicas.find((id) => id !== row()?.leader) ?? '';
  await w.settled(brokers.get(follower)?.broker.leave({ drain: false }) ?? Promise.resolve());
  const leftAtMs = w.world.nowMs;
  await w.until('a copy is made elsewhere', () => row()?.move?.from === follower, 10_000);
  expect(w.world.nowMs - leftAtMs).toBeGreaterThan(6_000);
});
