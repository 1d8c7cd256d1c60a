import { Dice } from './dice.ts';
import type { Operation } from './linearizability.ts';
import { NotDone, OutcomeUnknown, type RegisterClient, type Seen } from './register-client.ts';
import type { RegisterInput, RegisterOutput } from './register.ts';

/** Between two operations of one client, ms: so that the history stays of a size that can be judged. */
const PACE_MS = 15;

export interface Acknowledged {
  readonly key: string;
  readonly value: string;
  readonly revision: number;
}

/** Clients that read, write and compare-and-set registers until told to stop, and what each of them saw. */
export class RegisterLoad {
  readonly history: Operation<RegisterInput, RegisterOutput>[] = [];
  readonly acknowledged: Acknowledged[] = [];
  unknown = 0;
  readonly #keys: readonly string[];
  readonly #running: Promise<void>[] = [];
  #stopped = false;

  constructor(keys: readonly string[]) {
    this.#keys = keys;
  }

  add(name: string, client: RegisterClient): void {
    const running = this.#run(name, client, new Dice(this.#running.length + 1));
    // It is looked at in `stop`.
    running.catch(() => undefined);
    this.#running.push(running);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#running);
  }

  async #run(name: string, client: RegisterClient, dice: Dice): Promise<void> {
    for (let n = 1; !this.#stopped; n += 1) {
      const key = dice.pick(this.#keys);
      const kind = dice.below(10);
      if (kind < 4) await this.read(name, client, key);
      else if (kind < 7) await this.#write(name, client, key, `${name}-${n}`);
      else await this.#compareAndSet(name, client, key, `${name}-${n}`);
      await new Promise((resolve) => setTimeout(resolve, PACE_MS));
    }
  }

  /** One read, recorded. */
  async read(name: string, client: RegisterClient, key: string): Promise<Seen | null> {
    const calledAt = performance.now();
    try {
      const seen = await client.read(key);
      this.#record(
        { client: name, key, calledAt, input: { type: 'read' } },
        { type: 'read', value: seen.value },
      );
      return seen;
    } catch (error) {
      if (error instanceof NotDone) return null;
      throw error;
    }
  }

  async #compareAndSet(name: string, client: RegisterClient, key: string, to: string): Promise<void> {
    const seen = await this.read(name, client, key);
    if (seen === null || seen.value === null) return;
    const input = { type: 'cas', from: seen.value, to } as const;
    await this.#alter({ client: name, key, input }, to, () => client.write(key, to, seen.resourceRevision));
  }

  async #write(name: string, client: RegisterClient, key: string, value: string): Promise<void> {
    const input = { type: 'write', value } as const;
    await this.#alter({ client: name, key, input }, value, () => client.write(key, value));
  }

  async #alter(
    call: { client: string; key: string; input: RegisterInput },
    value: string,
    send: () => Promise<number | null>,
  ): Promise<void> {
    const called = { ...call, calledAt: performance.now() };
    try {
      const revision = await send();
      if (call.input.type === 'cas') this.#record(called, { type: 'cas', swapped: revision !== null });
      else this.#record(called, { type: 'write' });
      if (revision !== null) this.acknowledged.push({ key: call.key, value, revision });
    } catch (error) {
      if (error instanceof NotDone) return;
      if (!(error instanceof OutcomeUnknown)) throw error;
      this.unknown += 1;
      this.history.push({ ...called, returned: null });
    }
  }

  #record(called: Omit<Operation<RegisterInput, RegisterOutput>, 'returned'>, output: RegisterOutput): void {
    this.history.push({ ...called, returned: { at: performance.now(), output } });
  }
}
