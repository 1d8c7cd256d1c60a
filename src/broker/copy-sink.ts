import type { Clock, Timer } from '../../raft/index.ts';
import { brokerCodec, MSGPACK_SUBPROTOCOL } from '../broker-protocol.ts';
import type { Connection, Net } from '../net.ts';
import { unawaited } from '../unawaited.ts';
import {
  COPY_PATH,
  COPY_SUBPROTOCOL,
  MAX_COPY_FRAME_BYTES,
  type FollowMessage,
  type LeadMessage,
} from './copy-protocol.ts';
import type { ShardLog } from './record-store.ts';

const codec = brokerCodec(MSGPACK_SUBPROTOCOL);
const CONNECT_TIMEOUT_MS = 2_000;
/** Between attempts to reach a leader, and between requests that it refused, ms. */
const RETRY_MS = 200;

export interface CopySinkOptions {
  readonly net: Net;
  readonly clock: Clock;
  readonly clusterId: string;
  readonly self: string;
  /** The leader's address for copying. */
  readonly address: string;
  /** This broker's registration. */
  readonly incarnation: number;
}

interface Followed {
  readonly log: ShardLog;
  readonly epoch: number;
}

/** Fetches the copies of every shard that one other broker leads, over one connection that is dialled for ever. */
export class CopySink {
  readonly #options: CopySinkOptions;
  readonly #followed = new Map<string, Followed>();
  #connection: Connection | null = null;
  #timer: Timer | null = null;
  readonly #retries = new Set<Timer>();
  #closed = false;

  constructor(options: CopySinkOptions) {
    this.#options = options;
    unawaited(this.#dial());
  }

  get address(): string {
    return this.#options.address;
  }

  get incarnation(): number {
    return this.#options.incarnation;
  }

  get isIdle(): boolean {
    return this.#followed.size === 0;
  }

  /** Keeps a copy of the shard as it is led at that epoch. */
  follow(log: ShardLog, epoch: number): void {
    const known = this.#followed.get(log.shard);
    if (known?.epoch === epoch && known.log === log) return;
    this.#followed.set(log.shard, { log, epoch });
    this.#ask(log.shard, epoch);
  }

  unfollow(shard: string): void {
    if (this.#followed.delete(shard)) this.#send({ type: 'unfollow', shard });
  }

  close(): void {
    this.#closed = true;
    const { clock } = this.#options;
    if (this.#timer !== null) clock.clearTimeout(this.#timer);
    for (const timer of this.#retries) clock.clearTimeout(timer);
    this.#connection?.close(1000, 'nothing more to follow');
    this.#connection = null;
  }

  async #dial(): Promise<void> {
    this.#timer = null;
    const { net, address, clusterId, self, incarnation } = this.#options;
    let connection: Connection;
    try {
      connection = await net.connect(address, {
        path: COPY_PATH,
        subprotocol: COPY_SUBPROTOCOL,
        maxPayloadBytes: MAX_COPY_FRAME_BYTES,
        timeoutMs: CONNECT_TIMEOUT_MS,
      });
    } catch {
      this.#again();
      return;
    }
    if (this.#closed) {
      connection.close(1000, 'nothing more to follow');
      return;
    }
    this.#connection = connection;
    connection.onMessage = (frame) => this.#take(connection, frame);
    connection.onClose = () => {
      if (this.#connection !== connection) return;
      this.#connection = null;
      this.#again();
    };
    this.#send({ type: 'hello', clusterId, broker: self, incarnation });
    for (const [shard, { epoch }] of this.#followed) this.#ask(shard, epoch);
  }

  #again(): void {
    if (this.#closed || this.#timer !== null) return;
    this.#timer = this.#options.clock.setTimeout(() => unawaited(this.#dial()), RETRY_MS);
  }

  #ask(shard: string, epoch: number): void {
    const followed = this.#followed.get(shard);
    if (followed?.epoch !== epoch) return;
    const { log } = followed;
    this.#send({ type: 'follow', shard, epoch, end: log.end, lastEpoch: log.epochBefore(log.end) });
  }

  #send(message: FollowMessage): void {
    this.#connection?.send(codec.encode(message));
  }

  #take(connection: Connection, frame: string | Uint8Array): void {
    let message: LeadMessage;
    try {
      message = readLead(codec.decode(frame));
    } catch {
      connection.terminate();
      return;
    }
    const followed = this.#followed.get(message.shard);
    // Of an epoch that is over, or of a shard that is no longer followed here.
    if (followed?.epoch !== message.epoch) return;
    this.#obey(connection, followed, message).catch(() => {
      // A failed disk stops this broker by way of its store. A log that is no longer followed was dropped. Otherwise the
      // leader sent what does not fit: on a new connection both compare their logs again.
      if (this.#followed.get(message.shard) === followed) connection.terminate();
    });
  }

  async #obey(connection: Connection, { log, epoch }: Followed, message: LeadMessage): Promise<void> {
    const { shard } = log;
    switch (message.type) {
      case 'records': {
        const records = message.records.map(([of, payload]) => ({ epoch: of, payload }));
        const end = await log.appendAt(message.from, records);
        if (end === null) {
          this.#ask(shard, epoch);
          return;
        }
        if (this.#connection === connection && this.#followed.get(shard)?.epoch === epoch) {
          this.#send({ type: 'ack', shard, epoch, end });
        }
        return;
      }
      case 'truncate':
        await log.truncate(message.to);
        this.#ask(shard, epoch);
        return;
      case 'refused': {
        const timer = this.#options.clock.setTimeout(() => {
          this.#retries.delete(timer);
          this.#ask(shard, epoch);
        }, RETRY_MS);
        this.#retries.add(timer);
      }
    }
  }
}

/** Checks the fields that are used; throws what is wrong. */
function readLead(message: unknown): LeadMessage {
  const m = (typeof message === 'object' && message !== null ? message : {}) as Record<string, unknown>;
  const fits =
    typeof m['shard'] === 'string' &&
    isCount(m['epoch']) &&
    (m['type'] === 'refused' ||
      (m['type'] === 'truncate' && isCount(m['to'])) ||
      (m['type'] === 'records' && isCount(m['from']) && areRecords(m['records'])));
  if (!fits) throw new Error('not a message of this protocol');
  return message as LeadMessage;
}

function areRecords(value: unknown): boolean {
  if (!Array.isArray(value)) return false;
  return value.every((one) => Array.isArray(one) && isCount(one[0]) && one[1] instanceof Uint8Array);
}

function isCount(value: unknown): boolean {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}
