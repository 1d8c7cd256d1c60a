import type { Command, RowResult } from '../command/index.ts';
import type { AssignmentRow, ClusterState } from '../state/index.ts';
import { done, refuse, type Outcome, type Sliced } from './outcome.ts';
import { isServing, rewrite } from './row.ts';

type Of<T extends Command['type']> = Extract<Command, { type: T }>;
type Reported = Of<'report'>['shards'][number];

/** Who is in sync, and that a fenced leader has drained, as the leader of each shard says. */
export function* report(state: ClusterState, command: Of<'report'>): Sliced<Outcome> {
  const refusal = notServing(state, command);
  if (refusal !== null) return refusal;
  const results: RowResult[] = [];
  for (const reported of command.shards) {
    results.push(reportShard(state, command.broker, reported));
    yield;
  }
  return done(results);
}

/** The named leader serves now. */
export function* confirm(state: ClusterState, command: Of<'confirm'>): Sliced<Outcome> {
  const refusal = notServing(state, command);
  if (refusal !== null) return refusal;
  const results: RowResult[] = [];
  for (const { shard, generation } of command.shards) {
    const row = currentRow(state, command.broker, shard, generation);
    if ('leader' in row && row.state === 'assigning') {
      // From here on it acknowledges: not waiting for copies on brokers that are gone, it counts them out.
      const inSync = row.inSync.filter((id) => isServing(state, id));
      rewrite(state, row, { state: 'active', inSync, served: 'leader' });
    }
    results.push('leader' in row ? accepted(shard) : row);
    yield;
  }
  return done(results);
}

/** Only the incarnation registered last speaks for a broker, and none that was declared silent. */
function notServing(
  state: ClusterState,
  { broker, incarnation }: { broker: string; incarnation: number },
): Outcome | null {
  const row = state.brokers.get(broker);
  if (row === undefined || row.imported) {
    return refuse('must_register', `broker ${broker} is not registered`);
  }
  if (row.incarnation !== incarnation) {
    return refuse(
      'stale_incarnation',
      `broker ${broker} is at incarnation ${row.incarnation}, not ${incarnation}`,
    );
  }
  if (row.lifecycle === 'down' || row.lifecycle === 'left') {
    return refuse('must_register', `broker ${broker} is ${row.lifecycle}: register again`);
  }
  return null;
}

function reportShard(state: ClusterState, broker: string, reported: Reported): RowResult {
  const { shard } = reported;
  const row = currentRow(state, broker, shard, reported.generation);
  if (!('leader' in row)) return row;
  const named = new Set(reported.inSync ?? row.inSync);
  const leaderProblem = named.has(broker) ? null : selfReportedOutProblem(row, named);
  if (leaderProblem !== null) return { shard, result: 'stale', detail: leaderProblem };
  const inSync = row.replicas.filter((id) => named.has(id));
  if (inSync.length < named.size) {
    const strays = [...named].filter((id) => !row.replicas.includes(id));
    return { shard, result: 'stale', detail: `${strays.join(', ')} holds no copy of it` };
  }
  const destination = row.move?.to;
  if (reported.drained) {
    if (row.state !== 'draining') return { shard, result: 'stale', detail: 'it is not fenced' };
    if (destination === undefined || !inSync.includes(destination)) {
      return { shard, result: 'stale', detail: `the destination ${String(destination)} is not in sync` };
    }
  }
  const drained = row.drained || reported.drained;
  if (inSync.length === row.inSync.length && inSync.every((id) => row.inSync.includes(id))) {
    // No generation: nothing changed that a conditional write could have missed.
    if (drained !== row.drained) state.putAssignment({ ...row, drained });
    return accepted(shard);
  }
  const arrived =
    destination !== undefined && inSync.includes(destination) && !row.inSync.includes(destination);
  const move = arrived && row.move !== null ? { ...row.move, progressAtMs: state.timeMs } : row.move;
  // A copy has caught up that no move was waiting for: leaderships that could not go there may go now.
  if (inSync.some((id) => id !== destination && !row.inSync.includes(id))) state.beginPhase();
  rewrite(state, row, { inSync, move, drained });
  return accepted(shard);
}

/**
 * Why a leader may not report itself out of sync; `null`: it may. It does so where it opened the shard and found a copy in
 * sync that holds more than its own log: then one of those copies leads, and none may be added that only it vouches for.
 */
function selfReportedOutProblem(row: AssignmentRow, named: ReadonlySet<string>): string | null {
  if (named.size === 0) return 'no copy would be in sync';
  const added = [...named].filter((id) => !row.inSync.includes(id));
  return added.length === 0 ? null : `${added.join(', ')} is not in sync, and its leader reports itself out`;
}

/** The row that a leader may speak of; else the result that says why not. */
function currentRow(
  state: ClusterState,
  broker: string,
  shard: string,
  generation: number,
): AssignmentRow | RowResult {
  const row = state.assignments.get(shard);
  if (row === undefined) return { shard, result: 'unknown_shard', detail: 'it has no assignment' };
  if (row.leader !== broker) return { shard, result: 'not_leader', detail: `${row.leader} leads it` };
  if (row.generation !== generation) {
    return { shard, result: 'stale', detail: `it is at generation ${row.generation}, not ${generation}` };
  }
  // Its store is not the one that was in sync: it leads in name until another copy is promoted.
  if (!row.inSync.includes(broker)) {
    return { shard, result: 'not_leader', detail: `${broker} holds no in-sync copy of it` };
  }
  return row;
}

function accepted(shard: string): RowResult {
  return { shard, result: 'accepted', detail: '' };
}
