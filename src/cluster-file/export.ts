import { assignmentRow, clusterFile, type Assignment, type ClusterFile } from '../../placement/index.ts';
import { inShardOrder, type StateView } from '../state/index.ts';

/** Rows copied into the file between two steps: about a millisecond. */
const ROWS_PER_STEP = 2_000;

/**
 * The cluster file of the state as it is at the first step: what `export` prints and `import` takes back. `nowMs`: cluster
 * time. Rows are immutable, so they are put in order step by step, whatever is applied meanwhile.
 */
export function* exportCluster(state: StateView, nowMs: number): Generator<void, ClusterFile, void> {
  const taken = [...state.assignments.values()];
  const file = clusterFile({
    timeMs: isTimed(state) ? nowMs : undefined,
    brokers: state.brokers.values(),
    resources: state.resources.values(),
    assignments: [],
    policy: state.policy,
  });
  const assignments: Assignment[] = [];
  for (const row of yield* inShardOrder(taken)) {
    assignments.push(assignmentRow(row));
    if (assignments.length % ROWS_PER_STEP === 0) yield;
  }
  return { ...file, assignments };
}

/** Whether a row carries a time that the planner compares with now. A settled cluster's export stays the same. */
export function isTimed({ brokers, assignments }: StateView): boolean {
  for (const { lifecycle } of brokers.values()) if (lifecycle === 'down' || lifecycle === 'left') return true;
  for (const { move, inSync, replicas } of assignments.values()) {
    if (move !== null || inSync.length < replicas.length) return true;
  }
  return false;
}
