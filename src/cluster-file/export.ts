import { clusterFile, type ClusterFile } from '../../placement/index.ts';
import type { StateView } from '../state/index.ts';

/** The cluster file of the state as it is: what `export` prints and `import` takes back. */
export function exportCluster(state: StateView): ClusterFile {
  return clusterFile({
    brokers: state.brokers.values(),
    resources: state.resources.values(),
    assignments: state.assignments.values(),
    policy: state.policy,
  });
}
