import {
  compareShards,
  compareStrings,
  resourceKey,
  type Assignment,
  type Broker,
  type Failure,
  type Move,
  type Moved,
  type Policy,
  type Resource,
} from './model.ts';
import { PhaseMark } from './phase-mark.ts';

/** A whole cluster as one JSON document: every field present, rows and keys in one order (docs/cluster-file.md). */
export interface ClusterFile {
  readonly version: 1;
  /** Cluster time of the export, ms: what the times of its rows are measured against. Absent: 0. */
  readonly timeMs?: number;
  readonly brokers: readonly Broker[];
  readonly resources: readonly Resource[];
  readonly assignments: readonly Assignment[];
  readonly policy: Policy;
  /** That of what has `moved` in its rows. Absent: 0. */
  readonly phase?: number;
  /** The `PhaseMark` of brokers, resources and policy as it was printed. Absent: nothing has moved, or it was written by hand. */
  readonly phaseOf?: string;
}

/**
 * The cluster file of some rows, whatever else the rows carry and in whatever order they come. What has moved is left out
 * where `phaseOf` says that it did among other brokers or resources, or under another policy.
 */
export function clusterFile(rows: {
  readonly brokers: Iterable<Broker>;
  readonly resources: Iterable<Resource>;
  readonly assignments: Iterable<Assignment>;
  readonly policy: Policy;
  readonly timeMs?: number | undefined;
  readonly phase?: number | undefined;
  readonly phaseOf?: string | undefined;
}): ClusterFile {
  const { timeMs, phase = 0, phaseOf } = rows;
  const brokers = [...rows.brokers].sort((a, b) => compareStrings(a.id, b.id)).map(brokerRow);
  const resources = [...rows.resources]
    .sort((a, b) => compareStrings(resourceKey(a), resourceKey(b)))
    .map(resourceRow);
  const policy = policyRow(rows.policy);
  const mark = (): string => {
    const made = new PhaseMark(policy);
    for (const row of [...brokers, ...resources]) made.add(row);
    return made.text;
  };
  const isEdited = phaseOf !== undefined && phaseOf !== mark();
  const assignments = [...rows.assignments]
    .sort((a, b) => compareShards(a.shard, b.shard))
    .map((row) => assignmentRow(row, isEdited ? null : phase));
  return {
    version: 1,
    ...(timeMs === undefined ? {} : { timeMs }),
    brokers,
    resources,
    assignments,
    policy,
    ...(assignments.some(({ moved }) => moved !== undefined) ? { phase, phaseOf: mark() } : {}),
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

/** An assignment with the cluster file's fields and no others. What moved in another phase is left out; `null`: in any. */
export function assignmentRow(row: Assignment, phase: number | null): Assignment {
  const { move, moved } = row;
  return {
    shard: row.shard,
    leader: row.leader,
    replicas: row.replicas,
    inSync: row.inSync,
    generation: row.generation,
    epoch: row.epoch,
    state: row.state,
    failedMoves: row.failedMoves,
    ...(row.failures === undefined ? {} : { failures: row.failures.map(failureRow) }),
    move: move === null ? null : moveRow(move),
    ...(moved !== undefined && moved.phase === phase ? { moved: movedRow(moved) } : {}),
  };
}

export function failureRow({ to, times, atMs }: Failure): Failure {
  return { to, times, atMs };
}

function movedRow({ phase, leader, copies }: Moved): Moved {
  return { phase, leader, copies: copies.map(({ from, to }) => ({ from, to })) };
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
