import type { IncomingMessage, ServerResponse } from 'node:http';
import { z } from 'zod';
import type { Clock } from '../../raft/index.ts';
import { EvenkeelError } from '../errors.ts';
import { parseStrictJson } from '../strict-json.ts';
import { readJsonBody, sendError, sendReply, sendWrongVerb } from './http-respond.ts';
import type { Caller } from './rpc-call.ts';
import { RPC_METHODS } from './rpc-registry.ts';
import type { HttpVerb, RpcMethod } from './rpc-types.ts';

interface V1Route {
  readonly verb: HttpVerb;
  /** `{id}` stands for one percent-encoded segment. */
  readonly segments: readonly string[];
  readonly method: RpcMethod;
  /** Params whose text in a path or query is turned into the type that the schema wants. */
  readonly types: ReadonlyMap<string, string>;
}

const schemaProperties = z.object({
  properties: z.record(z.string(), z.object({ type: z.string().optional() })).default({}),
});

const ROUTES: readonly V1Route[] = RPC_METHODS.flatMap((method) =>
  method.http === null
    ? []
    : [
        {
          verb: method.http.verb,
          segments: method.http.path.slice(1).split('/'),
          method,
          types: paramTypes(method),
        },
      ],
);

function paramTypes(method: RpcMethod): ReadonlyMap<string, string> {
  const schema = z.toJSONSchema(method.params, { io: 'input', unrepresentable: 'any' });
  const { properties } = schemaProperties.parse(schema);
  return new Map(Object.entries(properties).map(([name, { type }]) => [name, type ?? 'string']));
}

/** Serves `/v1/…`: each path and verb is one method of the registry. `path` begins after `/v1`. */
export async function serveV1(
  request: IncomingMessage,
  response: ServerResponse,
  { path, query, caller, clock }: { path: string; query: URLSearchParams; caller: Caller; clock: Clock },
): Promise<void> {
  const segments = path.slice(1).split('/').map(decodeSegment);
  const matching = ROUTES.filter((route) => matches(route, segments));
  const route = matching.find(({ verb }) => verb === request.method);
  if (route === undefined) {
    if (matching.length === 0) {
      sendError(response, caller, new EvenkeelError('not_found', `no such path: /v1${path}`));
    } else {
      sendWrongVerb(
        response,
        caller,
        matching.map(({ verb }) => verb),
      );
    }
    return;
  }
  const params = await gatherParams(request, route, { segments, query, clock });
  await sendReply(response, await caller.call(route.method, params, { subscriber: null }), clock);
}

function decodeSegment(segment: string): string | null {
  try {
    return decodeURIComponent(segment);
  } catch {
    return null;
  }
}

function matches({ segments }: V1Route, given: readonly (string | null)[]): boolean {
  return (
    segments.length === given.length &&
    segments.every((segment, i) => {
      const value = given[i] ?? null;
      return value !== null && value !== '' && (segment.startsWith('{') || segment === value);
    })
  );
}

async function gatherParams(
  request: IncomingMessage,
  route: V1Route,
  { segments, query, clock }: { segments: readonly (string | null)[]; query: URLSearchParams; clock: Clock },
): Promise<Record<string, unknown>> {
  const params = parseBody(await readJsonBody(request, clock));
  const add = (name: string, text: string): void => {
    if (Object.hasOwn(params, name)) {
      throw new EvenkeelError('invalid_argument', `"${name}" is given twice: in the path, query or body`);
    }
    params[name] = convert(text, route.types.get(name));
  };
  route.segments.forEach((segment, i) => {
    if (segment.startsWith('{')) add(segment.slice(1, -1), segments[i] ?? '');
  });
  for (const [name, text] of query) add(name, text);
  return params;
}

function parseBody(text: string): Record<string, unknown> {
  if (text.trim() === '') return {};
  const body = parseStrictJson(text, 'the body');
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw new EvenkeelError('invalid_argument', 'the body must be a JSON object');
  }
  return Object.assign(Object.create(null) as Record<string, unknown>, body);
}

/** Text that does not convert stays as it is: the schema then says what it should have been. */
function convert(text: string, type: string | undefined): unknown {
  if (type === 'integer' || type === 'number') return /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text;
  if (type === 'boolean' && (text === 'true' || text === 'false')) return text === 'true';
  return text;
}
