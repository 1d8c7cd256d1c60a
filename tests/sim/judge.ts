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
  const verdict = checkLinearizable(withoutUnseen(records), registerModel);
  return verdict.ok ? null : verdict.report;
}

/**
 * Leaves out writes whose outcome nobody knows and whose value, which is unique, nobody ever saw: to say that they never
 * took effect is always allowed, and spares the search a choice at every step. Where a compare-and-set failed, one of
 * them may be why; there all stay.
 */
function withoutUnseen(records: readonly SimOperationRecord[]): SimOperationRecord[] {
  const seen = new Set<string>();
  const failed = new Set<string>();
  for (const { key, input, returned } of records) {
    if (input.type === 'cas') seen.add(input.from);
    if (returned?.output.type === 'read' && returned.output.value !== null) seen.add(returned.output.value);
    if (returned?.output.type === 'cas' && !returned.output.swapped) failed.add(key);
  }
  return records.filter(({ key, input, returned }) => {
    if (returned !== null || input.type === 'read' || failed.has(key)) return true;
    return seen.has(input.type === 'write' ? input.value : input.to);
  });
}

export function play(plan: SimPlan, kit: SimKit): Promise<SimResult> {
  return runPlan(plan, { kit, judge });
}
