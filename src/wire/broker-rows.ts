import { assignmentRow, brokerRow, splitShard } from '../../placement/index.ts';
import type { WatchedAssignment, WatchedBroker, WatchedChange } from '../broker-protocol.ts';
import type { AssignmentRow, BrokerRow, StateView } from '../state/index.ts';
import type { WatchedChange as WatchedRowChange } from '../watch/index.ts';

export function watchedBroker(row: BrokerRow): WatchedBroker {
  const { addresses, labels, storeId } = row;
  return { ...brokerRow(row), addresses, labels, storeId };
}

export function watchedAssignment(row: AssignmentRow, state: StateView): WatchedAssignment {
  const resource = state.resources.get(splitShard(row.shard).resource);
  return { ...assignmentRow(row, null), resourceRevision: resource?.createdRevision ?? null };
}

/** One of the changes that brokers watch, as they are told of it. */
export function watchedChange(change: WatchedRowChange, state: StateView): WatchedChange {
  switch (change.kind) {
    case 'assignment':
      return { kind: 'assignment', assignment: watchedAssignment(change.assignment, state) };
    case 'broker':
      return { kind: 'broker', broker: watchedBroker(change.broker) };
    case 'removed':
      return { kind: 'removed', shard: change.shard };
    case 'brokerRemoved':
      return { kind: 'brokerRemoved', id: change.id };
  }
}
