import type { Clock } from '../../raft/index.ts';
import { EvenkeelError } from '../errors.ts';
import { jsonInSlices, type JsonText } from '../json-in-slices.ts';

/** The longest answer of one call, bytes: an export of the largest state. */
export const MAX_ANSWER_BYTES = 256 * 1024 * 1024;
/** All answers of one batch together, bytes. */
export const MAX_BATCH_BYTES = 16 * 1024 * 1024;
/** Text that a node keeps for admin clients who have not read it yet, bytes. */
export const MAX_OUTBOUND_BYTES = 512 * 1024 * 1024;
/** An answer up to here is always given: a full node can be asked what is wrong, and a write of a batch is told what it did. */
const SMALL_ANSWER_BYTES = 16 * 1024;
/** Calls at once whose answers are made of the whole state: each holds rows by the hundred thousand until it is written. */
export const MAX_LARGE_CALLS = 2;

/** An answer as text, counted in the node's outbound bytes until `release`. */
export interface Reply extends JsonText {
  release(): void;
}

/** What one node has written for its admin clients and they have not read yet: bounded in all. */
export class Outbound {
  readonly #clock: Clock;
  #bytes = 0;
  #largeCalls = 0;
  #waiting: (() => void)[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get isFull(): boolean {
    return this.#bytes >= MAX_OUTBOUND_BYTES;
  }

  /** Rejects with `limit_exceeded` for one that is too long, with `overloaded` where too much is unread already. */
  async write(value: unknown, maxBytes = MAX_ANSWER_BYTES): Promise<Reply> {
    const text = await jsonInSlices(value, this.#clock, Math.max(maxBytes, SMALL_ANSWER_BYTES));
    if (text.bytes > SMALL_ANSWER_BYTES && this.#bytes + text.bytes > MAX_OUTBOUND_BYTES) {
      const message = `clients of this node leave ${this.#bytes} bytes of answers unread; ask another node, or try again later`;
      throw new EvenkeelError('overloaded', message);
    }
    return this.hold(text);
  }

  /** Counts text in that is sent whatever others leave unread. */
  hold({ pieces, bytes }: JsonText): Reply {
    let held = bytes;
    this.#bytes += held;
    return {
      pieces,
      bytes,
      release: () => {
        this.#bytes -= held;
        held = 0;
      },
    };
  }

  /** Resolves, in the order asked, once a call may build an answer out of the whole state; the answer ends its turn. */
  async enterLarge(): Promise<() => void> {
    if (this.#largeCalls >= MAX_LARGE_CALLS) {
      await new Promise<void>((resolve) => void this.#waiting.push(resolve));
    } else this.#largeCalls += 1;
    let inside = true;
    return () => {
      if (!inside) return;
      inside = false;
      const next = this.#waiting.shift();
      if (next === undefined) this.#largeCalls -= 1;
      else next();
    };
  }
}

/** Text of our own, sent whatever others leave unread. */
export function textOf(value: unknown): JsonText {
  const text = JSON.stringify(value);
  return { pieces: [text], bytes: Buffer.byteLength(text) };
}

/** Several texts as one, with what stands around and between them. */
export function joined(before: string, replies: readonly Reply[], between: string, after: string): Reply {
  const pieces = [before];
  for (const [i, reply] of replies.entries()) {
    if (i > 0) pieces.push(between);
    for (const piece of reply.pieces) pieces.push(piece);
  }
  pieces.push(after);
  const around = Buffer.byteLength(before + after) + between.length * Math.max(0, replies.length - 1);
  return {
    pieces,
    bytes: replies.reduce((sum, { bytes }) => sum + bytes, around),
    release: () => {
      for (const reply of replies) reply.release();
    },
  };
}
