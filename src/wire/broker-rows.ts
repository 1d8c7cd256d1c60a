import { splitShard } from '../../placement/index.ts';
import type { WatchedAssignment, WatchedBroker, WatchedChange } from '../broker-protocol.ts';
import type { AssignmentRow, BrokerRow, Change, StateView } from '../state/index.ts';
import { assignmentFields, brokerFields } from './rpc-rows.ts';

export function watchedBroker(row: BrokerRow): WatchedBroker {
  const { addresses, labels, storeId } = row;
  return { ...brokerFields(row), addresses, labels, storeId };
}

export function watchedAssignment(row: AssignmentRow, state: StateView): WatchedAssignment {
  const resource = state.resources.get(splitShard(row.shard).resource);
  return { ...assignmentFields(row), resourceRevision: resource?.createdRevision ?? null };
}

/** `null`: brokers do not watch that kind of change. */
export function watchedChange(change: Change, state: StateView): WatchedChange | null {
  switch (change.kind) {
    case 'assignment':
      return { kind: 'assignment', assignment: watchedAssignment(change.assignment, state) };
    case 'broker':
      return { kind: 'broker', broker: watchedBroker(change.broker) };
    case 'removed':
    case 'brokerRemoved':
      return change;
    case 'resource':
    case 'resourceRemoved':
    case 'policy':
      return null;
  }
}

/** Whether the assignment names the broker: as a copy, or at either end of its move. */
export function names(row: AssignmentRow, broker: string): boolean {
  return row.replicas.includes(broker) || row.move?.to === broker || row.move?.from === broker;
}
