import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { WebSocket, WebSocketServer, type RawData } from 'ws';
import { parseAddress } from './address.ts';
import { EvenkeelError } from './errors.ts';
import { Liveness, PING_EVERY_MS } from './liveness.ts';
import type { ConnectOptions, Connection, Listener, ListenOptions, Net, Route } from './net.ts';

/** Open sockets of one listener, HTTP included; more are closed at once. */
const MAX_CONNECTIONS = 10_000;
/** What a peer gets to answer a close before its socket is dropped. */
const CLOSE_GRACE_MS = 1_000;
const MAX_REASON_BYTES = 123;
/** Headers of a request or upgrade must have come by then. */
const HEADERS_TIMEOUT_MS = 10_000;

/** The real network: WebSockets without compression, and plain HTTP beside them on the same port. */
export function createWebSocketNet(): Net {
  return { connect, listen };
}

function connect(address: string, options: ConnectOptions): Promise<Connection> {
  return new Promise((resolve, reject) => {
    const protocols = options.subprotocol === undefined ? [] : [options.subprotocol];
    const socket = new WebSocket(`ws://${address}${options.path}`, protocols, {
      perMessageDeflate: false,
      maxPayload: options.maxPayloadBytes,
      handshakeTimeout: options.timeoutMs,
      followRedirects: false,
      // The key arrives as zeros.
      ...(options.unmasked === true ? { generateMask: () => {} } : {}),
    });
    let stream: Socket | null = null;
    socket.once('upgrade', (response) => (stream = response.socket));
    socket.once('error', (error) => {
      const text = `cannot connect to ${address}${options.path}: ${error.message}`;
      reject(new EvenkeelError('unreachable', text, { address }));
    });
    socket.once('open', () => {
      socket.removeAllListeners('error');
      if (stream === null) throw new Error('a WebSocket opened without an upgrade');
      resolve(new WebSocketConnection(socket, stream, address));
    });
  });
}

async function listen(address: string, options: ListenOptions): Promise<Listener> {
  const parsed = parseAddress(address);
  if (parsed === null) {
    throw new EvenkeelError(
      'invalid_argument',
      `${address} is no address: give host:port, like 127.0.0.1:7401`,
    );
  }
  const { host, port } = parsed;
  const server = createServer({ headersTimeout: HEADERS_TIMEOUT_MS }, (request, response) => {
    if (fromForeignPage(request)) response.writeHead(403).end(FOREIGN_PAGE);
    else if (options.http !== undefined) options.http(request, response);
    else response.writeHead(404).end();
  });
  server.maxConnections = MAX_CONNECTIONS;
  const open = new Set<WebSocketConnection>();
  const upgrades = new Map(
    Object.entries(options.routes).map(([path, route]) => [path, upgradeTo(route, open)] as const),
  );
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    const path = (request.url ?? '').split('?', 1)[0] ?? '';
    const upgrade = upgrades.get(path);
    if (fromForeignPage(request)) refuse(socket, '403 Forbidden', FOREIGN_PAGE);
    else if (upgrade === undefined) refuse(socket, '404 Not Found', `no such path: ${path}`);
    else upgrade(request, socket, head);
  });
  await bind(server, address, host, port);
  return { address: boundAddress(server, host), close: () => closeListener(server, open) };
}

const FOREIGN_PAGE = 'requests of web pages from elsewhere are refused';

/**
 * Browsers let any page send requests and open WebSockets to a loopback listener, but say where the page is from.
 * Programs send no Origin.
 */
function fromForeignPage({ headers: { origin, host } }: IncomingMessage): boolean {
  if (origin === undefined) return false;
  return !URL.canParse(origin) || new URL(origin).host !== host;
}

type Upgrade = (request: IncomingMessage, socket: Duplex, head: Buffer) => void;

function upgradeTo(route: Route, open: Set<WebSocketConnection>): Upgrade {
  const sockets = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: route.maxPayloadBytes,
    handleProtocols: (offered) => route.subprotocols.find((name) => offered.has(name)) ?? false,
  });
  return (request, socket, head) => {
    if (route.subprotocols.length > 0 && !offersOneOf(request, route.subprotocols)) {
      refuse(socket, '400 Bad Request', `offer one of the subprotocols ${route.subprotocols.join(', ')}`);
      return;
    }
    sockets.handleUpgrade(request, socket, head, (webSocket) => {
      const { remoteAddress, remotePort } = request.socket;
      const connection = new WebSocketConnection(webSocket, request.socket, `${remoteAddress}:${remotePort}`);
      open.add(connection);
      webSocket.once('close', () => open.delete(connection));
      route.onConnection(connection);
    });
  };
}

