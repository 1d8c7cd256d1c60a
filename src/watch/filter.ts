import type { AssignmentRow, Change } from '../state/index.ts';

/** What a watch asks for; `broker` absent: everything. */
export interface WatchFilter {
  readonly broker?: string;
}

/** The kinds of change that broker watches are told of. */
export type WatchedChange = Extract<Change, { kind: 'assignment' | 'removed' | 'broker' | 'brokerRemoved' }>;

/** Whether a row belongs to a filtered watch: the broker holds a copy, a staged or joining one included. */
export function matchesFilter(row: AssignmentRow, filter: WatchFilter): boolean {
  return (
    filter.broker === undefined || row.replicas.includes(filter.broker) || row.move?.to === filter.broker
  );
}

/**
 * The part of one revision's changes that a watch is sent. A row that stops matching is sent once more as it is
 * now, so that whoever watches learns that it lost it. Brokers are always sent: a copy needs the addresses of
 * the others. Needs no memory of the watch: a change carries the row before it.
 */
export function filterChanges(changes: readonly Change[], filter: WatchFilter): WatchedChange[] {
  return changes.filter((change): change is WatchedChange => {
    switch (change.kind) {
      case 'assignment':
        return (
          matchesFilter(change.assignment, filter) ||
          (change.previous !== null && matchesFilter(change.previous, filter))
        );
      case 'removed':
        return matchesFilter(change.previous, filter);
      case 'broker':
      case 'brokerRemoved':
        return true;
      case 'resource':
      case 'resourceRemoved':
      case 'policy':
        return false;
    }
  });
}
