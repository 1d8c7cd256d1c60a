import type { StateMachine } from '../../raft/index.ts';
import { decodeCommand, type Command, type RowResult } from '../command/index.ts';
import type { CommandResult, StateView } from '../state/index.ts';

/** What a command names of one shard: the generation that its row must have for it to be written. */
interface Condition {
  readonly shard: string;
  readonly generation: number;
}

/**
 * Around a state machine: what names a shard's generation takes effect at exactly that one, whatever the machine's own
 * checks make of it (contract, section 1, "generation"). A breach is handed to `fail`.
 */
export function checkConditions(
  machine: StateMachine,
  view: StateView,
  fail: (error: Error) => void,
): StateMachine {
  return {
    apply(entries) {
      const results: unknown[] = [];
      for (const entry of entries) {
        const conditions = entry.kind === 'command' ? conditionsOf(decodeCommand(entry.data).command) : [];
        // While an entry is applied in part, readers still see the state before it.
        const before = conditions.map(({ shard }) => view.assignments.get(shard)?.generation ?? 0);
        const finished = machine.apply([entry]);
        if (finished.length === 0) return results;
        const breach = breachOf(conditions, before, finished[0] as CommandResult | null);
        if (breach !== null) fail(new Error(`unsafe: entry ${entry.index} ${breach}`));
        results.push(finished[0]);
      }
      return results;
    },
    get isPartWay() {
      return machine.isPartWay ?? false;
    },
    snapshot: () => machine.snapshot(),
    snapshotParts: () => machine.snapshotParts?.() ?? [machine.snapshot()].values(),
    restore: (data, index) => machine.restore(data, index),
    *restoreInSteps(data, index) {
      const steps = machine.restoreInSteps?.(data, index);
      if (steps === undefined) machine.restore(data, index);
      else while (steps.next().done !== true) yield;
    },
  };
}

function conditionsOf(command: Command): Condition[] {
  if (command.type === 'placement') {
    return command.rows.map(({ shard, expect }) => ({ shard, generation: expect }));
  }
  if (command.type !== 'report' && command.type !== 'confirm') return [];
  return command.shards.map(({ shard, generation }) => ({ shard, generation }));
}

function breachOf(
  conditions: readonly Condition[],
  before: readonly number[],
  result: CommandResult | null,
): string | null {
  if (conditions.length === 0 || result?.ok !== true) return null;
  const written = new Set<string>();
  for (const [i, { shard, generation }] of conditions.entries()) {
    const row = (result.value as readonly RowResult[])[i];
    // A second row of one shard in one command counts on the first.
    if (row?.result !== 'accepted' || written.has(shard)) continue;
    written.add(shard);
    if (generation !== before[i])
      return `is taken for ${shard} at generation ${before[i]}, it names ${generation}`;
  }
  return null;
}
