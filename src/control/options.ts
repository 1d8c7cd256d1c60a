import type { Clock } from '../../raft/index.ts';
import type { ControlPlane } from '../control-plane.ts';
import type { ControlLog } from './log.ts';
import type { PlannerHost } from './planner-host.ts';
import type { BrokerTimings } from './timings.ts';

export interface ControlOptions {
  readonly plane: ControlPlane;
  readonly clock: Clock;
  readonly timings: BrokerTimings;
  readonly planner: PlannerHost;
  readonly log: ControlLog;
}
