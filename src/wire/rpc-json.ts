import type { Clock } from '../../raft/index.ts';
import { EvenkeelError } from '../errors.ts';
import { jsonInSlices } from '../json-in-slices.ts';
import type { Caller, WireError } from './rpc-call.ts';
import { findMethod } from './rpc-registry.ts';
import type { Subscriber } from './rpc-types.ts';

/** Requests in one batch; a longer one is refused whole. */
export const MAX_BATCH = 100;

/** Faults of the protocol itself (JSON-RPC 2.0, section 5.1). */
const PARSE_ERROR = -32700;
const INVALID_REQUEST = -32600;
const INVALID_PARAMS = -32602;

/** What runs the calls of a message and words their errors. */
export type Calls = Pick<Caller, 'call' | 'describe'> & { readonly clock: Clock };

type Id = string | number | null;
type Response =
  | { readonly jsonrpc: '2.0'; readonly id: Id; readonly result: unknown }
  | { readonly jsonrpc: '2.0'; readonly id: Id; readonly error: WireError };

/**
 * Answers one JSON-RPC 2.0 message: a request, a notification or a batch of them. Resolves with the text to
 * send, in pieces, or `null` where nothing is owed (notifications). Never rejects.
 */
export async function answerJsonRpc(
  text: string,
  caller: Calls,
  subscriber: Subscriber | null,
): Promise<readonly string[] | null> {
  const answer = await answerMessage(text, caller, subscriber);
  return answer === null ? null : jsonInSlices(answer, caller.clock);
}

async function answerMessage(
  text: string,
  caller: Calls,
  subscriber: Subscriber | null,
): Promise<Response | readonly Response[] | null> {
  let message: unknown;
  try {
    message = JSON.parse(text);
  } catch {
    return fault(null, PARSE_ERROR, 'this is no JSON');
  }
  if (!Array.isArray(message)) return answerOne(message, caller, subscriber);
  if (message.length === 0) return fault(null, INVALID_REQUEST, 'an empty batch');
  if (message.length > MAX_BATCH) {
    const error = new EvenkeelError('limit_exceeded', `a batch holds at most ${MAX_BATCH} requests`);
    return { jsonrpc: '2.0', id: null, error: caller.describe(error) };
  }
  const responses = await Promise.all(message.map((one) => answerOne(one, caller, subscriber)));
  const owed = responses.filter((response) => response !== null);
  return owed.length === 0 ? null : owed;
}

async function answerOne(
  message: unknown,
  caller: Calls,
  subscriber: Subscriber | null,
): Promise<Response | null> {
  if (typeof message !== 'object' || message === null || Array.isArray(message)) {
    return fault(null, INVALID_REQUEST, 'a request is an object');
  }
  const { jsonrpc, id, method, params } = message as Record<string, unknown>;
  const known = id === undefined || isId(id) ? (id ?? null) : null;
  if (jsonrpc !== '2.0') return fault(known, INVALID_REQUEST, '"jsonrpc" must be "2.0"');
  if (id !== undefined && !isId(id)) {
    return fault(null, INVALID_REQUEST, '"id" must be a string, a number or null');
  }
  if (typeof method !== 'string') return fault(known, INVALID_REQUEST, '"method" must be a string');
  const response = await run(known, method, params, caller, subscriber);
  return id === undefined ? null : response;
}

async function run(
  id: Id,
  name: string,
  params: unknown,
  caller: Calls,
  subscriber: Subscriber | null,
): Promise<Response> {
  if (params !== undefined && (typeof params !== 'object' || params === null || Array.isArray(params))) {
    return fault(id, INVALID_PARAMS, '"params" must be an object: params go by name');
  }
  try {
    const method = findMethod(name);
    if (method === undefined) throw new EvenkeelError('unknown_method', `no method "${name}"`);
    return { jsonrpc: '2.0', id, result: await caller.call(method, params, subscriber) };
  } catch (error) {
    if (!(error instanceof EvenkeelError)) throw error;
    return { jsonrpc: '2.0', id, error: caller.describe(error) };
  }
}

function isId(value: unknown): value is Id {
  return value === null || typeof value === 'string' || Number.isFinite(value);
}

function fault(id: Id, code: number, message: string): Response {
  const data = { code: 'invalid_argument', retriable: false } as const;
  return { jsonrpc: '2.0', id, error: { code, message: `JSON-RPC: ${message}`, data } };
}
