export * from './model.ts';
export * from './plan-types.ts';
export * from './slots.ts';
export { isNearEnough } from './fence.ts';
export { PAUSED } from './explain.ts';
export { failureCounts, MAX_FAILURES, MOST_TRIES } from './failures.ts';
export * from './write.ts';
export {
  assignmentRow,
  brokerRow,
  clusterFile,
  failureRow,
  moveRow,
  policyRow,
  resourceRow,
  type ClusterFile,
} from './cluster-file.ts';
export { PhaseMark } from './phase-mark.ts';
export { EventRefused, type MoveRequest, type Operator, type SimAction } from './events.ts';
export type { FinishedMove } from './sim-cluster.ts';
export {
  DEFAULT_MAX_PASSES,
  planFile,
  simulate,
  type Phase,
  type Planner,
  type SimEvent,
  type SimStep,
  type SimulateOptions,
  type Simulation,
} from './simulate.ts';
export { plan, planAndFollow } from './plan.ts';
export type { QuietCluster } from './quiet.ts';
export { NO_CAP } from './broker-table.ts';
export { shares, type Shares } from './share.ts';
export { explainShard, type Explanation } from './explain.ts';
export { abandonRefusal, operator, operatorCancel, operatorMove, type OperatorAnswer } from './operator.ts';
