import type { Clock } from '../../raft/index.ts';
import type { Connection } from '../net.ts';
import type { Reply } from './outbound.ts';
import { ReadPace } from './read-pace.ts';

/** Handed to the connection ahead of what the system has taken, bytes. */
const HIGH_WATER_BYTES = 256 * 1024;
/** How often a connection that is behind is looked at, ms. */
const POLL_MS = 5;

interface Sent {
  readonly reply: Reply;
  /** Bytes sent on this connection once its last piece was. */
  readonly end: number;
}

/**
 * Everything that one admin connection is sent, in order: the next piece follows once the system has taken most of those
 * before it. Text counts as unread until then. A client that does not read is reported once.
 */
export class Outbox {
  readonly #connection: Connection;
  readonly #clock: Clock;
  readonly #onStuck: () => void;
  #queue: Reply[] = [];
  #nextPiece = 0;
  #sentBytes = 0;
  #unread: Sent[] = [];
  #waitingBytes = 0;
  #pace: ReadPace | null = null;
  #ended = false;

  constructor(connection: Connection, clock: Clock, onStuck: () => void) {
    this.#connection = connection;
    this.#clock = clock;
    this.#onStuck = onStuck;
  }

  /** Bytes that the system has not taken yet. */
  get waitingBytes(): number {
    return this.#waitingBytes + this.#connection.bufferedBytes;
  }

  send(reply: Reply): void {
    if (this.#ended) {
      reply.release();
      return;
    }
    this.#queue.push(reply);
    this.#waitingBytes += reply.bytes;
    if (this.#pace === null) this.#pump();
  }

  /** The connection is gone. */
  end(): void {
    this.#ended = true;
    for (const reply of this.#queue) reply.release();
    for (const { reply } of this.#unread) reply.release();
    this.#queue = [];
    this.#unread = [];
  }

  #pump(): void {
    if (this.#ended) return;
    while (this.#queue.length > 0 && this.#connection.bufferedBytes < HIGH_WATER_BYTES) this.#sendPiece();
    const taken = this.#sentBytes - this.#connection.bufferedBytes;
    while (this.#unread[0] !== undefined && this.#unread[0].end <= taken)
      this.#unread.shift()?.reply.release();
    if (this.#queue.length + this.#unread.length === 0) {
      this.#pace = null;
      return;
    }
    this.#pace ??= new ReadPace(this.#clock.now(), taken);
    if (this.#pace.isTooSlow(this.#clock.now(), taken)) {
      this.#onStuck();
      return;
    }
    // Deferred once more: after a stall of our own the system first takes what it can.
    this.#clock.setTimeout(() => this.#clock.defer(() => this.#pump()), POLL_MS);
  }

  #sendPiece(): void {
    const [reply] = this.#queue;
    if (reply === undefined) return;
    const piece = reply.pieces[this.#nextPiece] ?? '';
    this.#nextPiece += 1;
    const bytes = Buffer.byteLength(piece);
    this.#sentBytes += bytes;
    this.#waitingBytes -= bytes;
    const last = this.#nextPiece >= reply.pieces.length;
    this.#connection.send(piece, !last);
    if (!last) return;
    this.#nextPiece = 0;
    this.#queue.shift();
    this.#unread.push({ reply, end: this.#sentBytes });
  }
}
