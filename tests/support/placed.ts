import type { DecidedAssignment, Resource } from '../../placement/index.ts';
import { resourceKey, splitShard } from '../../placement/index.ts';
import type { BrokerWorld } from './broker-world.ts';

export function streamOf(name: string, shards: number, replicationFactor = 1): Resource {
  return { kind: 'stream', name, shards, replicationFactor, durable: true, zonePolicy: null, labels: {} };
}

export async function createStream(w: BrokerWorld, name: string, shards: number): Promise<void> {
  await w.write({ type: 'createResource', resource: streamOf(name, shards) });
}

/** Places a shard as a planner would: the first broker leads, all are in sync. */
export async function assign(w: BrokerWorld, shard: string, replicas: readonly string[]): Promise<void> {
  const [leader = ''] = replicas;
  const state = w.quorum.machine.view;
  const resource = state.resources.get(splitShard(shard).resource);
  if (resource === undefined) throw new Error(`no resource of ${shard}`);
  const next: DecidedAssignment = {
    leader,
    replicas,
    inSync: replicas,
    state: 'assigning',
    failedMoves: 0,
    move: null,
  };
  const requires = replicas.map((broker) => ({
    broker,
    incarnation: state.brokers.get(broker)?.incarnation ?? 0,
    allowDraining: false,
  }));
  const { value } = (await w.write({
    type: 'placement',
    rows: [
      {
        step: 'place',
        shard,
        role: 'leader',
        from: null,
        to: leader,
        drops: null,
        reason: 'new',
        copies: false,
        expect: 0,
        requires,
        opensEpoch: true,
        next,
        resourceRevision: resource.createdRevision,
        rule: 'test',
        detail: resourceKey(resource),
      },
    ],
  })) as { value: { result: string; detail: string }[] };
  if (value[0]?.result !== 'accepted') throw new Error(`${shard}: ${value[0]?.detail}`);
}
