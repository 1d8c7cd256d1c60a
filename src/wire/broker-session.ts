import type { Clock } from '../../raft/index.ts';
import {
  brokerCodec,
  CLOSE,
  type BrokerAnswers,
  type BrokerCodec,
  type BrokerErrorBody,
} from '../broker-protocol.ts';
import type { BrokerServices, SessionParams } from '../broker-services.ts';
import type { ControlPlane } from '../control-plane.ts';
import { EvenkeelError } from '../errors.ts';
import type { Connection } from '../net.ts';
import type { BrokerRow } from '../state/index.ts';
import { unawaited } from '../unawaited.ts';
import { readEnvelope, readRequest, ProtocolFault, type BrokerRequest } from './broker-requests.ts';
import { resolve, waitForRevision } from './broker-resolve.ts';
import { BrokerWatch, type SnapshotGate } from './broker-watch.ts';

/** Requests of one connection that may wait for their answers; heartbeats have places of their own. */
export const MAX_REQUESTS_IN_FLIGHT = 64;
export const MAX_HEARTBEATS_IN_FLIGHT = 8;
export const MAX_WATCHES = 16;
/** Answers and pushes that a connection leaves unread while it goes on asking, bytes; then it is closed. */
export const MAX_UNREAD_ANSWER_BYTES = 64 * 1024 * 1024;
/** How long the leader may take to answer, ms. */
const LEADER_DEADLINE_MS = 10_000;

export interface SessionHost {
  readonly gate: SnapshotGate;
  readonly plane: ControlPlane;
  readonly clock: Clock;
  /** Called once, when the connection has ended. */
  ended(session: BrokerSession): void;
}

type Request<T extends BrokerRequest['type']> = Extract<BrokerRequest, { type: T }>;

/**
 * One broker's connection, on any node. It checks every field, answers what this node's state can answer, and
 * passes on what only the Raft leader may.
 */
export class BrokerSession {
  readonly #host: SessionHost;
  readonly #connection: Connection;
  readonly #codec: BrokerCodec;
  readonly #watches = new Map<number, BrokerWatch>();
  #lastWatchId = 0;
  #inFlight = 0;
  #heartbeatsInFlight = 0;
  /** Who is at the other end, once registered. */
  #self: SessionParams | null = null;
  #registering = false;
  #closed = false;

  constructor(host: SessionHost, connection: Connection) {
    this.#host = host;
    this.#connection = connection;
    this.#codec = brokerCodec(connection.subprotocol);
    connection.onMessage = (frame) => this.#take(frame);
    connection.onClose = () => this.#ended();
  }

