import {
  compareShards,
  compareStrings,
  resourceKey,
  type Assignment,
  type Broker,
  type Move,
  type Policy,
  type Resource,
} from './model.ts';

/** A whole cluster as one JSON document: every field present, rows and keys in one order (docs/cluster-file.md). */
export interface ClusterFile {
  readonly version: 1;
  /** Cluster time of the export, ms: what the times of its rows are measured against. Absent: 0. */
  readonly timeMs?: number;
  readonly brokers: readonly Broker[];
  readonly resources: readonly Resource[];
  readonly assignments: readonly Assignment[];
  readonly policy: Policy;
}

/** The cluster file of some rows, whatever else the rows carry and in whatever order they come. */
export function clusterFile(rows: {
  readonly brokers: Iterable<Broker>;
  readonly resources: Iterable<Resource>;
  readonly assignments: Iterable<Assignment>;
  readonly policy: Policy;
  readonly timeMs?: number | undefined;
}): ClusterFile {
  return {
    version: 1,
    ...(rows.timeMs === undefined ? {} : { timeMs: rows.timeMs }),
    brokers: [...rows.brokers].sort((a, b) => compareStrings(a.id, b.id)).map(brokerRow),
    resources: [...rows.resources]
      .sort((a, b) => compareStrings(resourceKey(a), resourceKey(b)))
      .map(resourceRow),
    assignments: [...rows.assignments].sort((a, b) => compareShards(a.shard, b.shard)).map(assignmentRow),
    policy: policyRow(rows.policy),
  };
}

export function brokerRow(row: Broker): Broker {
  return {
    id: row.id,
    zone: row.zone,
    lifecycle: row.lifecycle,
    drain: row.drain,
    maxShards: row.maxShards,
    weight: row.weight,
    incarnation: row.incarnation,
    registeredAtMs: row.registeredAtMs,
    downSinceMs: row.downSinceMs,
  };
}

export function resourceRow(row: Resource): Resource {
  return {
    kind: row.kind,
    name: row.name,
    shards: row.shards,
    replicationFactor: row.replicationFactor,
    durable: row.durable,
    zonePolicy: row.zonePolicy,
    labels: Object.fromEntries(Object.entries(row.labels).sort(([a], [b]) => compareStrings(a, b))),
  };
}

/** An assignment with the cluster file's fields and no others. */
export function assignmentRow(row: Assignment): Assignment {
  const { move } = row;
  return {
    shard: row.shard,
    leader: row.leader,
    replicas: row.replicas,
    inSync: row.inSync,
    generation: row.generation,
    epoch: row.epoch,
    state: row.state,
    failedMoves: row.failedMoves,
    move: move === null ? null : moveRow(move),
  };
}

export function moveRow(move: Move): Move {
  return {
    role: move.role,
    from: move.from,
    to: move.to,
    step: move.step,
    reason: move.reason,
    copied: move.copied,
    drops: move.drops,
    startedAtMs: move.startedAtMs,
    progressAtMs: move.progressAtMs,
  };
}

export function policyRow(policy: Policy): Policy {
  return {
    maxConcurrentMoves: policy.maxConcurrentMoves,
    maxMovesPerBroker: policy.maxMovesPerBroker,
    maxConcurrentHandovers: policy.maxConcurrentHandovers,
    paused: policy.paused,
    zonePolicy: policy.zonePolicy,
    restoreAfterMs: policy.restoreAfterMs,
    moveTimeoutMs: policy.moveTimeoutMs,
    moveStallMs: policy.moveStallMs,
    fenceTimeoutMs: policy.fenceTimeoutMs,
    fenceMaxLagRecords: policy.fenceMaxLagRecords,
    settleMs: policy.settleMs,
    passIntervalMs: policy.passIntervalMs,
  };
}
