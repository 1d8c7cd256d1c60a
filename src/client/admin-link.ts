import type { Clock, Timer } from '../../raft/index.ts';
import { ERRORS, EvenkeelError, type ErrorCode } from '../errors.ts';
import type { Connection, Net } from '../net.ts';

/** The largest answer taken, bytes: an export of a million shards. */
const MAX_ANSWER_BYTES = 512 * 1024 * 1024;
const CLOSE_NORMAL = 1000;

export interface Notification {
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
}

/** An answer: the envelope, and what the method adds. */
export interface AdminAnswer extends Readonly<Record<string, unknown>> {
  readonly revision: number;
  readonly term: number;
  readonly leaderId: string | null;
}

interface Pending {
  readonly resolve: (answer: AdminAnswer) => void;
  readonly reject: (error: EvenkeelError) => void;
  readonly timer: Timer;
}

/** One open WebSocket to a node's `/rpc`. Once lost it stays lost. */
export class RpcLink {
  readonly endpoint: string;
  readonly #connection: Connection;
  readonly #clock: Clock;
  readonly #pending = new Map<number, Pending>();
  #lastId = 0;
  #lost = false;
  onNotification: (notification: Notification) => void = () => {};
  onLost: () => void = () => {};

  private constructor(endpoint: string, connection: Connection, clock: Clock) {
    this.endpoint = endpoint;
    this.#connection = connection;
    this.#clock = clock;
    connection.onMessage = (data) => this.#take(data);
    connection.onClose = (code, reason) => this.#lose(`${code}${reason === '' ? '' : ` ${reason}`}`);
  }

  /** Rejects with `unreachable`. */
  static async open(net: Net, clock: Clock, endpoint: string, timeoutMs: number): Promise<RpcLink> {
    try {
      const options = { path: '/rpc', maxPayloadBytes: MAX_ANSWER_BYTES, timeoutMs };
      return new RpcLink(endpoint, await net.connect(endpoint, options), clock);
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      throw new EvenkeelError('unreachable', `cannot reach ${endpoint}: ${why}`);
    }
  }

  get lost(): boolean {
    return this.#lost;
  }

  /** Rejects with the node's error, or with `unreachable` when the link goes or nothing comes within `timeoutMs`. */
  request(method: string, params: object, timeoutMs: number): Promise<AdminAnswer> {
    const id = (this.#lastId += 1);
    return new Promise((resolve, reject) => {
      if (this.#lost) {
        reject(new EvenkeelError('unreachable', `the connection to ${this.endpoint} is closed`));
        return;
      }
      const timer = this.#clock.setTimeout(() => {
        this.#connection.terminate();
        this.#lose(`no answer within ${timeoutMs} ms`);
      }, timeoutMs);
      this.#pending.set(id, { resolve, reject, timer });
      this.#connection.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }));
    });
  }

  close(): void {
    this.#connection.close(CLOSE_NORMAL, '');
    this.#lose('closed here');
  }

  #take(data: string | Uint8Array): void {
    const message: unknown = typeof data === 'string' ? JSON.parse(data) : null;
    if (!isObject(message)) return;
    if (typeof message['method'] === 'string' && isObject(message['params'])) {
      this.onNotification({ method: message['method'], params: message['params'] });
      return;
    }
    const pending = this.#pending.get(Number(message['id']));
    if (pending === undefined) return;
    this.#pending.delete(Number(message['id']));
    this.#clock.clearTimeout(pending.timer);
    if (isAnswer(message['result'])) pending.resolve(message['result']);
    else pending.reject(errorOf(message['error']));
  }

  #lose(why: string): void {
    if (this.#lost) return;
    this.#lost = true;
    for (const { reject, timer } of this.#pending.values()) {
      this.#clock.clearTimeout(timer);
      reject(new EvenkeelError('unreachable', `lost the connection to ${this.endpoint}: ${why}`));
    }
    this.#pending.clear();
    this.onLost();
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

function isAnswer(value: unknown): value is AdminAnswer {
  return isObject(value) && typeof value['revision'] === 'number';
}

function errorOf(value: unknown): EvenkeelError {
  if (!isObject(value) || !isObject(value['data'])) {
    return new EvenkeelError('protocol_error', 'the node answered something that is no JSON-RPC');
  }
  const { code, ...data } = value['data'];
  const known = typeof code === 'string' && Object.hasOwn(ERRORS, code) ? (code as ErrorCode) : 'internal';
  return new EvenkeelError(known, String(value['message']), data);
}
