export { Control } from './control.ts';
export type { ControlLog } from './log.ts';
export type { PlacementStatus } from './operator-service.ts';
export type { ControlOptions } from './options.ts';
export type { LastPlan, PassStats } from './passes.ts';
export type { PlanSummary } from './plan-summary.ts';
export {
  InlinePlanner,
  type OpenPlan,
  type PlanFunction,
  type PlanInput,
  type PlannerHost,
} from './planner-host.ts';
export { checkTimings, DEFAULT_BROKER_TIMINGS, type BrokerTimings } from './timings.ts';
export { WorkerPlanner, type WorkerPlannerOptions } from './worker-planner.ts';
