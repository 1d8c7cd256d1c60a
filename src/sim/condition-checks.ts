import type { Entry, StateMachine } from '../../raft/index.ts';
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
  const applyOne = (entry: Entry): unknown => {
    const conditions = entry.kind === 'command' ? conditionsOf(decodeCommand(entry.data).command) : [];
    const before = conditions.map(({ shard }) => view.assignments.get(shard)?.generation ?? 0);
    const [result] = machine.apply([entry]);
    const breach = breachOf(conditions, before, result as CommandResult | null);
    if (breach !== null) fail(new Error(`unsafe: entry ${entry.index} ${breach}`));
    return result;
  };
  return {
    apply: (entries) => entries.map(applyOne),
    snapshot: () => machine.snapshot(),
    ...(machine.snapshotParts === undefined
      ? {}
      : { snapshotParts: () => machine.snapshotParts?.() ?? [].values() }),
    restore: (data, index) => machine.restore(data, index),
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
