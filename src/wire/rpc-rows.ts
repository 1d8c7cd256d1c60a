import type { Assignment, Broker, Resource } from '../../placement/index.ts';
import type { AssignmentRow, BrokerRow, ResourceRow } from '../state/index.ts';

/** An assignment with the cluster file's fields and no others. */
export function assignmentFields(row: AssignmentRow): Assignment {
  const { shard, leader, replicas, inSync, generation, epoch, state, failedMoves, move } = row;
  return { shard, leader, replicas, inSync, generation, epoch, state, failedMoves, move };
}

/** A broker with the cluster file's fields and no others. */
export function brokerFields(row: BrokerRow): Broker {
  const { id, zone, lifecycle, drain, maxShards, weight, incarnation, registeredAtMs, downSinceMs } = row;
  return { id, zone, lifecycle, drain, maxShards, weight, incarnation, registeredAtMs, downSinceMs };
}

/** A resource with the cluster file's fields and no others. */
export function resourceFields(row: ResourceRow): Resource {
  const { kind, name, shards, replicationFactor, durable, zonePolicy, labels } = row;
  return { kind, name, shards, replicationFactor, durable, zonePolicy, labels };
}
