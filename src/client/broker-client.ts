import type { Clock, Random, Timer } from '../../raft/index.ts';
import type { Lifecycle } from '../../placement/index.ts';
import {
  BROKER_PATH,
  CLOSE,
  JSON_SUBPROTOCOL,
  MAX_BROKER_PUSH_BYTES,
  MSGPACK_SUBPROTOCOL,
  type BrokerAnswers,
  type BrokerPush,
  type Registration,
  type ShardReportMessage,
} from '../broker-protocol.ts';
import { EvenkeelError } from '../errors.ts';
import type { Net } from '../net.ts';
import { unawaited } from '../unawaited.ts';
import { BrokerConnection } from './broker-connection.ts';
import { BrokerView, type ViewUpdate } from './broker-view.ts';
import { Lease } from './lease.ts';
import type { StoreCount } from './store-count.ts';

const CONNECT_TIMEOUT_MS = 2_000;
const REQUEST_TIMEOUT_MS = 12_000;
/** For so long a registration whose answer never came may still be applied: its node gives it 10 s, a stalled quorum more. */
const UNANSWERED_MS = 60_000;
/** Between attempts to reach a node: doubled from the first to the last, with jitter. */
const FIRST_BACKOFF_MS = 50;
const LAST_BACKOFF_MS = 2_000;
/** Shards of one report or confirm. */
const SHARDS_PER_REQUEST = 1_000;
/** Unanswered heartbeats after which no more are sent on a connection. */
const MAX_BEATS_UNANSWERED = 4;

export interface BrokerClientOptions {
  readonly net: Net;
  readonly clock: Clock;
  readonly random: Random;
  /** Any nodes of the cluster, `host:port`; all are tried in turn. */
  readonly endpoints: readonly string[];
  readonly clusterId: string;
  readonly registration: Registration;
  /** Where records are kept, by a broker that keeps them: then the registration itself names no store. */
  readonly store?: StoreCount;
  readonly encoding?: 'json' | 'msgpack';
  readonly handlers: BrokerClientHandlers;
}

/** Called synchronously; none may throw. */
export interface BrokerClientHandlers {
  /**
   * Resumed, or registered anew: then whatever was served before is over, and nothing may be served by a view older
   * than `revision`.
   */
  onRegistered?: (incarnation: number, resumed: boolean, revision: number) => void;
  /** The view has changed. */
  onView?: (update: ViewUpdate) => void;
  /** A heartbeat was answered. */
  onHeartbeat?: (answer: BrokerAnswers['heartbeat']) => void;
  /** A registration was refused in a way that waiting does not heal; it is tried again all the same. */
  onRefused?: (error: EvenkeelError) => void;
  /** Another process has taken this broker's place: the client has stopped for good. */
  onReplaced?: () => void;
}

/**
 * A broker's side of the protocol: one connection to any node, dialled again for ever; registration, resumed
 * where it can be; heartbeats and the lease they give; the watch, gone on with where it stopped.
 */
export class BrokerClient {
  readonly view: BrokerView;
  readonly #options: BrokerClientOptions;
  readonly #lease: Lease;
  #connection: BrokerConnection | null = null;
  #incarnation: number | null = null;
  /** When each registration was sent whose answer never came: a newer incarnation of ours may exist, or come yet. */
  #unansweredAtMs: number[] = [];
  #hasRegistered = false;
  #lifecycle: Lifecycle = 'live';
  #heartbeatMs = 0;
  #leaseMs = 0;
  #marginMs = 0;
  #beatsUnanswered = 0;
  #answeredAtMs = 0;
  #endpoint: number;
  #backoffMs = FIRST_BACKOFF_MS;
  #timer: Timer | null = null;
  #beatTimer: Timer | null = null;
  #ready = false;
  #stopped = false;

  constructor(options: BrokerClientOptions) {
    if (options.endpoints.length === 0) throw new EvenkeelError('invalid_argument', 'no endpoints given');
    this.#options = options;
    this.view = new BrokerView(options.registration.id);
    this.#lease = new Lease(options.clock);
    this.#endpoint = options.random.nextUint32() % options.endpoints.length;
  }

