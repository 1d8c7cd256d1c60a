import {
  DEFAULT_POLICY,
  type Assignment,
  type Broker,
  type ClusterFile,
  type Policy,
  type Reports,
  type Resource,
  type Snapshot,
} from '../../../placement/index.ts';

/** Rows with the defaults of a cluster file, for tests that name only what they are about. */

export function broker(id: string, fields: Partial<Broker> = {}): Broker {
  return {
    id,
    zone: null,
    lifecycle: 'live',
    drain: false,
    maxShards: null,
    weight: 1,
    incarnation: 1,
    registeredAtMs: 0,
    downSinceMs: null,
    ...fields,
  };
}

export function brokers(...ids: readonly string[]): Broker[] {
  return ids.map((id) => broker(id));
}

export function resource(name: string, shards: number, fields: Partial<Resource> = {}): Resource {
  return {
    kind: 'stream',
    name,
    shards,
    replicationFactor: 1,
    durable: true,
    zonePolicy: null,
    labels: {},
    ...fields,
  };
}

/** A settled shard: its first copy leads, all are in sync. */
export function assignment(
  shard: string,
  replicas: readonly string[],
  fields: Partial<Assignment> = {},
): Assignment {
  return {
    shard,
    leader: replicas[0] ?? '',
    replicas,
    inSync: replicas,
    generation: 1,
    epoch: 1,
    state: 'active',
    failedMoves: 0,
    move: null,
    ...fields,
  };
}

export function policy(fields: Partial<Policy> = {}): Policy {
  return { ...DEFAULT_POLICY, ...fields };
}

export function snapshot(fields: Partial<Omit<Snapshot, 'policy'>> & { policy?: Partial<Policy> }): Snapshot {
  return {
    nowMs: 0,
    brokers: [],
    resources: [],
    assignments: [],
    firstRegisteredAtMs: -1_000_000,
    phase: 0,
    ...fields,
    policy: policy(fields.policy),
  };
}

export function clusterOf(
  fields: Partial<Omit<ClusterFile, 'policy'>> & { policy?: Partial<Policy> },
): ClusterFile {
  return {
    version: 1,
    brokers: [],
    resources: [],
    assignments: [],
    ...fields,
    policy: policy(fields.policy),
  };
}

export const NO_REPORTS: Reports = {
  shards: new Map(),
  leasedUntilMs: new Map(),
  unheard: new Set(),
  unconfirmed: new Map(),
};
