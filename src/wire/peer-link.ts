import type { Clock, MemberId, Message, Random, Timer } from '../../raft/index.ts';
import { EvenkeelError } from '../errors.ts';
import type { Logger } from '../logger.ts';
import type { Connection, Net } from '../net.ts';
import { OutgoingCalls } from './peer-calls.ts';
import {
  decodePeerFrame,
  encodeMessages,
  encodePeerFrame,
  type Lane,
  type PeerIdentity,
} from './peer-codec.ts';
import { dialPeer } from './peer-dial.ts';
import { LANE_RULES, laneOf } from './peer-lanes.ts';
import { MAX_SNAPSHOT_BYTES } from './peer-messages.ts';

const BACKOFF_MIN_MS = 20;
const BACKOFF_MAX_MS = 1_000;

/**
 * closed: not started, or stopped. connecting: the first attempt, or one after a wait. open: all lanes
 * answered their hello. retrying: a lane closed and the one immediate reconnect is under way. waiting: the
 * next attempt comes after a random back-off.
 */
type LinkState = 'closed' | 'connecting' | 'open' | 'retrying' | 'waiting';

const NEXT_STATES: Readonly<Record<LinkState, readonly LinkState[]>> = {
  closed: ['connecting'],
  connecting: ['open', 'waiting', 'closed'],
  open: ['retrying', 'closed'],
  retrying: ['open', 'waiting', 'closed'],
  waiting: ['connecting', 'closed'],
};

export interface PeerLinkOptions {
  readonly net: Net;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly self: PeerIdentity;
  readonly peer: MemberId;
  readonly address: string;
  /** Whether that identity may be the peer; a reason where not. */
  readonly admit: (identity: PeerIdentity) => EvenkeelError | null;
  readonly onUp: (identity: PeerIdentity) => void;
  readonly onDown: () => void;
}

/** The sockets this member dialed to one peer: all it says to that peer goes over them. */
export class PeerLink {
  readonly #options: PeerLinkOptions;
  readonly #calls: OutgoingCalls;
  #state: LinkState = 'closed';
  #lanes: ReadonlyMap<Lane, Connection> = new Map();
  /** Who answered the last hello. */
  #identity: PeerIdentity | null = null;
  /** `onUp` was told and `onDown` not yet. */
  #reported = false;
  #backoffMs = BACKOFF_MIN_MS;
  #timer: Timer | null = null;
  /** Rises with each attempt and each stop: what an older one still brings is void. */
  #attempt = 0;
  #lastComplaint = '';
  #refusal: string | null = null;

  constructor(options: PeerLinkOptions) {
    this.#options = options;
    this.#calls = new OutgoingCalls(options.clock, options.peer);
  }

  get isOpen(): boolean {
    return this.#state === 'open';
  }

  /** Up as `onUp` and `onDown` tell it: a lost connection counts until one reconnect has failed. */
  get isReported(): boolean {
    return this.#reported;
  }

  get identity(): PeerIdentity | null {
    return this.#identity;
  }

