import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../../raft/index.ts';
import type { ControlPlane } from '../control-plane.ts';
import { EvenkeelError } from '../errors.ts';
import { livenessChecks, readinessChecks, sendChecks, type NodeHealth } from './http-health.ts';
import {
  dropUnlessRead,
  readJsonBody,
  send,
  sendError,
  sendJson,
  sendReply,
  sendWrongVerb,
} from './http-respond.ts';
import { serveV1 } from './http-v1.ts';
import type { Caller } from './rpc-call.ts';
import { answerJsonRpc } from './rpc-json.ts';

/** Where the exposition of `/metrics` comes from. */
export interface MetricsSource {
  readonly contentType: string;
  exposition(): Promise<string>;
}

export interface HttpServerOptions {
  readonly plane: ControlPlane;
  readonly clock: Clock;
  readonly caller: Caller;
  readonly health: NodeHealth;
  readonly metrics: MetricsSource;
  /** Of the package. */
  readonly version: string;
  onFault(error: unknown, where: string): void;
}

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

/** Plain HTTP of one node: health, metrics, version, JSON-RPC by POST and `/v1`. Never throws. */
export function createHttpHandler(options: HttpServerOptions): Handler {
  return (request, response) => {
    dropUnlessRead(response, options.clock);
    serve(request, response, options).catch((error: unknown) => {
      if (error instanceof EvenkeelError) {
        // What is left of the body is not read: the connection cannot be used again.
        if (!request.complete) response.setHeader('connection', 'close');
        sendError(response, options.caller, error);
        return;
      }
      options.onFault(error, `${request.method} ${request.url}`);
      sendError(response, options.caller, new EvenkeelError('internal', "the node's log says what failed"));
    });
  };
}

async function serve(
  request: IncomingMessage,
  response: ServerResponse,
  options: HttpServerOptions,
): Promise<void> {
  const { caller, clock, plane, health, metrics } = options;
  const url = parseTarget(request.url ?? '/');
  if (url.pathname.startsWith('/v1/')) {
    const path = url.pathname.slice('/v1'.length);
    return serveV1(request, response, { path, query: url.searchParams, caller, clock });
  }
  const verbose = url.searchParams.has('verbose');
  switch (url.pathname) {
    case '/rpc':
      if (!takes(request, response, caller, 'POST')) return;
      return answerPost(await readJsonBody(request, clock), response, caller);
    case '/livez':
      if (takes(request, response, caller, 'GET')) sendChecks(response, livenessChecks(health), verbose);
      return;
    case '/readyz':
      if (takes(request, response, caller, 'GET')) {
        sendChecks(response, readinessChecks(plane, health), verbose);
      }
      return;
    case '/metrics':
      if (takes(request, response, caller, 'GET')) {
        send(response, 200, metrics.contentType, await metrics.exposition());
      }
      return;
    case '/version':
      if (takes(request, response, caller, 'GET')) {
        const { nodeId, clusterId } = plane;
        sendJson(response, 200, { version: options.version, nodeId, clusterId, node: process.version });
      }
      return;
    default:
      throw new EvenkeelError('not_found', `no such path: ${url.pathname}`);
  }
}

function parseTarget(target: string): URL {
  try {
    return new URL(target, 'http://node');
  } catch {
    throw new EvenkeelError('invalid_argument', 'the request target is no valid path');
  }
}

function takes(request: IncomingMessage, response: ServerResponse, caller: Caller, verb: string): boolean {
  if (request.method === verb) return true;
  sendWrongVerb(response, caller, [verb]);
  return false;
}

async function answerPost(text: string, response: ServerResponse, caller: Caller): Promise<void> {
  const answer = await answerJsonRpc(text, caller, null);
  if (answer === null) {
    response.writeHead(204).end();
    return;
  }
  await sendReply(response, answer, caller.clock);
}
