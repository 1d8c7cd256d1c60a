import type { Clock, Timer } from '../../raft/index.ts';
import type { ControlPlane } from '../control-plane.ts';
import { ERRORS, EvenkeelError, type ErrorCode } from '../errors.ts';
import { Outbound, type Reply } from './outbound.ts';
import type { Answer, CommonParams, RpcContext, RpcMethod, Subscriber } from './rpc-types.ts';

/** What a call asks of others ends so much before its own deadline: their answer, which says more, comes first. */
const ANSWER_MS = 10;

/** Calls under way on this node, all surfaces together; more are answered `overloaded`. */
export const MAX_CALLS = 2_048;

/** What an error looks like on every surface. */
export interface WireError {
  readonly code: number;
  readonly message: string;
  readonly data: { readonly code: ErrorCode; readonly retriable: boolean } & Readonly<
    Record<string, unknown>
  >;
}

export interface CallOptions {
  /** `null` where the surface has no way to push. */
  readonly subscriber: Subscriber | null;
  /** Bytes that the answer may take, asked once its turn has come. */
  readonly maxBytes?: () => number;
}

/** What one call has of the node until its answer is written. */
interface Ticket {
  isOver: boolean;
  leave: () => void;
}

export interface CallerOptions {
  readonly plane: ControlPlane;
  readonly clock: Clock;
  /** Told of every error that is our own fault. */
  onFault(error: unknown, method: string): void;
}

/** Runs methods of the registry: deadline, load, envelope and errors, the same for every surface. */
export class Caller {
  readonly #options: CallerOptions;
  /** Shared by all surfaces. */
  readonly outbound: Outbound;
  #calls = 0;

  constructor(options: CallerOptions) {
    this.#options = options;
    this.outbound = new Outbound(options.clock);
  }

  get clock(): Clock {
    return this.#options.clock;
  }

  /** Reports an error that is our own. */
  fault(error: unknown, where: string): void {
    this.#options.onFault(error, where);
  }

  /** Resolves with the whole answer, `{revision, term, leaderId, …}`, as text; rejects with an EvenkeelError. */
  async call(method: RpcMethod, params: unknown, options: CallOptions): Promise<Reply> {
    if (this.#calls >= MAX_CALLS) {
      throw new EvenkeelError('overloaded', `${MAX_CALLS} calls are under way on this node; try again later`);
    }
    this.#calls += 1;
    const ticket: Ticket = { isOver: false, leave: () => {} };
    try {
      const answer = await this.#withDeadline(method, params, { ...options, ticket });
      return await this.outbound.write(answer, options.maxBytes?.());
    } catch (error) {
      if (error instanceof EvenkeelError) throw this.#withOutcome(method, error);
      this.#options.onFault(error, method.name);
      throw new EvenkeelError('internal', `${method.name} failed inside the node; its log says how`);
    } finally {
      ticket.isOver = true;
      ticket.leave();
      this.#calls -= 1;
    }
  }

  /** An error with what every surface adds to it: who leads and the revision here. */
  describe(error: EvenkeelError): WireError {
    const { plane } = this.#options;
    const { leaderId } = plane.leadership();
    const data = {
      ...error.data,
      code: error.code,
      retriable: error.retriable,
      ...(leaderId !== null && { leader: leaderId }),
      revision: plane.state.revision,
    };
    return { code: ERRORS[error.code].rpc, message: error.message, data };
  }

  async #withDeadline(
    method: RpcMethod,
    params: unknown,
    options: CallOptions & { readonly ticket: Ticket },
  ): Promise<Record<string, unknown>> {
    const { clock } = this.#options;
    let timer: Timer | null = null;
    try {
      const answer = await new Promise<Answer>((resolve, reject) => {
        const start = (common: CommonParams): RpcContext => {
          const { deadlineMs } = common;
          const expire = (): void => {
            const message = `${method.name} took longer than its deadline of ${deadlineMs} ms`;
            reject(new EvenkeelError('deadline_exceeded', message));
          };
          timer = clock.setTimeout(expire, deadlineMs);
          return this.#context(common, options);
        };
        method.run(params, start).then(resolve, reject);
      });
      const { plane } = this.#options;
      const { term, leaderId } = plane.leadership();
      return { revision: plane.state.revision, term, leaderId, ...answer };
    } finally {
      if (timer !== null) clock.clearTimeout(timer);
    }
  }

  #context(
    { deadlineMs, request }: CommonParams,
    { subscriber, maxBytes, ticket }: CallOptions & { readonly ticket: Ticket },
  ): RpcContext {
    const { plane, clock } = this.#options;
    const startedAt = clock.now();
    const remainingMs = (): number =>
      Math.max(1, Math.floor(startedAt + deadlineMs - ANSWER_MS - clock.now()));
    return {
      plane,
      clock,
      request,
      subscriber,
      remainingMs,
      admitLarge: async () => {
        const leave = await this.outbound.enterLarge();
        if (!ticket.isOver && (maxBytes?.() ?? 1) > 0) {
          ticket.leave = leave;
          return;
        }
        leave();
        throw new EvenkeelError('limit_exceeded', 'the answers before it fill the batch: ask by itself');
      },
      propose: (command) =>
        plane.propose(command, { deadlineMs: remainingMs(), ...(request !== null && { request }) }),
      askLeader: (service, asked) => plane.askLeader(service, asked, remainingMs()),
    };
  }

  /** A write that ran into its deadline may or may not take effect: the answer says so. */
  #withOutcome(method: RpcMethod, error: EvenkeelError): EvenkeelError {
    const uncertain = error.code === 'deadline_exceeded' || error.code === 'outcome_unknown';
    if (method.kind !== 'write' || !uncertain || error.data['outcome'] !== undefined) return error;
    return new EvenkeelError(error.code, error.message, { ...error.data, outcome: 'unknown' });
  }
}
