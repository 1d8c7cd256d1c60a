import { refusalOf, writeStep, type Assignment } from '../../placement/index.ts';
import {
  MAX_DETAIL_CHARS,
  MAX_PLACED_STATE_BYTES,
  notAShard,
  parseShard,
  type Command,
  type PlacementRow,
  type RowResult,
} from '../command/index.ts';
import type { AssignmentRow, ClusterState, Decision, Served } from '../state/index.ts';
import { done, type Outcome, type Sliced } from './outcome.ts';
import { resourceOf } from './resource.ts';
import { keepsDrained, servedBefore } from './row.ts';

/** The rule of a move that an operator starts, or cancels. */
const BY_HAND = 'operator';

/** Decided rows, in order: each is written as it is, or refused and answered; none is altered. */
export function* placement(
  state: ClusterState,
  command: Extract<Command, { type: 'placement' }>,
): Sliced<Outcome> {
  const results: RowResult[] = [];
  for (const row of command.rows) {
    results.push(writeRow(state, row));
    yield;
  }
  return done(results);
}

function writeRow(state: ClusterState, row: PlacementRow): RowResult {
  const { shard } = row;
  if (parseShard(shard) === null) return { shard, result: 'invalid_argument', detail: notAShard(shard) };
  const resource = resourceOf(state, shard);
  if (resource === undefined)
    return { shard, result: 'not_found', detail: `${shard} is no shard of a resource` };
  if (resource.createdRevision !== row.resourceRevision) {
    const detail = `${shard}: its resource was created at ${resource.createdRevision}, the row was decided for ${row.resourceRevision}`;
    return { shard, result: 'stale', detail };
  }
  const current = state.assignments.get(shard);
  const refusal = refusalOf(current, row, {
    broker: (id) => state.brokers.get(id),
    copies: (id) => state.copies.get(id) ?? 0,
    slots: state.slots,
    policy: state.policy,
    durable: resource.durable,
    stagedIncarnation: current?.stagedIncarnation ?? null,
  });
  if (refusal !== null) return { shard, result: refusal.code, detail: refusal.detail };
  if (current === undefined && state.bytes > MAX_PLACED_STATE_BYTES) {
    const detail = `the state has ${state.bytes} bytes, too many for another shard: delete resources first`;
    return { shard, result: 'limit_exceeded', detail };
  }
  // What is asked for by hand comes from outside: what moved before is free to make up for it.
  if (row.rule === BY_HAND) state.beginPhase();
  const next = writeStep(current, row, state);
  state.putAssignment({
    ...next,
    drained: current !== undefined && current.drained && keepsDrained(current, next),
    stagedIncarnation: stagedIncarnation(state, current, next),
    served: servedAfter(current, next),
    decision: decisionOf(state, current, row),
  });
  return { shard, result: 'accepted', detail: '' };
}

function stagedIncarnation(
  state: ClusterState,
  current: AssignmentRow | undefined,
  next: Assignment,
): number | null {
  if (next.move === null) return null;
  if (current?.move?.to === next.move.to) return current.stagedIncarnation;
  return state.brokers.get(next.move.to)?.incarnation ?? null;
}

function servedAfter(current: AssignmentRow | undefined, next: Assignment): Served {
  if (current === undefined) return 'never';
  return next.leader === current.leader ? current.served : servedBefore(current);
}

/** The steps that carry a move out keep the decision that started it. */
function decisionOf(
  state: ClusterState,
  current: AssignmentRow | undefined,
  row: PlacementRow,
): Decision | null {
  if (['fence', 'cutOver', 'seat', 'drop', 'abandon'].includes(row.step)) return current?.decision ?? null;
  return {
    step: row.step,
    reason: row.reason,
    rule: row.rule,
    detail: cut(row.detail),
    revision: state.appliedIndex,
  };
}

/** Never between the halves of a surrogate pair: a lone half does not survive an encoding. */
function cut(detail: string): string {
  if (detail.length <= MAX_DETAIL_CHARS) return detail;
  const last = detail.charCodeAt(MAX_DETAIL_CHARS - 1);
  return detail.slice(0, last >= 0xd800 && last <= 0xdbff ? MAX_DETAIL_CHARS - 1 : MAX_DETAIL_CHARS);
}
