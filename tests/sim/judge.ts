import {
  runPlan,
  type SimKit,
  type SimOperationRecord,
  type SimPlan,
  type SimResult,
} from '../../src/sim/index.ts';
import { checkLinearizable } from '../support/linearizability.ts';
import { registerModel } from '../support/register.ts';

/** What is wrong with a history of registers; `null`: it is linearizable. */
export function judge(records: readonly SimOperationRecord[]): string | null {
  const verdict = checkLinearizable(records, registerModel);
  return verdict.ok ? null : verdict.report;
}

export function play(plan: SimPlan, kit: SimKit): Promise<SimResult> {
  return runPlan(plan, { kit, judge });
}