  /** Bytes that wait in this process for the peer to read. */
  get bufferedBytes(): number {
    let bytes = 0;
    for (const lane of this.#lanes.values()) bytes += lane.bufferedBytes;
    return bytes;
  }

  start(): void {
    if (this.#state === 'closed') this.#connect('connecting');
  }

  stop(): void {
    if (this.#state === 'closed') return;
    this.#enter('closed');
    this.#drop();
    this.#clearTimer();
  }

  /** Sends at once, in as few frames as it fits; nothing where the peer is not connected. */
  send(messages: readonly Message[]): void {
    if (this.#state !== 'open') return;
    this.#sendOn('control', messages);
    this.#sendOn('log', messages);
  }

  call(method: string, params: Uint8Array, deadlineMs: number): Promise<Uint8Array> {
    return this.#calls.start({ method, params, deadlineMs }, (frame) => {
      const { peer } = this.#options;
      const lane = this.#state === 'open' ? this.#lanes.get('calls') : undefined;
      if (lane === undefined) throw this.#unreachable();
      if (lane.bufferedBytes > LANE_RULES.calls.maxBufferedBytes) {
        throw new EvenkeelError('overloaded', `${peer} does not read what it is sent`);
      }
      lane.send(encodePeerFrame(frame));
    });
  }

  /** What a call gets that cannot be sent; `data.refusal` is the code the peer turned this member away with. */
  #unreachable(): EvenkeelError {
    const why = this.#lastComplaint === '' ? '' : `: ${this.#lastComplaint}`;
    const data = this.#refusal === null ? {} : { refusal: this.#refusal };
    return new EvenkeelError('unavailable', `${this.#options.peer} cannot be reached now${why}`, data);
  }

  /** The peer said hello by itself. One that was started anew counts as a closed socket. */
  heard(identity: PeerIdentity): void {
    if (this.#state === 'open' && this.#identity?.bootId !== identity.bootId) this.#lost();
    // It is there: no reason to wait longer.
    else if (this.#state === 'waiting') this.#connect('connecting');
  }

  /** Who may answer has changed: says hello anew. */
  redial(): void {
    if (this.#state === 'open') this.#lost();
  }

  #connect(state: 'connecting' | 'retrying'): void {
    this.#enter(state);
    this.#clearTimer();
    this.#attempt += 1;
    const attempt = this.#attempt;
    const { net, clock, self, peer, address, admit } = this.#options;
    const hooks = {
      onFrame: (data: string | Uint8Array) => this.#received(attempt, data),
      onClosed: () => this.#laneClosed(attempt),
    };
    dialPeer({ net, clock, self, peer, address, admit, ...hooks }).then(
      ({ lanes, identity }) => this.#opened(attempt, lanes, identity),
      (error: unknown) => this.#failed(attempt, error),
    );
  }

  #opened(attempt: number, lanes: ReadonlyMap<Lane, Connection>, identity: PeerIdentity): void {
    if (attempt !== this.#attempt || this.#state === 'closed') {
      for (const connection of lanes.values()) connection.terminate();
      return;
    }
    this.#enter('open');
    this.#lanes = lanes;
    this.#backoffMs = BACKOFF_MIN_MS;
    this.#lastComplaint = '';
    this.#refusal = null;
    const before = this.#identity?.directoryId;
    if (before !== undefined && before !== identity.directoryId) {
      const fields = { peer: identity.memberId, before, now: identity.directoryId };
      this.#options.logger.warn(fields, 'peer came back with another data directory');
    }
    const sameBoot = this.#identity?.bootId === identity.bootId;
    this.#identity = identity;
    if (this.#reported && sameBoot) return;
    this.#reportDown();
    this.#reported = true;
    this.#options.logger.info({ peer: identity.memberId, boot: identity.bootCount }, 'peer connected');
    this.#options.onUp(identity);
  }

  #failed(attempt: number, error: unknown): void {
    if (attempt !== this.#attempt || this.#state === 'closed') return;
    const { clock, random, logger, peer, address } = this.#options;
    // Its other lanes, which still close, are void.
    this.#attempt += 1;
    this.#enter('waiting');
    const reason = error instanceof Error ? error.message : String(error);
    // Once a reason, not once an attempt.
    if (reason !== this.#lastComplaint) logger.warn({ peer, address, reason }, 'cannot connect to peer');
    this.#lastComplaint = reason;
    const refused = error instanceof EvenkeelError && error.code === 'refused';
    this.#refusal = refused && typeof error.data['reason'] === 'string' ? error.data['reason'] : null;
    const part = random.nextUint32() / 0x1_0000_0000;
    const delayMs = this.#backoffMs * (0.5 + part / 2);
    this.#backoffMs = Math.min(this.#backoffMs * 2, BACKOFF_MAX_MS);
    this.#timer = clock.setTimeout(() => this.#connect('connecting'), delayMs);
    this.#reportDown();
  }

  #laneClosed(attempt: number): void {
    if (attempt === this.#attempt && this.#state === 'open') this.#lost();
    // A lane that closes while others are still being dialed: the attempt cannot succeed any more.
    else if (attempt === this.#attempt && this.#state !== 'closed') {
      this.#attempt += 1;
      this.#failed(this.#attempt, new EvenkeelError('unreachable', `${this.#options.peer} hung up`));
    }
  }

  /** All lanes go together: a peer that lost one is not connected. */
  #lost(): void {
    this.#drop();
    this.#connect('retrying');
  }

  #drop(): void {
    this.#attempt += 1;
    const lanes = this.#lanes;
    this.#lanes = new Map();
    for (const connection of lanes.values()) connection.terminate();
    this.#calls.lose();
  }

  #received(attempt: number, data: string | Uint8Array): void {
    if (attempt !== this.#attempt) return;
    const { logger, peer } = this.#options;
    try {
      if (typeof data === 'string') throw new EvenkeelError('protocol_error', 'a text frame from a peer');
      const frame = decodePeerFrame(data);
      if (frame.kind !== 'answer' && frame.kind !== 'failure') {
        throw new EvenkeelError('protocol_error', `a ${frame.kind} on a dialed connection`);
      }
      this.#calls.settle(frame);
    } catch (error) {
      logger.warn(
        { peer, reason: error instanceof Error ? error.message : String(error) },
        'peer talks nonsense',
      );
      this.#lost();
    }
  }

  /** Drops what the peer does not read fast enough: Raft repeats what matters. */
  #sendOn(lane: 'control' | 'log', all: readonly Message[]): void {
    const connection = this.#lanes.get(lane);
    const messages = all.filter((message) => laneOf(message) === lane && this.#fits(message));
    if (connection === undefined || messages.length === 0) return;
    for (const frame of encodeMessages(this.#header(), messages)) {
      if (connection.bufferedBytes > LANE_RULES[lane].maxBufferedBytes) return;
      connection.send(frame);
    }
  }

  #fits(message: Message): boolean {
    if (message.type !== 'snapshot' || message.snapshot.data.byteLength <= MAX_SNAPSHOT_BYTES) return true;
    const { logger, peer } = this.#options;
    const { byteLength } = message.snapshot.data;
    logger.error({ peer, bytes: byteLength, limit: MAX_SNAPSHOT_BYTES }, 'snapshot too large to send');
    return false;
  }

  #header() {
    const { self, peer } = this.#options;
    return {
      clusterId: self.clusterId,
      from: self.memberId,
      to: peer,
      fromDirectory: self.directoryId,
      toDirectory: this.#identity?.directoryId ?? '',
      bootId: self.bootId,
    };
  }

  #reportDown(): void {
    if (!this.#reported) return;
    this.#reported = false;
    this.#options.logger.info({ peer: this.#options.peer }, 'peer disconnected');
    this.#options.onDown();
  }

  #clearTimer(): void {
    if (this.#timer !== null) this.#options.clock.clearTimeout(this.#timer);
    this.#timer = null;
  }

  #enter(next: LinkState): void {
    if (!NEXT_STATES[this.#state].includes(next)) throw new Error(`peer link: ${this.#state} to ${next}`);
    this.#state = next;
  }
}