/** Events that come before the owner could set its handlers wait for the end of that turn. */
class WebSocketConnection implements Connection {
  onMessage: (data: string | Uint8Array) => void = () => {};
  onClose: (code: number, reason: string) => void = () => {};
  readonly remoteAddress: string;
  readonly #socket: WebSocket;
  readonly #stream: Socket;
  readonly #pings: NodeJS.Timeout;
  #early: (() => void)[] | null = [];
  readonly #liveness = new Liveness();
  #gathering = false;

  constructor(socket: WebSocket, stream: Socket, remoteAddress: string) {
    this.#socket = socket;
    this.#stream = stream;
    this.remoteAddress = remoteAddress;
    this.#pings = setInterval(() => this.#ping(), PING_EVERY_MS);
    this.#pings.unref();
    socket.on('message', (data, isBinary) => {
      const owned = isBinary ? ownBytes(data) : bytesOf(data).toString('utf8');
      this.#emit(() => this.onMessage(owned));
    });
    // What it says follows in `close`: an oversized or malformed frame, a reset.
    socket.on('error', () => {});
    socket.once('close', (code, reason) => {
      clearInterval(this.#pings);
      this.#emit(() => this.onClose(code, reason.toString('utf8')));
    });
    setImmediate(() => {
      const early = this.#early ?? [];
      this.#early = null;
      for (const event of early) event();
    });
  }

  get subprotocol(): string {
    return this.#socket.protocol;
  }

  get bufferedBytes(): number {
    return this.#socket.bufferedAmount;
  }

  send(data: string | Uint8Array, more = false): void {
    if (this.#socket.readyState !== WebSocket.OPEN) return;
    // A failed send ends in `close`.
    this.#socket.send(data, { binary: typeof data !== 'string', fin: !more }, () => {});
    this.#gather();
  }

  close(code: number, reason: string): void {
    this.#socket.close(code, clipped(reason));
    const drop = setTimeout(() => this.#socket.terminate(), CLOSE_GRACE_MS);
    drop.unref();
    this.#socket.once('close', () => clearTimeout(drop));
  }

  terminate(): void {
    this.#socket.terminate();
  }

  /** The first message of a turn goes at once, all others in one write: hundreds of answers may come of one apply. */
  #gather(): void {
    if (this.#gathering) return;
    this.#gathering = true;
    this.#stream.cork();
    process.nextTick(() => {
      this.#gathering = false;
      this.#stream.uncork();
    });
  }

  #emit(event: () => void): void {
    if (this.#early === null) event();
    else this.#early.push(event);
  }

  /** Judged after waiting input was read: a stall of our own loop is not the other side's silence. */
  #ping(): void {
    setImmediate(() => {
      if (this.#liveness.isSilent(this.#stream.bytesRead)) {
        this.#socket.terminate();
        return;
      }
      if (this.#socket.readyState === WebSocket.OPEN) this.#socket.ping();
    });
  }
}

function bind(server: Server, address: string, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      reject(
        error.code === 'EADDRINUSE'
          ? new EvenkeelError(
              'address_in_use',
              `${address} is in use by another program; stop it or choose another`,
            )
          : new EvenkeelError('invalid_argument', `cannot listen on ${address}: ${error.message}`),
      );
    });
    server.listen({ host, port }, () => {
      server.removeAllListeners('error');
      resolve();
    });
  });
}

async function closeListener(server: Server, open: Set<WebSocketConnection>): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  for (const connection of open) connection.close(1001, 'shutting down');
  server.closeIdleConnections();
  const drop = setTimeout(() => server.closeAllConnections(), CLOSE_GRACE_MS);
  await closed;
  clearTimeout(drop);
}

function boundAddress(server: Server, host: string): string {
  const bound = server.address();
  if (bound === null || typeof bound === 'string') throw new Error('a listener without an address');
  return host.includes(':') ? `[${host}]:${bound.port}` : `${host}:${bound.port}`;
}

function offersOneOf(request: IncomingMessage, wanted: readonly string[]): boolean {
  const offered = (request.headers['sec-websocket-protocol'] ?? '').split(',');
  return offered.some((name) => wanted.includes(name.trim()));
}

function refuse(socket: Duplex, status: string, text: string): void {
  socket.on('error', () => {});
  const body = `${text}\n`;
  socket.end(
    `HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Type: text/plain; charset=utf-8\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}

/** The protocol has room for 123 bytes; no character takes more than four. */
function clipped(reason: string): string {
  return Buffer.byteLength(reason) > MAX_REASON_BYTES ? reason.slice(0, MAX_REASON_BYTES / 4) : reason;
}

/** `ws` hands over views of a shared read buffer; a copy of its own keeps nothing else alive. */
function ownBytes(data: RawData): Uint8Array {
  const bytes = bytesOf(data);
  if (bytes.byteLength === bytes.buffer.byteLength) return bytes;
  return new Uint8Array(bytes);
}

function bytesOf(data: RawData): Buffer {
  if (Array.isArray(data)) return Buffer.concat(data);
  return data instanceof ArrayBuffer ? Buffer.from(data) : data;
}
