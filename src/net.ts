import type { IncomingMessage, ServerResponse } from 'node:http';

/** The tests' and the simulator's seam for sockets: message-framed, full-duplex connections (WebSockets in production). */
export interface Net {
  /** Opens a connection to `ws://address/path`. Resolves once open; rejects on refusal, time-out or abort. */
  connect(address: string, options: ConnectOptions): Promise<Connection>;
  listen(address: string, options: ListenOptions): Promise<Listener>;
}

export interface ConnectOptions {
  /** `/peer`, `/broker`, `/rpc`. */
  readonly path: string;
  readonly subprotocol?: string;
  /** Bytes; a larger incoming message closes the connection with 1009. */
  readonly maxPayloadBytes: number;
  readonly timeoutMs: number;
  /**
   * Sends with the masking key 0, which costs no pass over the bytes. Masking guards intermediaries against what a
   * browser's script could send (RFC 6455, 10.3); between members there is no such script.
   */
  readonly unmasked?: boolean;
}

export interface Route {
  /** Offered subprotocols this route takes; empty: none is needed. An upgrade that offers none of them is refused with 400. */
  readonly subprotocols: readonly string[];
  readonly maxPayloadBytes: number;
  onConnection(connection: Connection): void;
}

export interface ListenOptions {
  /** By path. An upgrade to any other path is refused with 404. */
  readonly routes: Readonly<Record<string, Route>>;
  /** Plain HTTP on the same port; the simulator has none. */
  readonly http?: (request: IncomingMessage, response: ServerResponse) => void;
}

export interface Listener {
  /** As bound: `127.0.0.1:7401`, the real port where 0 was asked for. */
  readonly address: string;
  close(): Promise<void>;
}

/** Handlers are set synchronously in `onConnection` or right after `connect` resolves; none is called before that turn ends. */
export interface Connection {
  readonly subprotocol: string;
  readonly remoteAddress: string;
  /** Bytes handed over and not yet taken by the system. */
  readonly bufferedBytes: number;
  /**
   * Text goes as a text frame, bytes as a binary frame. With `more` the message goes on with the next call, of the same
   * type: the other end gets the parts as one. Sending on a closed connection is a no-op.
   */
  send(data: string | Uint8Array, more?: boolean): void;
  close(code: number, reason: string): void;
  /** Drops the connection at once. */
  terminate(): void;
  /** The bytes are the receiver's own: they never alias a shared buffer. */
  onMessage: (data: string | Uint8Array) => void;
  /** Called once. */
  onClose: (code: number, reason: string) => void;
}
