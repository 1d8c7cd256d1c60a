import { MAX_BROKERS, MAX_COUNTER, MAX_STORE_ID_BYTES, type Command } from '../command/index.ts';
import { storeOf, type AssignmentRow, type BrokerRow, type ClusterState } from '../state/index.ts';
import { bytesOf, growthProblem } from './growth.ts';
import { done, refuse, someOf, type Outcome, type Sliced } from './outcome.ts';
import { isServing, rewrite, rowsOn, servedBefore, without, type RowPatch } from './row.ts';

type Of<T extends Command['type']> = Extract<Command, { type: T }>;

/** A registration that is no resume: a new incarnation (contract, "Registering"). */
export function* registerBroker(state: ClusterState, { broker }: Of<'registerBroker'>): Sliced<Outcome> {
  const before = state.brokers.get(broker.id);
  if (before === undefined && state.brokers.size >= MAX_BROKERS) {
    return refuse(
      'limit_exceeded',
      `the cluster has ${MAX_BROKERS} brokers, its limit: remove those that are gone with \`evenkeel broker remove --down\`, then register again`,
    );
  }
  const incarnation = (before?.incarnation ?? state.header.incarnationFloor) + 1;
  if (incarnation > MAX_COUNTER) {
    return refuse(
      'limit_exceeded',
      `broker ${broker.id}: its incarnation would pass ${MAX_COUNTER}: move the cluster to a new one by export and import`,
    );
  }
  const longer = before?.imported === true ? 0 : settingsBytes(broker) - settingsBytes(before);
  const full = growthProblem(state, `broker ${broker.id}`, longer);
  if (full !== null) return full;
  const drain = before?.drain ?? false;
  const store = storeOf(before, broker);
  const row: Omit<BrokerRow, 'revision'> = {
    ...broker,
    ...(store === 'went_back' ? { storeId: null, starts: null } : {}),
    lifecycle: drain ? 'draining' : 'live',
    drain,
    incarnation,
    registeredAtMs: state.timeMs,
    downSinceMs: null,
    imported: false,
  };
  state.putBroker(row);
  state.noteRegistration(state.timeMs);
  if (before !== undefined) {
    if (before.imported || store === 'same') {
      yield* comeBack(state, broker.id, { incarnation, first: before.imported });
    } else yield* startEmpty(state, broker.id, incarnation);
  }
  return done({ incarnation, lifecycle: row.lifecycle });
}

/** What a registration may make longer. A broker that comes back as it was is never refused, however full the state is. */
function settingsBytes(broker: Settings | undefined): number {
  if (broker === undefined) return 0;
  const { addresses, labels, zone, storeId } = broker;
  return bytesOf([addresses, labels, zone, storeId]) + (storeId === null ? MAX_STORE_ID_BYTES : 0);
}

type Settings = Pick<BrokerRow, 'addresses' | 'labels' | 'zone' | 'storeId'>;

/** The same store: the marks stay, and what it leads is opened anew, a fence of the old process undone. */
function* comeBack(
  state: ClusterState,
  broker: string,
  { incarnation, first }: { incarnation: number; first: boolean },
): Sliced<void> {
  for (const row of yield* rowsOn(state, broker)) {
    if (row.leader === broker) {
      const move = row.move?.step === 'fenced' ? { ...row.move, step: 'staged' as const } : row.move;
      const served = servedBefore(row);
      rewrite(state, row, { state: 'assigning', move, drained: false, served }, { opensEpoch: true });
    } else {
      // What a move was staged for before its destination ever registered is this first process of it.
      const staged = first && row.move?.to === broker ? { stagedIncarnation: incarnation } : {};
      rewrite(state, row, { ...restaged(row, broker, incarnation), ...staged, drained: false });
    }
    yield;
  }
}

/** Another store, or none named: it holds nothing of what the old one held. */
function* startEmpty(state: ClusterState, broker: string, incarnation: number): Sliced<void> {
  for (const row of yield* rowsOn(state, broker)) {
    const inSync = without(row.inSync, broker);
    rewrite(state, row, { ...restaged(row, broker, incarnation), inSync, drained: false });
    yield;
  }
}

/**
 * A move to the broker that is not fenced yet goes on, staged by this very write for the new incarnation. A fenced one
 * is never cut over to a process that the fence did not know.
 */
function restaged(row: AssignmentRow, broker: string, incarnation: number): RowPatch {
  return row.move?.to === broker && row.move.step !== 'fenced' ? { stagedIncarnation: incarnation } : {};
}

/** Down or left, as the Raft leader decided of this very incarnation. */
export function* setLifecycle(state: ClusterState, command: Of<'setLifecycle'>): Sliced<Outcome> {
  const { broker, lifecycle } = command;
  const row = state.brokers.get(broker);
  if (row === undefined) return unknownBroker(broker);
  if (row.incarnation !== command.incarnation) {
    return refuse(
      'stale_incarnation',
      `broker ${broker} is at incarnation ${row.incarnation}, not ${command.incarnation}`,
    );
  }
  if (row.lifecycle === lifecycle || row.lifecycle === 'left') return done({ lifecycle: row.lifecycle });
  const downSinceMs = row.downSinceMs ?? Math.min(command.silentSinceMs, state.timeMs);
  state.putBroker({ ...row, lifecycle, downSinceMs });
  const unheard = new Set(command.unheard);
  for (const assignment of yield* rowsOn(state, broker)) {
    const { leader, inSync } = assignment;
    // Only a leader that lives can acknowledge a record that this copy lacks. Where it is silent too, the set stands.
    const mayGoOn = leader !== broker && inSync.includes(leader) && isServing(state, leader);
    if (mayGoOn && !unheard.has(leader) && inSync.includes(broker)) {
      rewrite(state, assignment, { inSync: without(inSync, broker) });
    }
    yield;
  }
  return done({ lifecycle });
}

export function setDrain(state: ClusterState, { broker, drain }: Of<'setDrain'>): Outcome {
  const row = state.brokers.get(broker);
  if (row === undefined) return unknownBroker(broker);
  const silent = row.lifecycle === 'down' || row.lifecycle === 'left';
  const lifecycle = silent ? row.lifecycle : drain ? 'draining' : 'live';
  if (row.drain !== drain || row.lifecycle !== lifecycle) state.putBroker({ ...row, drain, lifecycle });
  return done({ lifecycle });
}

export function* removeBroker(state: ClusterState, command: Of<'removeBroker'>): Sliced<Outcome> {
  const { broker, incarnation } = command;
  const row = state.brokers.get(broker);
  if (row === undefined) return unknownBroker(broker);
  const isGone = row.lifecycle === 'down' || row.lifecycle === 'left';
  if (incarnation !== null && (row.incarnation !== incarnation || !isGone)) {
    const now = `incarnation ${row.incarnation} and ${row.lifecycle}`;
    return refuse('stale_incarnation', `broker ${broker} has come back: it is ${now} now`);
  }
  const held = (yield* rowsOn(state, broker)).map((row) => row.shard);
  if (held.length > 0) {
    return refuse(
      'refused',
      `broker ${broker} still holds ${held.length} shards (${someOf(held)}): drain it, and remove it once nothing names it`,
    );
  }
  state.deleteBroker(broker);
  return done({ broker });
}

export function unknownBroker(broker: string): Outcome {
  return refuse('not_found', `there is no broker ${broker}`);
}