  /**
   * Its broker has registered anew. Whether that was this very connection is known once its own answer is here. An
   * imported row is nobody's registration: what this session says next is answered `must_register`.
   */
  endIfReplaced({ id, incarnation, imported }: BrokerRow): void {
    const self = this.#self;
    if (self?.broker !== id || this.#registering || imported || self.incarnation >= incarnation) return;
    this.close(CLOSE.replaced, `broker ${id} has registered anew as incarnation ${incarnation}`);
  }

  close(code: number, reason: string): void {
    if (this.#closed) return;
    this.#connection.close(code, reason);
    this.#ended();
  }

  #take(frame: string | Uint8Array): void {
    if (this.#closed) return;
    if (this.#connection.bufferedBytes > MAX_UNREAD_ANSWER_BYTES) {
      this.close(CLOSE.tryLater, 'the answers are not being read');
      return;
    }
    let envelope: ReturnType<typeof readEnvelope>;
    try {
      envelope = readEnvelope(this.#codec.decode(frame));
    } catch (error) {
      const isNamed = error instanceof ProtocolFault || error instanceof EvenkeelError;
      const why = isNamed ? error.message : 'the frame cannot be read';
      this.close(CLOSE.protocol, why);
      return;
    }
    const { id, type, fields } = envelope;
    const isHeartbeat = type === 'heartbeat';
    const limit = isHeartbeat ? MAX_HEARTBEATS_IN_FLIGHT : MAX_REQUESTS_IN_FLIGHT;
    if ((isHeartbeat ? this.#heartbeatsInFlight : this.#inFlight) >= limit) {
      const message = `${limit} requests of this connection already wait for their answers; retry when one has come`;
      this.#sendError(id, new EvenkeelError('overloaded', message));
      return;
    }
    unawaited(this.#handle(id, type, fields, isHeartbeat));
  }

  async #handle(
    id: number,
    type: string,
    fields: Readonly<Record<string, unknown>>,
    isHeartbeat: boolean,
  ): Promise<void> {
    if (isHeartbeat) this.#heartbeatsInFlight++;
    else this.#inFlight++;
    try {
      const answer = await this.#answer(readRequest(type, fields));
      this.#send({ id, type: `${type}.ok`, ...answer });
    } catch (error) {
      this.#sendError(id, error);
      // An incarnation is one process's own: it was its own resumption that came later, and it may connect again.
      if (isReplaced(error)) this.close(CLOSE.tryLater, 'this broker has connected anew since');
    } finally {
      if (isHeartbeat) this.#heartbeatsInFlight--;
      else this.#inFlight--;
    }
  }

  async #answer(request: BrokerRequest): Promise<BrokerAnswers[keyof BrokerAnswers]> {
    const { plane } = this.#host;
    switch (request.type) {
      case 'register':
        return this.#register(request);
      case 'heartbeat':
        return this.#ask('broker.heartbeat', this.#signed(request.incarnation));
      case 'report':
        return this.#ask('broker.report', { ...this.#signed(request.incarnation), shards: request.shards });
      case 'confirm':
        return this.#ask('broker.confirm', { ...this.#signed(request.incarnation), shards: request.shards });
      case 'leave':
        return this.#ask('broker.leave', { ...this.#signed(request.incarnation), drain: request.drain });
      case 'resolve':
        return resolve(plane, request);
      case 'watch':
        return this.#watch(request);
      case 'unwatch':
        return this.#unwatch(request.watchId);
    }
  }

  async #register(request: Request<'register'>): Promise<BrokerAnswers['register']> {
    const { plane } = this.#host;
    const { clusterId, broker, incarnation } = request;
    if (clusterId !== plane.clusterId) {
      const message = `this is cluster ${plane.clusterId}, not ${JSON.stringify(clusterId)}: check the endpoints`;
      throw new EvenkeelError('wrong_cluster', message);
    }
    if (this.#registering || (this.#self !== null && this.#self.broker !== broker.id)) {
      const message = 'one connection speaks for one broker: open another for the next';
      throw new EvenkeelError('protocol_error', message);
    }
    this.#registering = true;
    try {
      const { session, ...answer } = await this.#ask('broker.register', { broker, incarnation });
      this.#self = { broker: broker.id, incarnation: answer.incarnation, session };
      if (this.#closed) this.#tellDisconnected();
      return answer;
    } finally {
      this.#registering = false;
      const row = plane.state.brokers.get(broker.id);
      if (row !== undefined) this.endIfReplaced(row);
    }
  }

  /** Who sends the request, by the incarnation it names. */
  #signed(incarnation: number): SessionParams {
    if (this.#self === null) {
      throw new EvenkeelError('must_register', 'this connection has not registered: send register first');
    }
    if (incarnation < this.#self.incarnation) {
      const message = `incarnation ${incarnation} is over: this connection registered as ${this.#self.incarnation}`;
      throw new EvenkeelError('stale_incarnation', message);
    }
    if (incarnation > this.#self.incarnation) {
      const message = `incarnation ${incarnation} is not this connection's, which is ${this.#self.incarnation}`;
      throw new EvenkeelError('invalid_argument', message);
    }
    return this.#self;
  }

  async #watch(request: Request<'watch'>): Promise<BrokerAnswers['watch']> {
    const { plane, clock } = this.#host;
    if (this.#watches.size >= MAX_WATCHES) {
      const message = `a connection may have ${MAX_WATCHES} watches: end one with unwatch`;
      throw new EvenkeelError('limit_exceeded', message);
    }
    const watchId = ++this.#lastWatchId;
    const watch = new BrokerWatch(
      {
        plane,
        clock,
        gate: this.#host.gate,
        push: (message) => this.#send(message),
        unreadBytes: () => this.#connection.bufferedBytes,
        tooSlow: () => this.close(CLOSE.tryLater, 'what was pushed is not being read'),
      },
      watchId,
      request.broker,
    );
    // Taken before the wait, so that the limit holds for those who wait too.
    this.#watches.set(watchId, watch);
    try {
      if (request.fromRevision !== null) await waitForRevision(plane, clock, request.fromRevision);
    } catch (error) {
      this.#watches.delete(watchId);
      throw error;
    }
    if (this.#closed) throw new EvenkeelError('unavailable', 'the connection has ended');
    return { watchId, revision: watch.start(request.fromRevision) };
  }

  #unwatch(watchId: number): BrokerAnswers['unwatch'] {
    const watch = this.#watches.get(watchId);
    if (watch === undefined) {
      throw new EvenkeelError('not_found', `no watch ${watchId} on this connection`);
    }
    this.#watches.delete(watchId);
    watch.end();
    return {};
  }

  async #ask<M extends keyof BrokerServices>(
    method: M,
    params: Parameters<BrokerServices[M]>[0],
  ): Promise<Awaited<ReturnType<BrokerServices[M]>>> {
    const answer = await this.#host.plane.askLeader(method, params, LEADER_DEADLINE_MS);
    return answer as Awaited<ReturnType<BrokerServices[M]>>;
  }

  #send(message: object): void {
    if (this.#closed) return;
    this.#connection.send(this.#codec.encode(message));
  }

  #sendError(id: number, error: unknown): void {
    this.#send({ id, type: 'error', error: errorBody(error) });
  }

  #ended(): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const watch of this.#watches.values()) watch.end();
    this.#watches.clear();
    this.#tellDisconnected();
    this.#host.ended(this);
  }

  /** So that another process may register the id at once. Should it be lost, silence says the same later. */
  #tellDisconnected(): void {
    if (this.#self === null) return;
    this.#ask('broker.disconnected', this.#self).catch(() => {});
  }
}

function isReplaced(error: unknown): boolean {
  return error instanceof EvenkeelError && error.data['replaced'] === true;
}

function errorBody(error: unknown): BrokerErrorBody {
  if (!(error instanceof EvenkeelError)) {
    const message = error instanceof Error ? error.message : String(error);
    return { code: 'internal', message, retriable: false };
  }
  const { code, message, retriable, data } = error;
  return { code, message, retriable, ...(Object.keys(data).length === 0 ? {} : { data }) };
}
