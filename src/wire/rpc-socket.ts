import { EvenkeelError } from '../errors.ts';
import type { Connection, Route } from '../net.ts';
import { textOf, type Outbound } from './outbound.ts';
import { Outbox } from './outbox.ts';
import type { Caller } from './rpc-call.ts';
import { answerJsonRpc, type Calls } from './rpc-json.ts';
import type { Subscriber } from './rpc-types.ts';

/** The largest request, bytes: an import's part and its frame. */
export const MAX_RPC_MESSAGE_BYTES = 1024 * 1024;
/** Messages of one connection being answered; what comes past them is answered `overloaded` and does not run. */
export const MAX_MESSAGES_IN_FLIGHT = 1_024;
/** What a connection may leave unread and ask for more, bytes; past it the next message closes it. */
export const MAX_UNREAD_BYTES = 64 * 1024 * 1024;

const CLOSE_DRAINING = 1001;
const CLOSE_INTERNAL = 1011;
const CLOSE_TRY_LATER = 1013;
const CLOSE_PROTOCOL = 4002;
const NOT_READ = 'the answers are not read';

/** JSON-RPC 2.0 over WebSocket, text frames, at `/rpc`. */
export class RpcSockets {
  readonly #caller: Caller;
  readonly #refusing: Calls;
  readonly #open = new Set<Connection>();

  constructor(caller: Caller) {
    this.#caller = caller;
    this.#refusing = {
      outbound: caller.outbound,
      call: () => Promise.reject(tooManyMessages()),
      describe: (error) => caller.describe(error),
    };
  }

  readonly route: Route = {
    subprotocols: [],
    maxPayloadBytes: MAX_RPC_MESSAGE_BYTES,
    onConnection: (connection) => this.#serve(connection),
  };

  close(): void {
    for (const connection of this.#open) connection.close(CLOSE_DRAINING, 'this node is stopping');
  }

  #serve(connection: Connection): void {
    const { clock, outbound } = this.#caller;
    const outbox = new Outbox(connection, clock, () => connection.close(CLOSE_TRY_LATER, NOT_READ));
    const subscriber = subscriberOf(outbox, outbound);
    let inFlight = 0;
    this.#open.add(connection);
    connection.onClose = () => {
      this.#open.delete(connection);
      outbox.end();
      for (const end of subscriber.watches.values()) end();
    };
    connection.onMessage = (data) => {
      if (typeof data !== 'string') {
        connection.close(CLOSE_PROTOCOL, 'JSON-RPC goes in text frames');
        return;
      }
      if (outbox.waitingBytes > MAX_UNREAD_BYTES) {
        connection.close(CLOSE_TRY_LATER, NOT_READ);
        return;
      }
      const calls = inFlight < MAX_MESSAGES_IN_FLIGHT ? this.#caller : this.#refusing;
      inFlight += 1;
      answerJsonRpc(data, calls, subscriber)
        .then((reply) => {
          if (reply !== null) outbox.send(reply);
        })
        .catch((error: unknown) => {
          this.#caller.fault(error, '/rpc');
          connection.close(CLOSE_INTERNAL, "the node's log says what failed");
        })
        .finally(() => (inFlight -= 1));
    };
  }
}

function tooManyMessages(): EvenkeelError {
  const message = `${MAX_MESSAGES_IN_FLIGHT} messages of this connection wait for their answers; try again later`;
  return new EvenkeelError('overloaded', message);
}

function subscriberOf(outbox: Outbox, outbound: Outbound): Subscriber {
  let watches = 0;
  return {
    watches: new Map(),
    notify: (method, params) => outbox.send(outbound.hold(textOf({ jsonrpc: '2.0', method, params }))),
    // A watcher of a full node waits like one that has not read: it is sent a snapshot later.
    bufferedBytes: () => (outbound.isFull ? Infinity : outbox.waitingBytes),
    nextWatchId: () => (watches += 1),
  };
}
