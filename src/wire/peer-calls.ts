import type { Clock, Timer } from '../../raft/index.ts';
import { ERRORS, EvenkeelError, type ErrorCode } from '../errors.ts';
import { MAX_CALL_BYTES, type AnswerFrame, type FailureFrame, type RequestFrame } from './peer-codec.ts';

/** Calls to one peer that wait for their answer. */
export const MAX_PENDING_CALLS = 4_096;

interface PendingCall {
  readonly method: string;
  readonly resolve: (result: Uint8Array) => void;
  readonly reject: (error: EvenkeelError) => void;
  readonly timer: Timer;
}

/** Calls made to one peer. Each ends exactly once: by its answer, its deadline or the loss of the connection. */
export class OutgoingCalls {
  readonly #clock: Clock;
  readonly #peer: string;
  readonly #pending = new Map<number, PendingCall>();
  #lastId = 0;

  constructor(clock: Clock, peer: string) {
    this.#clock = clock;
    this.#peer = peer;
  }

  /** `send` puts the request on the wire; what it throws was never sent. */
  start(
    call: { method: string; params: Uint8Array; deadlineMs: number },
    send: (frame: RequestFrame) => void,
  ): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      const { method, params, deadlineMs } = call;
      if (params.byteLength > MAX_CALL_BYTES) {
        throw new EvenkeelError(
          'limit_exceeded',
          `${method} takes ${params.byteLength} bytes, more than the ${MAX_CALL_BYTES} allowed`,
        );
      }
      if (this.#pending.size >= MAX_PENDING_CALLS) {
        throw new EvenkeelError('overloaded', `${MAX_PENDING_CALLS} calls to ${this.#peer} wait already`);
      }
      const id = this.#lastId + 1;
      send({ kind: 'request', id, method, deadlineMs: Math.ceil(deadlineMs), params });
      this.#lastId = id;
      const timer = this.#clock.setTimeout(() => this.#expire(id), deadlineMs);
      this.#pending.set(id, { method, resolve, reject, timer });
    });
  }

  /** False where no call waits for it: it came after its deadline. */
  settle(frame: AnswerFrame | FailureFrame): boolean {
    const call = this.#take(frame.id);
    if (call === null) return false;
    if (frame.kind === 'answer') call.resolve(frame.result);
    else call.reject(errorOf(frame));
    return true;
  }

  /** The connection is gone: what was sent may have been run or not. */
  lose(): void {
    for (const id of this.#pending.keys()) {
      const call = this.#take(id);
      const text = `the connection to ${this.#peer} was lost while ${call?.method} ran`;
      call?.reject(new EvenkeelError('outcome_unknown', text, { outcome: 'unknown' }));
    }
  }

  #expire(id: number): void {
    const call = this.#take(id);
    const text = `${this.#peer} did not answer ${call?.method} by its deadline`;
    call?.reject(new EvenkeelError('deadline_exceeded', text, { outcome: 'unknown' }));
  }

  #take(id: number): PendingCall | null {
    const call = this.#pending.get(id);
    if (call === undefined) return null;
    this.#pending.delete(id);
    this.#clock.clearTimeout(call.timer);
    return call;
  }
}

/** An error as it crosses the wire. */
export function failureOf(id: number, error: unknown): FailureFrame {
  if (error instanceof EvenkeelError) {
    const { code, message, data } = error;
    return { kind: 'failure', id, code, message, data: JSON.stringify(data) };
  }
  const message = error instanceof Error ? error.message : String(error);
  return { kind: 'failure', id, code: 'internal', message, data: '{}' };
}

/** And as it comes out. A code of a later release, or data that are no object, are not let through. */
function errorOf(frame: FailureFrame): EvenkeelError {
  const code: ErrorCode = Object.hasOwn(ERRORS, frame.code) ? (frame.code as ErrorCode) : 'internal';
  return new EvenkeelError(code, frame.message, dataOf(frame.data));
}

function dataOf(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return {};
    return Object.fromEntries(Object.entries(value).filter(([key]) => key !== '__proto__'));
  } catch {
    return {};
  }
}
