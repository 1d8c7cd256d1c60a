import {
  assignmentRow,
  clusterFile,
  PhaseMark,
  type Assignment,
  type ClusterFile,
} from '../../placement/index.ts';
import { inShardOrder, type AssignmentRow, type BrokerRow, type StateView } from '../state/index.ts';

/** Rows copied into the file between two steps: about a millisecond. */
const ROWS_PER_STEP = 2_000;

/**
 * The cluster file of the state as it is at the first step: what `export` prints and `import` takes back. `nowMs`: cluster
 * time. Rows are immutable, so they are put in order step by step, whatever is applied meanwhile.
 */
export function* exportCluster(state: StateView, nowMs: number): Generator<void, ClusterFile, void> {
  const taken = state.assignments.list();
  const { phase } = state;
  const rows = {
    brokers: [...state.brokers.values()],
    resources: [...state.resources.values()],
    assignments: [],
    policy: state.policy,
  };
  const timed = rows.brokers.some(isSilent) || (yield* hasTimed(taken));
  const file = clusterFile({ timeMs: timed ? nowMs : undefined, ...rows });
  const assignments: Assignment[] = [];
  let hasMoved = false;
  for (const row of yield* inShardOrder(taken)) {
    const assignment = assignmentRow(row, phase);
    hasMoved ||= assignment.moved !== undefined;
    assignments.push(assignment);
    if (assignments.length % ROWS_PER_STEP === 0) yield;
  }
  return { ...file, assignments, ...(hasMoved ? { phase, phaseOf: yield* phaseOf(file) } : {}) };
}

function* phaseOf({ brokers, resources, policy }: ClusterFile): Generator<void, string, void> {
  const mark = new PhaseMark(policy);
  for (const [i, row] of [...brokers, ...resources].entries()) {
    mark.add(row);
    if (i % ROWS_PER_STEP === ROWS_PER_STEP - 1) yield;
  }
  return mark.text;
}

/** A broker whose row carries a time that the planner compares with now. A settled cluster's export stays the same. */
function isSilent({ lifecycle }: BrokerRow): boolean {
  return lifecycle === 'down' || lifecycle === 'left';
}

/** Whether one of these does. */
function* hasTimed(rows: readonly AssignmentRow[]): Generator<void, boolean, void> {
  for (const [i, { move, failures, inSync, replicas }] of rows.entries()) {
    if (move !== null || failures !== undefined || inSync.length < replicas.length) return true;
    if (i % ROWS_PER_STEP === ROWS_PER_STEP - 1) yield;
  }
  return false;
}
