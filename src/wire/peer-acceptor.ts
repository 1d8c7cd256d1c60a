import type { Clock, MemberId, Message } from '../../raft/index.ts';
import { EvenkeelError } from '../errors.ts';
import type { Logger } from '../logger.ts';
import type { Connection, Route } from '../net.ts';
import { failureOf } from './peer-calls.ts';
import {
  LANES,
  MAX_CALL_BYTES,
  PEER_PROTOCOL,
  decodePeerFrame,
  encodePeerFrame,
  type HelloFrame,
  type Lane,
  type MessagesFrame,
  type PeerFrame,
  type PeerIdentity,
  type RequestFrame,
} from './peer-codec.ts';
import { LANE_RULES, PEER_SUBPROTOCOL } from './peer-lanes.ts';

/** A connection that has not said hello by then is dropped. */
export const HELLO_TIMEOUT_MS = 5_000;
/** Connections that have not said hello. */
export const MAX_UNGREETED = 64;
/** Requests of one peer that run at once; more are refused as `overloaded`. */
export const MAX_RUNNING_REQUESTS = 4_096;
/** Answers a peer does not read; then its connection is dropped. */
const MAX_UNREAD_ANSWER_BYTES = 32 * 1024 * 1024;
const CLOSE_PROTOCOL = 4002;
const CLOSE_REPLACED = 4003;
const CLOSE_REFUSED = 1008;
const CLOSE_LATER = 1013;

export interface AcceptorOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly self: PeerIdentity;
  readonly admit: (identity: PeerIdentity) => EvenkeelError | null;
  readonly onHello: (identity: PeerIdentity) => void;
  readonly onMessages: (messages: readonly Message[]) => void;
  /** Runs a peer's request. */
  readonly run: (from: MemberId, frame: RequestFrame) => Promise<Uint8Array>;
}

/** The sockets peers dialed to this member: what they say comes in here, and answers to their requests go out. */
export class PeerAcceptor {
  readonly #options: AcceptorOptions;
  /** By member and lane. */
  readonly #greeted = new Map<string, Connection>();
  #ungreeted = 0;

  constructor(options: AcceptorOptions) {
    this.#options = options;
  }

  routes(): Record<string, Route> {
    return Object.fromEntries(
      LANES.map((lane) => [
        LANE_RULES[lane].path,
        {
          subprotocols: [PEER_SUBPROTOCOL],
          maxPayloadBytes: LANE_RULES[lane].maxPayloadBytes,
          onConnection: (connection: Connection) => this.#accept(connection, lane),
        },
      ]),
    );
  }

  /** Drops the connections of a member that is no longer a peer. */
  forget(member: MemberId): void {
    for (const lane of LANES) this.#greeted.get(`${member} ${lane}`)?.terminate();
  }

  #accept(connection: Connection, lane: Lane): void {
    if (this.#ungreeted >= MAX_UNGREETED) {
      connection.close(CLOSE_LATER, 'too many connections without a hello');
      return;
    }
    this.#ungreeted += 1;
    const { clock } = this.#options;
    const timer = clock.setTimeout(() => connection.close(CLOSE_PROTOCOL, 'no hello came'), HELLO_TIMEOUT_MS);
    let waiting = true;
    const settle = (): void => {
      if (!waiting) return;
      waiting = false;
      this.#ungreeted -= 1;
      clock.clearTimeout(timer);
    };
    connection.onClose = settle;
    connection.onMessage = (data) => {
      settle();
      connection.onMessage = () => {};
      this.#guard(connection, () => this.#greet(connection, lane, data));
    };
  }

  #greet(connection: Connection, lane: Lane, data: string | Uint8Array): void {
    const { self, admit, logger, onHello } = this.#options;
    const hello = decoded(data);
    if (hello.kind !== 'hello') throw new EvenkeelError('protocol_error', `a ${hello.kind} before the hello`);
    const refusal = refusalOf(hello, lane, self) ?? admit(hello);
    if (refusal !== null) {
      const { code, message } = refusal;
      logger.warn({ peer: hello.memberId, address: connection.remoteAddress, code }, message);
      connection.send(encodePeerFrame({ kind: 'refused', code, message }));
      connection.close(CLOSE_REFUSED, code);
      return;
    }
    const key = `${hello.memberId} ${lane}`;
    this.#greeted.get(key)?.close(CLOSE_REPLACED, 'a newer connection took its place');
    this.#greeted.set(key, connection);
    connection.onClose = () => {
      if (this.#greeted.get(key) === connection) this.#greeted.delete(key);
    };
    const session = new PeerSession(this.#options, connection, hello);
    connection.onMessage = (later) => {
      if (this.#greeted.get(key) === connection)
        this.#guard(connection, () => session.receive(decoded(later)));
    };
    connection.send(encodePeerFrame({ kind: 'welcome', ...self, protocol: PEER_PROTOCOL }));
    onHello(hello);
  }

  /** Whatever is wrong with a frame ends its connection and nothing else. */
  #guard(connection: Connection, work: () => void): void {
    try {
      work();
    } catch (error) {
      if (!(error instanceof EvenkeelError) || error.code !== 'protocol_error') throw error;
      const { logger } = this.#options;
      logger.warn({ address: connection.remoteAddress, reason: error.message }, 'peer talks nonsense');
      connection.onMessage = () => {};
      connection.close(CLOSE_PROTOCOL, error.message);
    }
  }
}

