import type { Entry, StateMachine } from '../../raft/index.ts';

/** Applies entries to their end, turn by turn as a node does; answers their results. */
export function applyAll<Result>(
  machine: Omit<StateMachine, 'apply'> & { apply(entries: readonly Entry[]): Result[] },
  entries: readonly Entry[],
): Result[] {
  const results: Result[] = [];
  while (results.length < entries.length) results.push(...machine.apply(entries.slice(results.length)));
  return results;
}
