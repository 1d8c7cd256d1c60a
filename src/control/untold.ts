import { isDeepStrictEqual } from 'node:util';
import type { BrokerIdentity } from '../broker-services.ts';
import { storeOf } from '../state/index.ts';

/** A registration that is in the log, or may be. */
export interface UntoldRegistration {
  readonly broker: BrokerIdentity;
  /** The incarnation that it replaces; 0: none. */
  readonly before: number;
  /** Resolves once its entry is applied or never will be. */
  readonly settled: Promise<void>;
}

/**
 * Registrations of which nobody was told more than that they took too long. Who asks for the same again takes over what is
 * there: a quorum that is slow to apply entries of thousands of rows would otherwise be given more of them the slower it is.
 */
export class Untold {
  readonly #byBroker = new Map<string, UntoldRegistration>();

  add(registration: UntoldRegistration): void {
    this.#byBroker.set(registration.broker.id, registration);
  }

  /**
   * The same registration, for whoever asks now alone; `null`: there is none. Any other of that id ends it. Only a store,
   * whose directory is locked, says that it is the same broker; one that counts its starts has counted this try too.
   */
  take(broker: BrokerIdentity): UntoldRegistration | null {
    const found = this.#byBroker.get(broker.id);
    this.#byBroker.delete(broker.id);
    if (found === undefined || broker.storeId === null) return null;
    if (storeOf(found.broker, broker) !== 'same') return null;
    return isDeepStrictEqual({ ...found.broker, starts: null }, { ...broker, starts: null }) ? found : null;
  }
}
