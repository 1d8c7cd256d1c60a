import type { Clock, Timer } from '../../raft/index.ts';
import {
  brokerCodec,
  type BrokerAnswers,
  type BrokerCodec,
  type BrokerPush,
  type BrokerRequestType,
} from '../broker-protocol.ts';
import { ERRORS, EvenkeelError, type ErrorCode } from '../errors.ts';
import type { Connection } from '../net.ts';

interface Pending {
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: EvenkeelError) => void;
  readonly timer: Timer;
}

/** One connection to a node: requests by number, their answers, and pushes. */
export class BrokerConnection {
  readonly #connection: Connection;
  readonly #clock: Clock;
  readonly #codec: BrokerCodec;
  readonly #pending = new Map<number, Pending>();
  #lastId = 0;
  #closed = false;
  /** When anything last came in, on the monotonic clock. */
  heardAtMs: number;

  constructor(
    connection: Connection,
    clock: Clock,
    handlers: { onPush: (push: BrokerPush) => void; onClose: (code: number, reason: string) => void },
  ) {
    this.#connection = connection;
    this.#clock = clock;
    this.#codec = brokerCodec(connection.subprotocol);
    this.heardAtMs = clock.now();
    connection.onMessage = (frame) => this.#take(frame, handlers.onPush);
    connection.onClose = (code, reason) => {
      this.#fail(`the connection was closed (${code} ${reason})`);
      handlers.onClose(code, reason);
    };
  }

  /** Rejects with what the node answered, or `outcome_unknown` where it did not within `timeoutMs`. */
  request<T extends BrokerRequestType>(
    type: T,
    fields: Readonly<Record<string, unknown>>,
    timeoutMs: number,
  ): Promise<BrokerAnswers[T]> {
    return new Promise((resolve, reject) => {
      if (this.#closed) {
        reject(new EvenkeelError('unreachable', `${type} was not sent: the connection is closed`));
        return;
      }
      const id = ++this.#lastId;
      const timer = this.#clock.setTimeout(() => {
        this.#pending.delete(id);
        reject(new EvenkeelError('outcome_unknown', `${type} was not answered within ${timeoutMs} ms`));
      }, timeoutMs);
      this.#pending.set(id, { resolve: (answer) => resolve(answer as BrokerAnswers[T]), reject, timer });
      this.#connection.send(this.#codec.encode({ id, type, ...fields }));
    });
  }

  close(code: number, reason: string): void {
    this.#fail('the connection was closed here');
    this.#connection.close(code, reason);
  }

  terminate(): void {
    this.#fail('the connection was dropped here');
    this.#connection.terminate();
  }

  #fail(why: string): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const { reject, timer } of this.#pending.values()) {
      this.#clock.clearTimeout(timer);
      reject(new EvenkeelError('outcome_unknown', `not answered: ${why}`));
    }
    this.#pending.clear();
  }

  #take(frame: string | Uint8Array, onPush: (push: BrokerPush) => void): void {
    if (this.#closed) return;
    this.heardAtMs = this.#clock.now();
    let message: { id?: unknown; type?: unknown };
    try {
      message = this.#codec.decode(frame) as typeof message;
    } catch {
      this.terminate();
      return;
    }
    if (typeof message.id !== 'number') {
      onPush(message as BrokerPush);
      return;
    }
    const pending = this.#pending.get(message.id);
    if (pending === undefined) return;
    this.#pending.delete(message.id);
    this.#clock.clearTimeout(pending.timer);
    if (message.type === 'error') pending.reject(readError((message as { error?: unknown }).error));
    else pending.resolve(message);
  }
}

/** An error as a node sent it; a code this version does not know is `internal`. */
function readError(body: unknown): EvenkeelError {
  const { code, message, data } = (body ?? {}) as { code?: unknown; message?: unknown; data?: unknown };
  const known = typeof code === 'string' && code in ERRORS ? (code as ErrorCode) : 'internal';
  const text = typeof message === 'string' ? message : String(code);
  return new EvenkeelError(known, text, (data ?? {}) as Readonly<Record<string, unknown>>);
}
