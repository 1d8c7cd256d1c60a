import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock, Timer } from '../../raft/index.ts';
import { ERRORS, EvenkeelError } from '../errors.ts';
import type { Reply } from './outbound.ts';
import { READ_WINDOW_MS, ReadPace } from './read-pace.ts';
import type { Caller } from './rpc-call.ts';
import { MAX_RPC_MESSAGE_BYTES } from './rpc-socket.ts';

/** The longest a client may take to send a request's body, ms. */
export const BODY_TIMEOUT_MS = 10_000;

/** How often a client that is behind is looked at, ms. */
const POLL_MS = 1_000;

const HEADERS = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' };

export function sendJson(response: ServerResponse, status: number, body: unknown): void {
  send(response, status, 'application/json; charset=utf-8', `${JSON.stringify(body)}\n`);
}

/**
 * An answer of any length: the next piece follows once the client has taken those before it, and a client that does not
 * read loses its connection. Resolves once the answer is read, or the connection gone.
 */
export async function sendReply(response: ServerResponse, reply: Reply, clock: Clock): Promise<void> {
  try {
    if (response.headersSent || response.destroyed) return;
    response.writeHead(200, {
      ...HEADERS,
      'content-type': 'application/json; charset=utf-8',
      'content-length': reply.bytes + 1,
    });
    const pace = new ReadPace(clock.now());
    let written = 0;
    for (const piece of reply.pieces) {
      const isRoom = response.write(piece);
      written += Buffer.byteLength(piece);
      if (isRoom) continue;
      await taken(response, clock, () => pace.isTooSlow(clock.now(), written - response.writableLength));
      if (response.destroyed) return;
    }
    response.end('\n');
    if (!response.closed) await new Promise((resolve) => response.once('close', resolve));
  } finally {
    reply.release();
  }
}

/** Resolves once there is room again, or the connection is gone. */
function taken(response: ServerResponse, clock: Clock, isTooSlow: () => boolean): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clock.clearTimeout(timer);
      response.off('drain', done).off('close', done);
      resolve();
    };
    let timer: Timer;
    const look = (): void => {
      timer = clock.setTimeout(() => {
        if (isTooSlow()) response.destroy();
        else look();
      }, POLL_MS);
    };
    look();
    response.on('drain', done).on('close', done);
  });
}

/** Ends the connection of a client that does not read an answer in time once all of it is written. */
export function dropUnlessRead(response: ServerResponse, clock: Clock): void {
  response.once('prefinish', () => {
    const timer = clock.setTimeout(() => response.destroy(), READ_WINDOW_MS);
    response.once('close', () => clock.clearTimeout(timer));
  });
}

export function sendText(response: ServerResponse, status: number, body: string): void {
  send(response, status, 'text/plain; charset=utf-8', body);
}

export function send(response: ServerResponse, status: number, contentType: string, body: string): void {
  if (response.headersSent || response.destroyed) return;
  response.writeHead(status, {
    ...HEADERS,
    'content-type': contentType,
    'content-length': Buffer.byteLength(body),
  });
  response.end(body);
}

/** `{"error": {code, message, retriable, …}}` with the code's status, or the one given. */
export function sendError(
  response: ServerResponse,
  caller: Caller,
  error: EvenkeelError,
  status: number = ERRORS[error.code].http,
): void {
  const { message, data } = caller.describe(error);
  sendJson(response, status, { error: { ...data, message } });
}

/** 405 with what the path does take. */
export function sendWrongVerb(response: ServerResponse, caller: Caller, verbs: readonly string[]): void {
  response.setHeader('allow', verbs.join(', '));
  const message = `this path takes ${verbs.join(', ')} only`;
  sendError(response, caller, new EvenkeelError('unknown_method', message), 405);
}

/**
 * The whole body as text. Rejects with `limit_exceeded` past 1 MiB, `invalid_argument` where it is not declared
 * as JSON (so that no web page can send it unasked), `protocol_error` where it comes too slowly or not whole.
 */
export async function readJsonBody(request: IncomingMessage, clock: Clock): Promise<string> {
  const body = await readBody(request, clock);
  const type = request.headers['content-type'] ?? '';
  if (body.length > 0 && !/^application\/json\s*(;|$)/i.test(type)) {
    throw new EvenkeelError('invalid_argument', 'a body must have the content type application/json');
  }
  return body.toString('utf8');
}

/** The request is left open when it is refused: the answer can still be sent. */
function readBody(request: IncomingMessage, clock: Clock): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    const refuse = (error: EvenkeelError): void => {
      clock.clearTimeout(timer);
      request.removeAllListeners('data');
      request.resume();
      reject(error);
    };
    const timer = clock.setTimeout(() => {
      refuse(new EvenkeelError('protocol_error', `the body did not come within ${BODY_TIMEOUT_MS} ms`));
    }, BODY_TIMEOUT_MS);
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= MAX_RPC_MESSAGE_BYTES) chunks.push(chunk);
      else refuse(new EvenkeelError('limit_exceeded', `a body has at most ${MAX_RPC_MESSAGE_BYTES} bytes`));
    });
    request.once('end', () => {
      clock.clearTimeout(timer);
      resolve(Buffer.concat(chunks));
    });
    request.once('error', () => refuse(new EvenkeelError('protocol_error', 'the body broke off')));
  });
}
