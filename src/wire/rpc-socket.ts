import { EvenkeelError } from '../errors.ts';
import type { Connection, Route } from '../net.ts';
import type { Caller } from './rpc-call.ts';
import { answerJsonRpc, type Calls } from './rpc-json.ts';
import type { Subscriber } from './rpc-types.ts';

/** The largest request, bytes: an import's part and its frame. */
export const MAX_RPC_MESSAGE_BYTES = 1024 * 1024;
/** Messages of one connection being answered; what comes past them is answered `overloaded` and does not run. */
export const MAX_MESSAGES_IN_FLIGHT = 1_024;
/** Answers a connection leaves unread before it is closed, bytes. */
export const MAX_UNREAD_BYTES = 64 * 1024 * 1024;

const CLOSE_DRAINING = 1001;
const CLOSE_TRY_LATER = 1013;
const CLOSE_PROTOCOL = 4002;

/** JSON-RPC 2.0 over WebSocket, text frames, at `/rpc`. */
export class RpcSockets {
  readonly #caller: Caller;
  readonly #refusing: Calls;
  readonly #open = new Set<Connection>();

  constructor(caller: Caller) {
    this.#caller = caller;
    this.#refusing = {
      clock: caller.clock,
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
    const subscriber = subscriberOf(connection);
    let inFlight = 0;
    this.#open.add(connection);
    connection.onClose = () => {
      this.#open.delete(connection);
      for (const end of subscriber.watches.values()) end();
    };
    connection.onMessage = (data) => {
      if (typeof data !== 'string') {
        connection.close(CLOSE_PROTOCOL, 'JSON-RPC goes in text frames');
        return;
      }
      if (connection.bufferedBytes > MAX_UNREAD_BYTES) {
        connection.close(CLOSE_TRY_LATER, 'the answers are not read');
        return;
      }
      const calls = inFlight < MAX_MESSAGES_IN_FLIGHT ? this.#caller : this.#refusing;
      inFlight += 1;
      void answerJsonRpc(data, calls, subscriber).then((answer) => {
        inFlight -= 1;
        if (answer !== null) connection.send(answer.join(''));
      });
    };
  }
}

function tooManyMessages(): EvenkeelError {
  const message = `${MAX_MESSAGES_IN_FLIGHT} messages of this connection wait for their answers; try again later`;
  return new EvenkeelError('overloaded', message);
}

function subscriberOf(connection: Connection): Subscriber {
  let watches = 0;
  return {
    watches: new Map(),
    notify: (method, params) => connection.send(JSON.stringify({ jsonrpc: '2.0', method, params })),
    bufferedBytes: () => connection.bufferedBytes,
    nextWatchId: () => (watches += 1),
  };
}
