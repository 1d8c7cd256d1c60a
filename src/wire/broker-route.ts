import type { Clock } from '../../raft/index.ts';
import {
  CLOSE,
  JSON_SUBPROTOCOL,
  MAX_BROKER_REQUEST_BYTES,
  MSGPACK_SUBPROTOCOL,
} from '../broker-protocol.ts';
import type { ControlPlane } from '../control-plane.ts';
import type { Connection, Route } from '../net.ts';
import type { Change } from '../state/index.ts';
import { BrokerSession } from './broker-session.ts';
import { SnapshotGate } from './broker-watch.ts';

/** Broker connections of one node; one more is closed with 1013. */
export const MAX_BROKER_CONNECTIONS = 10_000;

export interface BrokerSurface {
  /** For the path `/broker`. */
  readonly route: Route;
  readonly connections: number;
  /** Closes every connection with 1001 and takes no new one: the brokers go to another node. */
  drain(): void;
}

/** Serves brokers on this node, whether it leads or not. */
export function createBrokerSurface(options: {
  readonly plane: ControlPlane;
  readonly clock: Clock;
}): BrokerSurface {
  return new Surface(options.plane, options.clock);
}

class Surface implements BrokerSurface {
  readonly route: Route;
  readonly #plane: ControlPlane;
  readonly #clock: Clock;
  readonly #sessions = new Set<BrokerSession>();
  readonly #gate = new SnapshotGate();
  #draining = false;
  #unsubscribe: () => void = () => {};

  constructor(plane: ControlPlane, clock: Clock) {
    this.#plane = plane;
    this.#clock = clock;
    this.route = {
      subprotocols: [JSON_SUBPROTOCOL, MSGPACK_SUBPROTOCOL],
      maxPayloadBytes: MAX_BROKER_REQUEST_BYTES,
      onConnection: (connection) => this.#accept(connection),
    };
    this.#follow();
  }

  get connections(): number {
    return this.#sessions.size;
  }

  drain(): void {
    this.#draining = true;
    this.#unsubscribe();
    for (const session of [...this.#sessions]) session.close(CLOSE.draining, 'this node is going down');
  }

  #accept(connection: Connection): void {
    if (this.#draining) {
      connection.close(CLOSE.draining, 'this node is going down');
      return;
    }
    if (this.#sessions.size >= MAX_BROKER_CONNECTIONS) {
      connection.close(CLOSE.tryLater, `this node already serves ${MAX_BROKER_CONNECTIONS} brokers`);
      return;
    }
    const host = {
      plane: this.#plane,
      clock: this.#clock,
      gate: this.#gate,
      ended: (ended: BrokerSession) => this.#sessions.delete(ended),
    };
    this.#sessions.add(new BrokerSession(host, connection));
  }

  /** A newer registration, wherever it was made, ends the sessions of those before it. */
  #follow(): void {
    const { feed, state } = this.#plane;
    this.#unsubscribe = feed.subscribe(
      state.revision,
      ({ changes }) => {
        for (const change of changes) this.#note(change);
      },
      () => {
        this.#endReplaced();
        this.#follow();
      },
    );
  }

  #note(change: Change): void {
    if (change.kind !== 'broker') return;
    for (const session of [...this.#sessions]) session.endIfReplaced(change.broker);
  }

  #endReplaced(): void {
    for (const broker of this.#plane.state.brokers.values()) this.#note({ kind: 'broker', broker });
  }
}
