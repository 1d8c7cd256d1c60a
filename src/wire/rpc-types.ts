import { z } from 'zod';
import type { Clock } from '../../raft/index.ts';
import { parseRequestId, quote, type Command, type Proposed } from '../command/index.ts';
import type { ControlPlane } from '../control-plane.ts';
import { EvenkeelError } from '../errors.ts';

/** How long a call may take when it does not say, ms. */
export const DEFAULT_DEADLINE_MS = 10_000;
/** The longest a call may ask for, ms. */
export const MAX_DEADLINE_MS = 60_000;

/** What is wrong with a call's params, and how many unknown keys, are named up to this many. */
const MAX_ISSUES_SAID = 5;

/** A session's request, as `requestId` writes it: `<session>:<n>`. */
export interface RequestRef {
  readonly session: number;
  readonly n: number;
}

/** Where a `watch` writes its notifications: the WebSocket the request came on. */
export interface Subscriber {
  /** Sends one JSON-RPC notification. */
  notify(method: string, params: Readonly<Record<string, unknown>>): void;
  /** Bytes handed over and not yet taken by the system. */
  bufferedBytes(): number;
  /** The next watch's number on this connection. */
  nextWatchId(): number;
  /** Open watches by their number; each value ends its watch. */
  readonly watches: Map<number, () => void>;
}

/** What a handler is given besides its params. */
export interface RpcContext {
  readonly plane: ControlPlane;
  readonly clock: Clock;
  readonly request: RequestRef | null;
  /** `null` where the surface has no way to push (HTTP). */
  readonly subscriber: Subscriber | null;
  /** What is left of the call's deadline, ms; at least 1. */
  remainingMs(): number;
  /**
   * Awaited before an answer is built out of the whole state: only a few such answers are in memory at once, whoever asks.
   * Rejects where the caller would not be sent it any more.
   */
  readonly admitLarge: () => Promise<void>;
  /** Proposes with what is left of the deadline and the call's request. */
  propose(command: Command): Promise<Proposed>;
  /** Asks the leader's service with what is left of the deadline. */
  askLeader(service: string, params: unknown): Promise<unknown>;
}

export type HttpVerb = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** `path` is a template under `/v1`: `/brokers/{id}/drain`. A name in braces is a param of the method. */
export interface HttpRoute {
  readonly verb: HttpVerb;
  readonly path: string;
}

/** What a handler answers; `revision` where the answer is older or newer than this node's state (a write's). */
export type Answer = Readonly<Record<string, unknown>> & { readonly revision?: number };

/** One method of the registry, as the three surfaces see it. */
export interface RpcMethod {
  readonly name: string;
  readonly kind: 'read' | 'write';
  readonly summary: string;
  /** Strict: an unknown key is refused by name. */
  readonly params: z.ZodObject;
  /** Without the envelope `{revision, term, leaderId}` that every answer carries. */
  readonly answer: z.ZodObject;
  /** `null`: the method needs a connection to push on and has no plain HTTP form. */
  readonly http: HttpRoute | null;
  /** Checks the params and runs. Rejects with an EvenkeelError. */
  run(raw: unknown, start: (common: CommonParams) => RpcContext): Promise<Answer>;
}

/** The params that any method takes, as far as its kind allows them. */
export interface CommonParams {
  readonly deadlineMs: number;
  /** Reads only. */
  readonly consistency: 'local' | 'linearizable';
  /** Writes only. */
  readonly request: RequestRef | null;
}

const deadlineMs = z.int().min(1).max(MAX_DEADLINE_MS).default(DEFAULT_DEADLINE_MS);
const READ_PARAMS = { deadlineMs, consistency: z.enum(['linearizable', 'local']).default('linearizable') };
const requestId = z.string().check((context) => {
  try {
    parseRequestId(context.value);
  } catch (error) {
    if (!(error instanceof EvenkeelError)) throw error;
    context.issues.push({ code: 'custom', message: error.message, input: context.value });
  }
});
const WRITE_PARAMS = { deadlineMs, requestId: requestId.optional() };

interface Definition<P extends z.ZodRawShape, A extends z.ZodRawShape> {
  readonly name: string;
  readonly summary: string;
  readonly params: P;
  readonly answer: A;
  readonly http: HttpRoute | null;
  handler(context: RpcContext, params: z.output<z.ZodObject<P>>): Answer | Promise<Answer>;
}

export function defineRead<P extends z.ZodRawShape, A extends z.ZodRawShape>(
  definition: Definition<P, A>,
): RpcMethod {
  return define('read', READ_PARAMS, definition);
}

/** A write. What it proposes carries the call's `requestId`, so that a retry has one effect. */
export function defineWrite<P extends z.ZodRawShape, A extends z.ZodRawShape>(
  definition: Definition<P, A>,
): RpcMethod {
  return define('write', WRITE_PARAMS, definition);
}

function define<P extends z.ZodRawShape, A extends z.ZodRawShape>(
  kind: 'read' | 'write',
  common: z.ZodRawShape,
  definition: Definition<P, A>,
): RpcMethod {
  const params = z.strictObject({ ...definition.params, ...common });
  return {
    name: definition.name,
    kind,
    summary: definition.summary,
    params,
    answer: z.object(definition.answer),
    http: definition.http,
    async run(raw, start) {
      const checked = parseParams(definition.name, params, raw);
      const given = commonParams(checked);
      const context = start(given);
      if (given.consistency === 'linearizable' && kind === 'read') {
        await context.plane.readBarrier(context.remainingMs());
      }
      // `checked` came out of a schema that holds every key of `P`.
      return definition.handler(context, checked as z.output<z.ZodObject<P>>);
    },
  };
}

function commonParams(checked: Readonly<Record<string, unknown>>): CommonParams {
  const { deadlineMs: given, consistency, requestId: ref } = checked;
  return {
    deadlineMs: typeof given === 'number' ? given : DEFAULT_DEADLINE_MS,
    consistency: consistency === 'local' ? 'local' : 'linearizable',
    request: typeof ref === 'string' ? parseRequestId(ref) : null,
  };
}

function parseParams(method: string, schema: z.ZodObject, raw: unknown): Record<string, unknown> {
  const result = schema.safeParse(raw ?? {});
  if (result.success) return result.data;
  const { issues } = result.error;
  const known = Object.keys(schema.shape);
  const message = someOf(issues, '; ', (issue) => describeIssue(issue, known));
  throw new EvenkeelError('invalid_argument', `${method}: ${message}`);
}

/** Of as many as there may be, those that a person reads. */
function someOf<T>(all: readonly T[], separator: string, text: (each: T) => string): string {
  const shown = all.slice(0, MAX_ISSUES_SAID).map(text);
  const left = all.length - shown.length;
  return [...shown, ...(left > 0 ? [`and ${left} more`] : [])].join(separator);
}

function describeIssue(issue: z.core.$ZodIssue, known: readonly string[]): string {
  const where = issue.path.map(String).join('.');
  if (issue.code === 'unrecognized_keys') {
    const keys = someOf(issue.keys, ', ', (key) => quote(where === '' ? key : `${where}.${key}`));
    const takes = where === '' ? `; it takes ${known.join(', ')}` : '';
    return `unknown parameter ${keys}${takes}`;
  }
  return where === '' ? `params: ${issue.message}` : `${quote(where)}: ${issue.message}`;
}
