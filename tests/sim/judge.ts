import {
  runPlan,
  type SimKit,
  type SimOperationRecord,
  type SimPlan,
  type SimResult,
} from '../../src/sim/index.ts';
import { checkLinearizable } from '../support/linearizability.ts';
import { registerModel } from '../support/register.ts';

/**
 * What is wrong with a history of registers; `null`: it is linearizable. To say that a write of unknown outcome never
 * took effect is always allowed, and spares the search a choice at every step: the history without those whose value
 * nobody ever saw is tried first, and only where it fails, by a compare-and-set that one of them made fail, the whole.
 */
export function judge(records: readonly SimOperationRecord[]): string | null {
  if (checkLinearizable(withoutUnseen(records), registerModel).ok) return null;
  const verdict = checkLinearizable(records, registerModel);
  return verdict.ok ? null : verdict.report;
}

/** Leaves out writes whose outcome nobody knows and whose value, which is unique, nobody ever saw. */
function withoutUnseen(records: readonly SimOperationRecord[]): SimOperationRecord[] {
  const seen = new Set<string>();
  for (const { input, returned } of records) {
    if (input.type === 'cas') seen.add(input.from);
    if (returned?.output.type === 'read' && returned.output.value !== null) seen.add(returned.output.value);
  }
  return records.filter(({ input, returned }) => {
    if (returned !== null || input.type === 'read') return true;
    return seen.has(input.type === 'write' ? input.value : input.to);
  });
}

export function play(plan: SimPlan, kit: SimKit): Promise<SimResult> {
  return runPlan(plan, { kit, judge });
}
