import type { AdminClient } from '../../src/client/index.ts';
import { EvenkeelError } from '../../src/errors.ts';
import { rpc, RpcFailure } from './cluster.ts';

/** The label that is the register; its resource's name is the key. */
const LABEL = 'v';

export interface Seen {
  readonly value: string | null;
  /** What a compare-and-set names. */
  readonly resourceRevision: number;
}

/** One resource's label as a register, over retrying clients. */
export interface RegisterClient {
  /** Rejects with `NotDone`. */
  read(key: string): Promise<Seen>;
  /** Resolves with the revision; `null`: the expectation was not met. Rejects with `NotDone` or `OutcomeUnknown`. */
  write(key: string, value: string, expectedRevision?: number): Promise<number | null>;
}

/** It has no effect, and will have none. */
export class NotDone extends Error {}
/** It has an effect, or will have one, or never. */
export class OutcomeUnknown extends Error {}

interface Shown {
  readonly resource: { readonly labels: Readonly<Record<string, string>>; readonly resourceRevision: number };
}

function seen({ resource: { labels, resourceRevision } }: Shown): Seen {
  return { value: labels[LABEL] ?? null, resourceRevision };
}

function alteration(key: string, value: string, expectedRevision?: number): Record<string, unknown> {
  const labels = { [LABEL]: value };
  return { name: key, labels, ...(expectedRevision !== undefined && { expectedRevision }) };
}

/** Through the client that the CLI uses. */
export class AdminRegisters implements RegisterClient {
  readonly #client: AdminClient;

  constructor(client: AdminClient) {
    this.#client = client;
  }

  async read(key: string): Promise<Seen> {
    try {
      return seen(await this.#client.read<Shown>('resource.show', { name: key }));
    } catch (error) {
      if (error instanceof EvenkeelError && error.retriable) throw new NotDone(error.message);
      throw error;
    }
  }

  async write(key: string, value: string, expectedRevision?: number): Promise<number | null> {
    try {
      const { revision } = await this.#client.write(
        'resource.alter',
        alteration(key, value, expectedRevision),
      );
      return revision;
    } catch (error) {
      if (!(error instanceof EvenkeelError)) throw error;
      if (error.code === 'conflict') return null;
      if (error.data['outcome'] === 'unknown') throw new OutcomeUnknown(error.message);
      if (error.retriable) throw new NotDone(error.message);
      throw error;
    }
  }
}

/** After these a write is in no log. */
const NOT_RUN = new Set(['no_leader', 'overloaded']);
/** One try at one node, ms: a stopped process never answers. */
const TRY_MS = 1_000;

/**
 * A client that sends every request by POST, to another node at each try, and then again what was acknowledged:
 * a retry through any node must have no second effect and get the first answer.
 */
export class RepeatingRegisters implements RegisterClient {
  readonly #addresses: readonly string[];
  readonly #patienceMs: number;
  /** Retries that got another answer than the first. */
  readonly differing: string[] = [];
  repeats = 0;
  #at: number;
  #session: number | null = null;
  #lastRequest = 0;

  constructor(addresses: readonly string[], first: number, patienceMs: number) {
    this.#addresses = addresses;
    this.#at = first;
    this.#patienceMs = patienceMs;
  }

  async read(key: string): Promise<Seen> {
    try {
      return seen(await this.#retry<Shown>('resource.show', { name: key }));
    } catch (error) {
      if (error instanceof OutcomeUnknown) throw new NotDone(error.message);
      throw error;
    }
  }

  async write(key: string, value: string, expectedRevision?: number): Promise<number | null> {
    if (this.#session === null) {
      try {
        this.#session = (await this.#retry<{ session: number }>('session.open', {})).session;
      } catch (error) {
        if (error instanceof OutcomeUnknown) throw new NotDone('no session was opened');
        throw error;
      }
    }
    const requestId = `${this.#session}:${(this.#lastRequest += 1)}`;
    const params = { ...alteration(key, value, expectedRevision), requestId };
    const first = await this.#alter(params);
    for (let other = 0; other < this.#addresses.length; other += 1) {
      this.#at += 1;
      try {
        const again = await this.#alter(params, 1);
        this.repeats += 1;
        if (again !== first) this.differing.push(`${requestId}: first ${first}, then ${again}`);
      } catch (error) {
        if (!(error instanceof NotDone || error instanceof OutcomeUnknown)) throw error;
      }
    }
    return first;
  }

  async #alter(params: Readonly<Record<string, unknown>>, tries?: number): Promise<number | null> {
    try {
      return (await this.#retry<{ revision: number }>('resource.alter', params, tries)).revision;
    } catch (error) {
      if (error instanceof RpcFailure && error.error.data.code === 'conflict') return null;
      throw error;
    }
  }

  async #retry<T>(method: string, params: Readonly<Record<string, unknown>>, tries = Infinity): Promise<T> {
    const end = performance.now() + this.#patienceMs;
    let uncertain = false;
    for (let tried = 1; ; tried += 1) {
      const address = this.#addresses[this.#at % this.#addresses.length] ?? '';
      try {
        return await rpc<T>(address, method, { deadlineMs: TRY_MS, ...params }, TRY_MS + 500);
      } catch (error) {
        if (error instanceof RpcFailure && !error.error.data.retriable) throw error;
        uncertain ||= !(error instanceof RpcFailure && NOT_RUN.has(error.error.data.code));
        if (tried >= tries || performance.now() > end) {
          throw uncertain ? new OutcomeUnknown(String(error)) : new NotDone(String(error));
        }
      }
      this.#at += 1;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}
