import { quote } from '../command/index.ts';
import { EvenkeelError } from '../errors.ts';
import { parseStrictJson } from '../strict-json.ts';
import { joined, MAX_BATCH_BYTES, textOf, type Reply } from './outbound.ts';
import type { Caller } from './rpc-call.ts';
import { findMethod } from './rpc-registry.ts';
import type { Subscriber } from './rpc-types.ts';

/** Requests in one batch; a longer one is refused whole. */
export const MAX_BATCH = 100;

/** Faults of the protocol itself (JSON-RPC 2.0, section 5.1). */
const PARSE_ERROR = -32700;
const INVALID_REQUEST = -32600;
const INVALID_PARAMS = -32602;

/** What runs the calls of a message and words their errors. */
export type Calls = Pick<Caller, 'call' | 'describe' | 'outbound'>;

type Id = string | number | null;

/**
 * Answers one JSON-RPC 2.0 message: a request, a notification or a batch of them. Resolves with the text to
 * send, or `null` where nothing is owed (notifications).
 */
export async function answerJsonRpc(
  text: string,
  caller: Calls,
  subscriber: Subscriber | null,
): Promise<Reply | null> {
  let message: unknown;
  try {
    message = parseStrictJson(text, 'the message');
  } catch (error) {
    const what = error instanceof Error ? error.message : String(error);
    return new Answering(caller, subscriber, null).fault(null, PARSE_ERROR, what);
  }
  if (!Array.isArray(message)) return new Answering(caller, subscriber, null).one(message);
  const answering = new Answering(caller, subscriber, MAX_BATCH_BYTES);
  if (message.length === 0) return answering.fault(null, INVALID_REQUEST, 'an empty batch');
  if (message.length > MAX_BATCH) {
    const error = new EvenkeelError('limit_exceeded', `a batch holds at most ${MAX_BATCH} requests`);
    return answering.refusal(null, error);
  }
  const replies = await Promise.all(message.map((one: unknown) => answering.one(one)));
  const owed = replies.filter((reply) => reply !== null);
  return owed.length === 0 ? null : joined('[', owed, ',', ']');
}

/** The answers to one message. */
class Answering {
  readonly #caller: Calls;
  readonly #subscriber: Subscriber | null;
  /** What is left of the batch's bytes; `null`: the message is no batch. */
  #left: number | null;

  constructor(caller: Calls, subscriber: Subscriber | null, maxBytes: number | null) {
    this.#caller = caller;
    this.#subscriber = subscriber;
    this.#left = maxBytes;
  }

  async one(message: unknown): Promise<Reply | null> {
    if (typeof message !== 'object' || message === null || Array.isArray(message)) {
      return this.fault(null, INVALID_REQUEST, 'a request is an object');
    }
    const { jsonrpc, id, method, params } = message as Record<string, unknown>;
    const known = id === undefined || isId(id) ? (id ?? null) : null;
    if (jsonrpc !== '2.0') return this.fault(known, INVALID_REQUEST, '"jsonrpc" must be "2.0"');
    if (id !== undefined && !isId(id)) {
      return this.fault(null, INVALID_REQUEST, '"id" must be a string, a number or null');
    }
    if (typeof method !== 'string') return this.fault(known, INVALID_REQUEST, '"method" must be a string');
    const reply = await this.#run(known, method, params);
    if (id !== undefined) return reply;
    reply.release();
    return null;
  }

  async #run(id: Id, name: string, params: unknown): Promise<Reply> {
    if (params !== undefined && (typeof params !== 'object' || params === null || Array.isArray(params))) {
      return this.fault(id, INVALID_PARAMS, '"params" must be an object: params go by name');
    }
    try {
      const method = findMethod(name);
      if (method === undefined) throw new EvenkeelError('unknown_method', `no method ${quote(name)}`);
      const result = await this.#caller.call(method, params, {
        subscriber: this.#subscriber,
        ...(this.#left !== null && { maxBytes: () => this.#left ?? 0 }),
      });
      if (this.#left !== null) this.#left -= result.bytes;
      return joined(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":`, [result], '', '}');
    } catch (error) {
      if (!(error instanceof EvenkeelError)) throw error;
      return this.refusal(id, error);
    }
  }

  refusal(id: Id, error: EvenkeelError): Reply {
    return this.#hold({ jsonrpc: '2.0', id, error: this.#caller.describe(error) });
  }

  fault(id: Id, code: number, message: string): Reply {
    const data = { code: 'invalid_argument', retriable: false } as const;
    return this.#hold({ jsonrpc: '2.0', id, error: { code, message: `JSON-RPC: ${message}`, data } });
  }

  #hold(response: object): Reply {
    return this.#caller.outbound.hold(textOf(response));
  }
}

function isId(value: unknown): value is Id {
  return value === null || typeof value === 'string' || Number.isFinite(value);
}
