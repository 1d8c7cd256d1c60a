import type { Clock } from '../../raft/index.ts';
import { EvenkeelError, type ErrorCode } from '../errors.ts';
import type { Net } from '../net.ts';
import { RpcLink, type AdminAnswer } from './admin-link.ts';

/** The longest to wait for one node to take a connection, ms. */
const CONNECT_TIMEOUT_MS = 2_000;
/** How much longer than the call's deadline the node's own answer is waited for, ms. */
const ANSWER_GRACE_MS = 500;
const FIRST_RETRY_MS = 50;
const MAX_RETRY_MS = 500;
export const DEFAULT_CALL_TIMEOUT_MS = 10_000;

export interface AdminClientOptions {
  readonly net: Net;
  readonly clock: Clock;
  /** `host:port` of nodes' client listeners; any of them answers. At least one. */
  readonly endpoints: readonly string[];
  /** For a whole call with its retries. */
  readonly timeoutMs?: number;
}

interface Attempt {
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly expiresAt: number;
}

/**
 * Calls the admin methods of any node of a cluster. Reads are retried on another node. Writes go in a session:
 * one sent again, on whichever node, has one effect and gets the first answer.
 */
export class AdminClient {
  readonly #net: Net;
  readonly #clock: Clock;
  readonly #endpoints: readonly string[];
  readonly #timeoutMs: number;
  #link: RpcLink | null = null;
  /** Where the next connection is tried first. */
  #next = 0;
  #session: Promise<number> | null = null;
  #lastRequest = 0;

  constructor(options: AdminClientOptions) {
    if (options.endpoints.length === 0) throw new EvenkeelError('invalid_argument', 'no endpoints given');
    this.#net = options.net;
    this.#clock = options.clock;
    this.#endpoints = options.endpoints;
    this.#timeoutMs = options.timeoutMs ?? DEFAULT_CALL_TIMEOUT_MS;
  }

  /**
   * Calls a method that changes nothing. `A` is what the method's answer schema has; the node's word is taken
   * for it. Rejects with an EvenkeelError.
   */
  async read<A = unknown>(
    method: string,
    params: Readonly<Record<string, unknown>> = {},
  ): Promise<AdminAnswer & A> {
    const answer = await this.#retry({ method, params, expiresAt: this.#clock.now() + this.#timeoutMs });
    return answer as AdminAnswer & A;
  }

  /**
   * Calls a method that changes something. Rejects with `deadline_exceeded` and `outcome: "unknown"` where it
   * was sent and nobody said in time what became of it.
   */
  async write<A = unknown>(
    method: string,
    params: Readonly<Record<string, unknown>> = {},
  ): Promise<AdminAnswer & A> {
    const expiresAt = this.#clock.now() + this.#timeoutMs;
    for (let opened = 0; ; opened += 1) {
      const session = await this.#openSession(expiresAt);
      const requestId = `${session}:${(this.#lastRequest += 1)}`;
      try {
        const answer = await this.#retry({ method, params: { ...params, requestId }, expiresAt });
        return answer as AdminAnswer & A;
      } catch (error) {
        // An expired session never ran this request, unless an earlier try of it did: then it is not ours to repeat.
        const fresh = error instanceof EvenkeelError && error.code === 'session_expired';
        if (!fresh || error.data['tries'] !== 1 || opened > 0) throw error;
        this.#session = null;
      }
    }
  }

  close(): void {
    this.#link?.close();
    this.#link = null;
  }

  #openSession(expiresAt: number): Promise<number> {
    if (this.#session === null) {
      const opening = this.#retry({ method: 'session.open', params: {}, expiresAt }).then(({ session }) => {
        if (typeof session !== 'number') {
          throw new EvenkeelError('protocol_error', 'session.open gave no session');
        }
        return session;
      });
      opening.catch(() => {
        if (this.#session === opening) this.#session = null;
      });
      this.#session = opening;
      this.#lastRequest = 0;
    }
    return this.#session;
  }

  async #retry(attempt: Attempt): Promise<AdminAnswer> {
    const write = 'requestId' in attempt.params;
    let uncertain = false;
    let delayMs = FIRST_RETRY_MS;
    for (let tries = 1; ; tries += 1) {
      let sent = false;
      try {
        const link = await this.#connect(attempt.expiresAt);
        sent = true;
        return await this.#send(link, attempt);
      } catch (error) {
        if (!(error instanceof EvenkeelError)) throw error;
        uncertain ||= sent && UNCERTAIN.has(error.code);
        if (ELSEWHERE.has(error.code)) this.#moveOn();
        const remainingMs = attempt.expiresAt - this.#clock.now();
        // Nobody listening is told at once, unless a write is already out and its outcome must be learned.
        const hopeless = !error.retriable || (error.code === 'unreachable' && !sent && !uncertain);
        if (hopeless || remainingMs <= delayMs) throw conclude(error, { write, uncertain, tries });
      }
      await this.#sleep(delayMs);
      delayMs = Math.min(delayMs * 2, MAX_RETRY_MS);
    }
  }

  #send(link: RpcLink, { method, params, expiresAt }: Attempt): Promise<AdminAnswer> {
    const deadlineMs = Math.max(1, Math.floor(expiresAt - this.#clock.now()));
    return link.request(method, { deadlineMs, ...params }, deadlineMs + ANSWER_GRACE_MS);
  }

  /** The open link, or the first of the endpoints that takes one. Rejects with the last `unreachable`. */
  async #connect(expiresAt: number): Promise<RpcLink> {
    if (this.#link !== null && !this.#link.lost) return this.#link;
    let failure = new EvenkeelError('unreachable', 'no time left to connect');
    for (let i = 0; i < this.#endpoints.length; i += 1) {
      const endpoint = this.#endpoints[this.#next % this.#endpoints.length] ?? '';
      const timeoutMs = Math.min(CONNECT_TIMEOUT_MS, expiresAt - this.#clock.now());
      if (timeoutMs <= 0) break;
      try {
        this.#link = await RpcLink.open(this.#net, this.#clock, endpoint, timeoutMs);
        return this.#link;
      } catch (error) {
        if (!(error instanceof EvenkeelError)) throw error;
        failure = error;
        this.#next += 1;
      }
    }
    throw failure;
  }

  #moveOn(): void {
    if (this.#endpoints.length > 1) this.close();
    this.#next += 1;
  }

  #sleep(delayMs: number): Promise<void> {
    return new Promise((resolve) => void this.#clock.setTimeout(resolve, delayMs));
  }
}

/** After these a write that was sent may or may not have taken effect. */
const UNCERTAIN: ReadonlySet<ErrorCode> = new Set([
  'unreachable',
  'outcome_unknown',
  'deadline_exceeded',
  'unavailable',
]);
/** After these another node may do better. */
const ELSEWHERE: ReadonlySet<ErrorCode> = new Set(['unreachable', 'unavailable', 'no_leader', 'overloaded']);

function conclude(
  error: EvenkeelError,
  { write, uncertain, tries }: { write: boolean; uncertain: boolean; tries: number },
): EvenkeelError {
  if (write && uncertain && error.retriable) {
    const message = `the deadline passed and nobody said whether it was done: ${error.message}`;
    return new EvenkeelError('deadline_exceeded', message, { ...error.data, outcome: 'unknown', tries });
  }
  return new EvenkeelError(error.code, error.message, { ...error.data, tries });
}