  start(): void {
    unawaited(this.#dial());
  }

  /** Falls silent. Registered it stays until its silence is noticed; `leave` says goodbye. */
  stop(): void {
    this.#stopped = true;
    this.#lease.end();
    this.#clearTimers();
    this.#connection?.close(1000, 'the broker stops');
    this.#connection = null;
    this.#ready = false;
  }

  /** The registration it serves under; `null` before the first. */
  get incarnation(): number | null {
    return this.#incarnation;
  }

  get lifecycle(): Lifecycle {
    return this.#lifecycle;
  }

  get heartbeatMs(): number {
    return this.#heartbeatMs;
  }

  /** Registered on an open connection. */
  get isReady(): boolean {
    return this.#ready;
  }

  /** Whether this process may serve as leader right now. */
  hasLease(): boolean {
    return !this.#stopped && this.#lease.isValid();
  }

  /** Reports on shards it leads, by request order. Rejects where nothing is known of the outcome. */
  report(shards: readonly ShardReportMessage[]): Promise<BrokerAnswers['report']['results']> {
    return this.#inParts('report', shards);
  }

  /** Says that it serves the shards at these generations. */
  confirm(
    shards: readonly { readonly shard: string; readonly generation: number }[],
  ): Promise<BrokerAnswers['confirm']['results']> {
    return this.#inParts('confirm', shards);
  }

  /** Registers again, as a broker does whose store is another now. */
  registerAgain(): void {
    this.#incarnation = null;
    // Its own session may still count as connected, with the store that it had.
    this.#hasRegistered = false;
    this.#lease.end();
    if (this.#connection !== null) this.#drop(this.#connection);
  }

  resolve(
    resource: string,
    target: { readonly shard: number } | { readonly key: string },
    consistency: 'local' | 'linearizable' = 'local',
  ): Promise<BrokerAnswers['resolve']> {
    return this.#request('resolve', { resource, ...target, consistency });
  }

  /** Asks to leave; with `drain` to be emptied first, and to be asked again until it answers `left`. */
  async leave(drain: boolean): Promise<Lifecycle> {
    const incarnation = this.#incarnation;
    const answer = await this.#request('leave', { incarnation, ...(drain ? { drain } : {}) });
    this.#lifecycle = answer.lifecycle;
    if (answer.lifecycle === 'left') this.#lease.end();
    return answer.lifecycle;
  }

  async #inParts(
    type: 'report' | 'confirm',
    shards: readonly object[],
  ): Promise<BrokerAnswers['report']['results']> {
    const results: BrokerAnswers['report']['results'][number][] = [];
    const incarnation = this.#incarnation;
    for (let at = 0; at < shards.length; at += SHARDS_PER_REQUEST) {
      const part = shards.slice(at, at + SHARDS_PER_REQUEST);
      const answer = await this.#request(type, { incarnation, shards: part });
      results.push(...answer.results);
    }
    return results;
  }

  #request<T extends keyof BrokerAnswers>(
    type: T,
    fields: Readonly<Record<string, unknown>>,
  ): Promise<BrokerAnswers[T]> {
    if (this.#connection === null || !this.#ready) {
      return Promise.reject(
        new EvenkeelError('unreachable', `${type}: not connected to any node at the moment`),
      );
    }
    return this.#connection.request(type, fields, REQUEST_TIMEOUT_MS);
  }

