import { EvenkeelError } from '../errors.ts';
import type { SimCluster } from './cluster.ts';
import type { Member, RegisterValue } from './kit.ts';
import type { History } from './history.ts';
import type { SimOperation } from './plan.ts';
import type { SimWorld } from './world.ts';

/** One try at one member. */
const ATTEMPT_MS = 1_000;
/** All tries of one operation; past it its outcome is left open. */
const OPERATION_MS = 5_000;
const RETRY_MS = 100;

/**
 * A client of the cluster that never sends the same request twice by mistake: it retries with the same
 * (session, n) through other members until it is answered or gives up.
 */
export class SimClient {
  readonly name: string;
  done = false;
  readonly #cluster: SimCluster;
  readonly #world: SimWorld;
  readonly #history: History;
  /** Asked in turn. */
  readonly #members: readonly string[];
  readonly #keys: readonly string[];
  readonly #patienceMs: number;
  #session = 0;
  #n = 0;

  constructor(
    name: string,
    cluster: SimCluster,
    history: History,
    options: { members: readonly string[]; keys: readonly string[]; patienceMs?: number },
  ) {
    this.name = name;
    this.#cluster = cluster;
    this.#world = cluster.world;
    this.#history = history;
    this.#members = options.members;
    this.#keys = options.keys;
    this.#patienceMs = options.patienceMs ?? OPERATION_MS;
  }

  async run(operations: readonly SimOperation[]): Promise<void> {
    for (const operation of operations) {
      await this.#sleep(operation.thinkMs);
      if (operation.type !== 'read' && !(await this.#haveSession(operation.first))) continue;
      await this.#do(operation);
    }
    this.done = true;
  }

  /** One write, then one read, each repeated until it is answered. */
  async probe(key: string, value: string): Promise<void> {
    const [first = ''] = this.#members;
    while (!(await this.#haveSession(first)));
    const call = this.#history.call(this.name, key, { type: 'write', value });
    const request = { session: this.#session, n: ++this.#n, key, value, expectedRevision: null };
    let written: Tried<void>;
    do written = await this.#try(first, (member) => member.write(request, ATTEMPT_MS));
    while (written.outcome === 'open');
    if (written.outcome === 'refused') this.#unexpected(written.error);
    call.returned({ type: 'write' });
    while ((await this.#read(key, first)) === null);
    this.done = true;
  }

  async #do(operation: SimOperation): Promise<void> {
    const { key, value, first } = operation;
    if (operation.type === 'read') {
      await this.#read(key, first);
    } else if (operation.type === 'write') {
      await this.#write(key, value, first);
    } else {
      const seen = await this.#read(key, first);
      if (seen === null || seen.value === null) return;
      await this.#swap(key, seen.value, value, seen.revision, first);
    }
  }

  async #haveSession(first: string): Promise<boolean> {
    if (this.#session !== 0) return true;
    const prepared = await this.#try(first, (member) => member.prepare(this.#keys, ATTEMPT_MS));
    if (prepared.outcome === 'refused') this.#unexpected(prepared.error);
    if (prepared.outcome !== 'answered') return false;
    const opened = await this.#try(first, (member) => member.openSession(ATTEMPT_MS));
    if (opened.outcome !== 'answered') return false;
    this.#session = opened.value;
    return true;
  }

  async #read(key: string, first: string): Promise<RegisterValue | null> {
    const call = this.#history.call(this.name, key, { type: 'read' });
    const read = await this.#try(first, (member) => member.read(key, ATTEMPT_MS));
    if (read.outcome !== 'answered') {
      call.hadNoEffect();
      return null;
    }
    call.returned({ type: 'read', value: read.value.value });
    return read.value;
  }

  async #write(key: string, value: string, first: string): Promise<void> {
    const call = this.#history.call(this.name, key, { type: 'write', value });
    const request = { session: this.#session, n: ++this.#n, key, value, expectedRevision: null };
    const written = await this.#try(first, (member) => member.write(request, ATTEMPT_MS));
    if (written.outcome === 'answered') call.returned({ type: 'write' });
    if (written.outcome === 'refused') this.#unexpected(written.error);
  }

  async #swap(key: string, from: string, to: string, revision: number, first: string): Promise<void> {
    const call = this.#history.call(this.name, key, { type: 'cas', from, to });
    const request = { session: this.#session, n: ++this.#n, key, value: to, expectedRevision: revision };
    const written = await this.#try(first, (member) => member.write(request, ATTEMPT_MS));
    if (written.outcome === 'answered') call.returned({ type: 'cas', swapped: true });
    if (written.outcome === 'refused') {
      // Values are unique, so that another revision is another value.
      if (written.error.code === 'conflict') call.returned({ type: 'cas', swapped: false });
      else this.#unexpected(written.error);
    }
  }

  /** Nothing that these clients send may be refused for good: a session, once opened, is there. */
  #unexpected(error: EvenkeelError): void {
    this.#world.fail(new Error(`${this.name} was refused with ${error.code}: ${error.message}`));
  }

  async #try<T>(first: string, ask: (member: Member) => Promise<T>): Promise<Tried<T>> {
    const members = this.#members;
    const untilMs = this.#world.nowMs + this.#patienceMs;
    for (let at = members.indexOf(first); this.#world.nowMs < untilMs; at++) {
      const id = members[at % members.length] as string;
      const tried = await this.#attempt(id, ask);
      if (tried.outcome !== 'open') return tried;
      await this.#sleep(RETRY_MS);
    }
    return { outcome: 'open' };
  }

  #attempt<T>(id: string, ask: (member: Member) => Promise<T>): Promise<Tried<T>> {
    return new Promise((resolve) => {
      this.#world.schedule(ATTEMPT_MS * 1.2, `${this.name} gives up`, () => resolve({ outcome: 'open' }));
      const process = this.#cluster.process(id);
      if (process === null) {
        resolve({ outcome: 'open' });
        return;
      }
      process.deliver(() => {
        const member = this.#cluster.member(id);
        if (member === null) {
          resolve({ outcome: 'open' });
          return;
        }
        ask(member).then(
          (value) => resolve({ outcome: 'answered', value }),
          (error: unknown) => resolve(this.#classify(error)),
        );
      });
    });
  }

  #classify(error: unknown): { outcome: 'open' } | { outcome: 'refused'; error: EvenkeelError } {
    if (!(error instanceof EvenkeelError)) {
      this.#world.fail(new Error(`${this.name} met a foreign error`, { cause: error }));
      return { outcome: 'open' };
    }
    return error.retriable ? { outcome: 'open' } : { outcome: 'refused', error };
  }

  #sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.#world.schedule(ms, `${this.name} wakes`, resolve);
    });
  }
}

type Tried<T> =
  | { readonly outcome: 'answered'; readonly value: T }
  | { readonly outcome: 'refused'; readonly error: EvenkeelError }
  | { readonly outcome: 'open' };