/** One greeted connection. */
class PeerSession {
  readonly #options: AcceptorOptions;
  readonly #connection: Connection;
  readonly #hello: HelloFrame;
  #running = 0;

  constructor(options: AcceptorOptions, connection: Connection, hello: HelloFrame) {
    this.#options = options;
    this.#connection = connection;
    this.#hello = hello;
  }

  receive(frame: PeerFrame): void {
    const { lane, memberId } = this.#hello;
    if (frame.kind === 'messages' && lane !== 'calls') {
      const { self, logger, onMessages } = this.#options;
      const stale = misdirected(frame, this.#hello, self);
      if (stale === null) onMessages(frame.messages);
      else logger.warn({ peer: memberId, reason: stale }, 'dropped messages');
    } else if (frame.kind === 'request' && lane === 'calls') {
      this.#serve(frame);
    } else {
      throw new EvenkeelError('protocol_error', `a ${frame.kind} on the ${lane} lane`);
    }
  }

  #serve(frame: RequestFrame): void {
    if (this.#running >= MAX_RUNNING_REQUESTS) {
      this.#fail(frame.id, new EvenkeelError('overloaded', `${MAX_RUNNING_REQUESTS} requests run already`));
      return;
    }
    this.#running += 1;
    this.#options
      .run(this.#hello.memberId, frame)
      .then(
        (result) => this.#answer(frame, result),
        (error: unknown) => this.#fail(frame.id, error),
      )
      .finally(() => {
        this.#running -= 1;
      });
  }

  #answer({ id, method }: RequestFrame, result: Uint8Array): void {
    if (result.byteLength > MAX_CALL_BYTES) {
      const text = `the answer of ${method} has ${result.byteLength} bytes, more than the ${MAX_CALL_BYTES} allowed`;
      this.#fail(id, new EvenkeelError('limit_exceeded', text));
      return;
    }
    this.#send(encodePeerFrame({ kind: 'answer', id, result }));
  }

  #fail(id: number, error: unknown): void {
    if (!(error instanceof EvenkeelError)) {
      this.#options.logger.error(
        { peer: this.#hello.memberId, err: error },
        'a request failed for a fault of ours',
      );
    }
    this.#send(encodePeerFrame(failureOf(id, error)));
  }

  #send(frame: Uint8Array): void {
    if (this.#connection.bufferedBytes > MAX_UNREAD_ANSWER_BYTES) this.#connection.terminate();
    else this.#connection.send(frame);
  }
}

function decoded(data: string | Uint8Array): PeerFrame {
  if (typeof data === 'string') throw new EvenkeelError('protocol_error', 'a text frame from a peer');
  return decodePeerFrame(data);
}

function refusalOf(hello: HelloFrame, lane: Lane, self: PeerIdentity): EvenkeelError | null {
  if (hello.protocol !== PEER_PROTOCOL) {
    const text = `this node speaks peer protocol ${PEER_PROTOCOL}, not ${hello.protocol}: run the same release`;
    return new EvenkeelError('protocol_error', text);
  }
  if (hello.to !== self.memberId) {
    const text = `this is member ${self.memberId}, not ${hello.to}: check the addresses in --members`;
    return new EvenkeelError('refused', text);
  }
  if (hello.lane !== lane)
    return new EvenkeelError('protocol_error', `the lane ${hello.lane} on the path of ${lane}`);
  return null;
}

/** Frames of an older start or directory, of either side, are void. */
function misdirected(frame: MessagesFrame, hello: HelloFrame, self: PeerIdentity): string | null {
  const told: [given: string, due: string, what: string][] = [
    [frame.clusterId, self.clusterId, 'cluster'],
    [frame.from, hello.memberId, 'sender'],
    [frame.to, self.memberId, 'receiver'],
    [frame.fromDirectory, hello.directoryId, "sender's directory"],
    [frame.toDirectory, self.directoryId, "receiver's directory"],
    [frame.bootId, hello.bootId, "sender's boot"],
  ];
  const wrong = told.find(([given, due]) => given !== due);
  return wrong === undefined ? null : `its ${wrong[2]} is ${wrong[0]}, not ${wrong[1]}`;
}
