import type { IncomingMessage, ServerResponse } from 'node:http';
import { JSON_SUBPROTOCOL, MAX_BROKER_REQUEST_BYTES, MSGPACK_SUBPROTOCOL } from './broker-protocol.ts';
import type { Connection, Listener, Net, Route } from './net.ts';
import { MAX_RPC_MESSAGE_BYTES } from './wire/index.ts';

/** What is behind the door once the node serves. */
export interface Surfaces {
  readonly broker: Pick<Route, 'onConnection'>;
  readonly rpc: Pick<Route, 'onConnection'>;
  readonly http: (request: IncomingMessage, response: ServerResponse) => void;
}

const TRY_AGAIN_LATER = 1013;

/**
 * The listener for brokers, RPC and HTTP. It opens first, so that a busy port is found before anything else
 * happens and liveness can be asked while the node waits for its group; it serves once the surfaces are there.
 */
export class FrontDoor {
  readonly #listener: Listener;
  readonly #behind: { surfaces: Surfaces | null };

  private constructor(listener: Listener, behind: { surfaces: Surfaces | null }) {
    this.#listener = listener;
    this.#behind = behind;
  }

  /** Rejects with `address_in_use`. */
  static async open(net: Net, address: string): Promise<FrontDoor> {
    const behind: { surfaces: Surfaces | null } = { surfaces: null };
    const admit = (pick: 'broker' | 'rpc') => (connection: Connection) => {
      if (behind.surfaces === null) connection.close(TRY_AGAIN_LATER, 'this node is starting');
      else behind.surfaces[pick].onConnection(connection);
    };
    const listener = await net.listen(address, {
      routes: {
        '/broker': {
          subprotocols: [JSON_SUBPROTOCOL, MSGPACK_SUBPROTOCOL],
          maxPayloadBytes: MAX_BROKER_REQUEST_BYTES,
          onConnection: admit('broker'),
        },
        '/rpc': { subprotocols: [], maxPayloadBytes: MAX_RPC_MESSAGE_BYTES, onConnection: admit('rpc') },
      },
      http: (request, response) => {
        if (behind.surfaces !== null) behind.surfaces.http(request, response);
        else starting(request, response);
      },
    });
    return new FrontDoor(listener, behind);
  }

  /** As bound, `host:port`. */
  get address(): string {
    return this.#listener.address;
  }

  serve(surfaces: Surfaces): void {
    this.#behind.surfaces = surfaces;
  }

  close(): Promise<void> {
    return this.#listener.close();
  }
}

function starting(request: IncomingMessage, response: ServerResponse): void {
  const alive = request.url === '/livez';
  response.writeHead(alive ? 200 : 503, { 'content-type': 'text/plain; charset=utf-8', connection: 'close' });
  response.end(alive ? 'ok\n' : 'not ok: starting\n');
}
