import { EvenkeelError } from '../errors.ts';
import { storeOf, type BrokerRow, type StateView } from '../state/index.ts';
import type {
  HeartbeatAnswer,
  LeaveAnswer,
  LeaveParams,
  RegisterAnswer,
  RegisterParams,
  SessionParams,
} from '../broker-services.ts';
import { WRITE_DEADLINE_MS, type Tenure } from './tenure.ts';
import type { BrokerTimings } from './timings.ts';

/** `error.data.replaced` of what an older connection of the same registration is answered. */
const REPLACED = { replaced: true } as const;

/** Shorter than its node waits, which would else be told first that there is no answer, and the broker ask once more. */
const TAKE_OVER_MS = WRITE_DEADLINE_MS - 1_000;

/** Registers a broker anew, or lets its process go on where it was (contract, section 6, "Registering"). */
export async function register(
  tenure: Tenure,
  state: StateView,
  timings: BrokerTimings,
  params: RegisterParams,
): Promise<RegisterAnswer> {
  const { broker } = params;
  if (params.incarnation !== null) {
    const row = current(state, broker.id, params.incarnation);
    return answer(tenure, row, timings, state.revision);
  }
  const untold = await takeOver(tenure, state, broker);
  if (untold !== null) return answer(tenure, untold, timings, state.revision);
  const known = state.brokers.get(broker.id);
  if (known !== undefined && tenure.liveness.sessionLives(known)) {
    const store = storeOf(known, broker);
    if (store !== 'same') {
      const which = store === 'other' ? 'another store' : 'a newer copy of this store';
      throw new EvenkeelError(
        'broker_connected',
        `broker ${broker.id} is connected (incarnation ${known.incarnation}) with ${which}: stop that process, ` +
          `use another id, or wait ${timings.leaseMs} ms after it was last heard`,
      );
    }
  }
  const before = known?.incarnation ?? 0;
  const { revision } = await tenure.proposeEnding(broker.id, { type: 'registerBroker', broker }, (settled) =>
    tenure.untold.add({ broker, before, settled }),
  );
  tenure.assertLeading();
  const row = state.brokers.get(broker.id);
  if (row === undefined)
    throw new EvenkeelError('unavailable', `broker ${broker.id} was removed meanwhile; retry`);
  tenure.leaving.delete(broker.id);
  return answer(tenure, row, timings, revision);
}

/** The row of an earlier registration that is the same and that nobody was told of; `null`: there is none, or it came to nothing. */
async function takeOver(
  tenure: Tenure,
  state: StateView,
  broker: RegisterParams['broker'],
): Promise<BrokerRow | null> {
  const untold = tenure.untold.take(broker);
  if (untold === null) return null;
  if (!(await tenure.within(untold.settled, TAKE_OVER_MS))) {
    tenure.untold.add(untold);
    throw new EvenkeelError(
      'deadline_exceeded',
      `an earlier registration of broker ${broker.id} is not applied yet; ask again to take it over`,
      { outcome: 'unknown' },
    );
  }
  tenure.assertLeading();
  const row = state.brokers.get(broker.id);
  const isIt =
    row !== undefined &&
    row.incarnation > untold.before &&
    row.storeId === broker.storeId &&
    row.starts === untold.broker.starts &&
    !row.imported &&
    row.lifecycle !== 'down' &&
    row.lifecycle !== 'left';
  if (!isIt) return null;
  tenure.leaving.delete(broker.id);
  return row;
}

/**
 * Answers with a lease only after a quorum round that began after the heartbeat came, and only while nothing has
 * been proposed that ends its incarnation.
 */
export async function heartbeat(
  tenure: Tenure,
  state: StateView,
  timings: BrokerTimings,
  params: SessionParams,
): Promise<HeartbeatAnswer> {
  const { broker, incarnation } = params;
  sign(tenure, state, params);
  await tenure.rounds.join();
  tenure.assertLeading();
  const row = current(state, broker, incarnation);
  if (!tenure.liveness.mayLease(broker)) {
    throw new EvenkeelError(
      'unavailable',
      `broker ${broker} is just being registered or declared gone; retry`,
    );
  }
  return { lifecycle: row.lifecycle, leaseMs: timings.leaseMs, term: tenure.term };
}

/** Leaves at once, or asks to be emptied and leaves once nothing names it. Asked again, says how far it is. */
export async function leave(tenure: Tenure, state: StateView, params: LeaveParams): Promise<LeaveAnswer> {
  const { broker, incarnation } = params;
  const before = state.brokers.get(broker);
  if (before?.incarnation === incarnation && before.lifecycle === 'left') return { lifecycle: 'left' };
  const row = sign(tenure, state, params);
  if (!params.drain || !tenure.isNamed(broker)) {
    await tenure.declare(broker, incarnation, 'left');
  } else {
    if (!row.drain) await tenure.propose({ type: 'setDrain', broker, drain: true });
    tenure.leaving.set(broker, incarnation);
  }
  return { lifecycle: state.brokers.get(broker)?.lifecycle ?? 'left' };
}

/** The node that held its connection says that it closed. */
export function disconnected(tenure: Tenure, params: SessionParams): void {
  tenure.liveness.disconnected(params.broker, params.incarnation, params.session);
}

/** A registered broker's request: a sign of life, and the row it speaks for. */
export function sign(tenure: Tenure, state: StateView, params: SessionParams): BrokerRow {
  const row = current(state, params.broker, params.incarnation);
  if (!tenure.liveness.heard(params.broker, params.incarnation, params.session)) {
    throw new EvenkeelError(
      'broker_connected',
      `broker ${params.broker} has connected anew since; this connection is replaced`,
      REPLACED,
    );
  }
  return row;
}

/** Its row, if that incarnation is the newest and not gone. */
function current(state: StateView, broker: string, incarnation: number): BrokerRow {
  const row = state.brokers.get(broker);
  // An imported row is no registration of this process: it speaks for the broker once it has registered anew.
  if (row === undefined || row.incarnation < incarnation || row.imported) {
    throw new EvenkeelError(
      'must_register',
      `no registration ${incarnation} of broker ${broker} is known; register without an incarnation`,
    );
  }
  if (row.incarnation > incarnation) {
    throw new EvenkeelError(
      'stale_incarnation',
      `broker ${broker} has registered again since: incarnation ${incarnation} ended with ${row.incarnation}`,
    );
  }
  if (row.lifecycle === 'down' || row.lifecycle === 'left') {
    throw new EvenkeelError(
      'must_register',
      `incarnation ${incarnation} of broker ${broker} is ${row.lifecycle}; register without an incarnation`,
    );
  }
  return row;
}

function answer(tenure: Tenure, row: BrokerRow, timings: BrokerTimings, revision: number): RegisterAnswer {
  const session = tenure.nextSession();
  tenure.liveness.heard(row.id, row.incarnation, session);
  const { heartbeatMs, leaseMs, expiryMs, marginMs } = timings;
  return {
    incarnation: row.incarnation,
    heartbeatMs,
    leaseMs,
    expiryMs,
    marginMs,
    lifecycle: row.lifecycle,
    revision,
    session,
  };
}
