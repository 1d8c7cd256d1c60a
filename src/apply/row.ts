import type { Assignment } from '../../placement/index.ts';
import { inShardOrder, type AssignmentRow, type ClusterState, type Served } from '../state/index.ts';
import type { Sliced } from './outcome.ts';

/** Rows found, or put in order, in the time that writing one takes. */
const FINDS_PER_WRITE = 10;

/** Part of a row that a registration, a lifecycle change, a report or a confirm replaces. */
export type RowPatch = Partial<
  Pick<AssignmentRow, 'inSync' | 'state' | 'move' | 'drained' | 'stagedIncarnation' | 'served'>
>;

/** Writes a changed row: one more generation, and a new epoch where who may serve changes. */
export function rewrite(
  state: ClusterState,
  row: AssignmentRow,
  patch: RowPatch,
  options: { readonly opensEpoch: boolean } = { opensEpoch: false },
): void {
  const generation = row.generation + 1;
  const { drained, ...rest } = { ...row, ...patch };
  const next = { ...rest, generation, epoch: options.opensEpoch ? generation : row.epoch };
  state.putAssignment({ ...next, drained: drained && keepsDrained(row, next) });
}

/** Whether what the fenced leader said still holds: the fence is the same and its destination in sync. */
export function keepsDrained(row: Assignment, next: Assignment): boolean {
  return (
    row.state === 'draining' &&
    next.state === 'draining' &&
    next.epoch === row.epoch &&
    next.move !== null &&
    next.move.to === row.move?.to &&
    next.inSync.includes(next.move.to)
  );
}

/** The rows that name a broker, by shard: as a copy, a move's destination included. */
export function* rowsOn(state: ClusterState, broker: string): Sliced<AssignmentRow[]> {
  const found: AssignmentRow[] = [];
  for (const shard of state.shardsOn(broker)) {
    const row = state.assignments.get(shard);
    if (row === undefined) throw new Error(`${shard} is counted for ${broker} and has no row`);
    found.push(row);
    if (found.length % FINDS_PER_WRITE === 0) yield;
  }
  return yield* inShardOrder(found, FINDS_PER_WRITE);
}

/** Another process is named leader: it has not served the shard. */
export function servedBefore({ served }: AssignmentRow): Served {
  return served === 'never' ? 'never' : 'before';
}

/** By its lifecycle. */
export function isServing(state: ClusterState, broker: string): boolean {
  const lifecycle = state.brokers.get(broker)?.lifecycle;
  return lifecycle === 'live' || lifecycle === 'draining';
}

export function without(brokers: readonly string[], broker: string): readonly string[] {
  return brokers.filter((id) => id !== broker);
}
