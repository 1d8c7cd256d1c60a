import {
  compareStrings,
  failureRow,
  moveRow,
  policyRow,
  type Moved,
  type Policy,
} from '../../placement/index.ts';
import type { Plain } from './hash.ts';
import type { AssignmentRow, BrokerRow, Decision, ResourceRow } from './types.ts';

/**
 * Rows in their one canonical form: every field, in one order, maps sorted. What is hashed and what a snapshot
 * holds are both these, so a field left out here is a compile error there (`Record` of the row's keys).
 */
type Canonical<Row> = { readonly [K in keyof Row]: Plain };

export function canonicalBroker(row: BrokerRow): Canonical<BrokerRow> {
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
    addresses: sortedMap(row.addresses),
    labels: sortedMap(row.labels),
    storeId: row.storeId,
    starts: row.starts,
    imported: row.imported,
    revision: row.revision,
  };
}

export function canonicalResource(row: ResourceRow): Canonical<ResourceRow> {
  return {
    kind: row.kind,
    name: row.name,
    shards: row.shards,
    replicationFactor: row.replicationFactor,
    durable: row.durable,
    zonePolicy: row.zonePolicy,
    labels: sortedMap(row.labels),
    createdRevision: row.createdRevision,
    revision: row.revision,
  };
}

export function canonicalAssignment(row: AssignmentRow): Canonical<AssignmentRow> {
  return {
    shard: row.shard,
    leader: row.leader,
    replicas: row.replicas,
    inSync: row.inSync,
    generation: row.generation,
    epoch: row.epoch,
    state: row.state,
    failedMoves: row.failedMoves,
    ...(row.failures === undefined
      ? {}
      : { failures: row.failures.map((failure) => ({ ...failureRow(failure) })) }),
    move: row.move === null ? null : { ...moveRow(row.move) },
    ...(row.moved === undefined ? {} : { moved: canonicalMoved(row.moved) }),
    drained: row.drained,
    stagedIncarnation: row.stagedIncarnation,
    served: row.served,
    decision: row.decision === null ? null : canonicalDecision(row.decision),
    revision: row.revision,
  };
}

function canonicalMoved(moved: Moved): Canonical<Moved> {
  return {
    phase: moved.phase,
    leader: moved.leader,
    copies: moved.copies.map(({ from, to }) => ({ from, to })),
  };
}

function canonicalDecision(decision: Decision): Canonical<Decision> {
  return {
    step: decision.step,
    reason: decision.reason,
    rule: decision.rule,
    detail: decision.detail,
    revision: decision.revision,
  };
}

/** As the cluster file has it. */
export function canonicalPolicy(policy: Policy): Canonical<Policy> {
  return policyRow(policy);
}

/** Any plain value with the keys of its maps sorted: answers kept for retries, staged rows. */
export function canonicalValue(value: unknown): Plain {
  if (value === null || value === undefined) return null;
  if (typeof value === 'boolean' || typeof value === 'number' || typeof value === 'string') return value;
  if (Array.isArray(value)) return value.map(canonicalValue);
  if (typeof value === 'object') {
    return Object.fromEntries(
      Object.entries(value)
        .sort(([x], [y]) => compareStrings(x, y))
        .map(([key, item]) => [key, canonicalValue(item)]),
    );
  }
  throw new Error(`a ${typeof value} cannot be part of the replicated state`);
}

function sortedMap(map: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(map).sort(([x], [y]) => compareStrings(x, y)));
}
