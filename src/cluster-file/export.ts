import { clusterFile, type ClusterFile } from '../../placement/index.ts';
import type { StateView } from '../state/index.ts';

/** The cluster file of the state as it is: what `export` prints and `import` takes back. `nowMs`: cluster time. */
export function exportCluster(state: StateView, nowMs: number): ClusterFile {
  return clusterFile({
    timeMs: isTimed(state) ? nowMs : undefined,
    brokers: state.brokers.values(),
    resources: state.resources.values(),
    assignments: state.assignments.values(),
    policy: state.policy,
  });
}

/** Whether a row carries a time that the planner compares with now. A settled cluster's export stays the same. */
export function isTimed({ brokers, assignments }: StateView): boolean {
  for (const { lifecycle } of brokers.values()) if (lifecycle === 'down' || lifecycle === 'left') return true;
  for (const { move, inSync, replicas } of assignments.values()) {
    if (move !== null || inSync.length < replicas.length) return true;
  }
  return false;
}