  async #dial(): Promise<void> {
    this.#timer = null;
    const { net, clock, endpoints, encoding } = this.#options;
    const endpoint = endpoints[this.#endpoint++ % endpoints.length] ?? '';
    let connection: BrokerConnection;
    try {
      const socket = await net.connect(endpoint, {
        path: BROKER_PATH,
        subprotocol: encoding === 'json' ? JSON_SUBPROTOCOL : MSGPACK_SUBPROTOCOL,
        maxPayloadBytes: MAX_BROKER_PUSH_BYTES,
        timeoutMs: CONNECT_TIMEOUT_MS,
      });
      connection = new BrokerConnection(socket, clock, {
        onPush: (push) => {
          if (this.#connection === connection) this.#take(push);
        },
        onClose: (code) => {
          if (this.#connection === connection) this.#lost(code);
        },
      });
    } catch {
      this.#again();
      return;
    }
    if (this.#stopped) {
      connection.close(1000, 'the broker stops');
      return;
    }
    this.#connection = connection;
    try {
      await this.#join(connection);
    } catch (error) {
      if (this.#connection !== connection) return;
      if (error instanceof EvenkeelError && !error.retriable) this.#options.handlers.onRefused?.(error);
      this.#drop(connection);
    }
  }

  async #join(connection: BrokerConnection): Promise<void> {
    await this.#register(connection);
    if (this.#connection !== connection) return;
    this.#ready = true;
    this.#backoffMs = FIRST_BACKOFF_MS;
    this.#beatsUnanswered = 0;
    this.#answeredAtMs = this.#options.clock.now();
    this.#beat(connection);
    const { revision } = this.view;
    await connection.request(
      'watch',
      {
        filter: { broker: this.#options.registration.id },
        ...(revision > 0 ? { fromRevision: revision } : {}),
      },
      REQUEST_TIMEOUT_MS,
    );
  }

  async #register(connection: BrokerConnection): Promise<void> {
    const { clusterId, registration, store, handlers } = this.#options;
    const resumes = this.#incarnation;
    const counted = resumes === null ? await store?.count() : {};
    if (this.#connection !== connection) return;
    const broker = { ...registration, ...counted };
    const fields = { clusterId, broker, ...(resumes === null ? {} : { incarnation: resumes }) };
    const sentAtMs = this.#options.clock.now();
    if (resumes === null) this.#unansweredAtMs.push(sentAtMs);
    let answer: BrokerAnswers['register'];
    try {
      answer = await connection.request('register', fields, REQUEST_TIMEOUT_MS);
    } catch (error) {
      const code = error instanceof EvenkeelError ? error.code : null;
      if (resumes === null && error instanceof EvenkeelError && !error.retriable) this.#answered(sentAtMs);
      if (resumes === null && code === 'broker_connected') {
        await store?.takeBack();
        // Before the first registration it may be the process before this one; without a store id, a late one of our own.
        const isReplaced = this.#hasRegistered && broker.storeId !== undefined;
        if (isReplaced && this.#connection === connection) this.#replaced();
      }
      if (resumes === null || this.#connection !== connection) throw error;
      if (code === 'stale_incarnation' && !this.#isOwn()) {
        this.#replaced();
        throw error;
      }
      if (code !== 'must_register' && code !== 'stale_incarnation') throw error;
      this.#incarnation = null;
      this.#lease.end();
      return this.#register(connection);
    }
    if (this.#connection !== connection) return;
    if (resumes === null) {
      this.#lease.end();
      this.#answered(sentAtMs);
    }
    this.#incarnation = answer.incarnation;
    this.#hasRegistered = true;
    this.#lifecycle = answer.lifecycle;
    this.#heartbeatMs = answer.heartbeatMs;
    this.#leaseMs = answer.leaseMs;
    this.#marginMs = answer.marginMs;
    handlers.onRegistered?.(answer.incarnation, resumes !== null, answer.revision);
  }

  #answered(sentAtMs: number): void {
    this.#unansweredAtMs = this.#unansweredAtMs.filter((atMs) => atMs !== sentAtMs);
  }

  /** Whether the registration that replaced this one may be ours, sent before and applied late. Each explains one. */
  #isOwn(): boolean {
    const sinceMs = this.#options.clock.now() - UNANSWERED_MS;
    this.#unansweredAtMs = this.#unansweredAtMs.filter((atMs) => atMs >= sinceMs);
    return this.#unansweredAtMs.shift() !== undefined;
  }

  #beat(connection: BrokerConnection): void {
    const { clock } = this.#options;
    this.#beatTimer = clock.setTimeout(() => this.#beat(connection), this.#heartbeatMs);
    // A node that no longer answers, or reaches no leader for a whole lease, is left for another.
    const deafMs = clock.now() - connection.heardAtMs;
    if (deafMs > this.#leaseMs / 2 || clock.now() - this.#answeredAtMs > this.#leaseMs) {
      this.#drop(connection);
      return;
    }
    if (this.#beatsUnanswered >= MAX_BEATS_UNANSWERED) return;
    const incarnation = this.#incarnation;
    const sentAt = this.#lease.moment();
    this.#beatsUnanswered++;
    const answered = (answer: BrokerAnswers['heartbeat']): void => {
      if (this.#connection !== connection) return;
      this.#beatsUnanswered--;
      if (this.#incarnation !== incarnation) return;
      this.#answeredAtMs = clock.now();
      this.#lifecycle = answer.lifecycle;
      this.#lease.renew(sentAt, { leaseMs: answer.leaseMs, marginMs: this.#marginMs });
      this.#options.handlers.onHeartbeat?.(answer);
    };
    const refused = (error: unknown): void => {
      if (this.#connection !== connection) return;
      this.#beatsUnanswered--;
      const code = error instanceof EvenkeelError ? error.code : null;
      if (code === 'must_register' || code === 'stale_incarnation') this.#drop(connection);
    };
    // An error of the handler is not taken for a refusal.
    unawaited(connection.request('heartbeat', { incarnation }, this.#leaseMs).then(answered, refused));
  }

  #take(push: BrokerPush): void {
    const update = this.view.take(push);
    if (update !== null) this.#options.handlers.onView?.(update);
  }

  #lost(code: number): void {
    if (code === CLOSE.replaced) {
      if (!this.#isOwn()) {
        this.#replaced();
        return;
      }
      this.#incarnation = null;
      this.#lease.end();
    }
    this.#disconnected();
    this.#again();
  }

  #drop(connection: BrokerConnection): void {
    this.#disconnected();
    connection.terminate();
    this.#again();
  }

  #disconnected(): void {
    this.#connection = null;
    this.#ready = false;
    this.view.interrupt();
    this.#clearTimers();
  }

  #replaced(): void {
    const connection = this.#connection;
    this.#disconnected();
    this.#stopped = true;
    this.#lease.end();
    connection?.terminate();
    this.#options.handlers.onReplaced?.();
  }

  #again(): void {
    if (this.#stopped || this.#timer !== null) return;
    const { clock, random } = this.#options;
    const jitter = 0.5 + random.nextUint32() / 2 ** 33;
    this.#timer = clock.setTimeout(() => unawaited(this.#dial()), this.#backoffMs * jitter);
    this.#backoffMs = Math.min(this.#backoffMs * 2, LAST_BACKOFF_MS);
  }

  #clearTimers(): void {
    const { clock } = this.#options;
    if (this.#timer !== null) clock.clearTimeout(this.#timer);
    if (this.#beatTimer !== null) clock.clearTimeout(this.#beatTimer);
    this.#timer = null;
    this.#beatTimer = null;
  }
}
