/**
 * Is a history of concurrent operations linearizable? The search of Wing and Gong ("Testing and verifying
 * concurrent objects", 1993) with Lowe's memory of states seen ("Testing for linearizability", 2017), key
 * by key (linearizability is local, so each key is judged by itself).
 */

/** One operation as its client saw it. Times only need to be in true order: nanoseconds, or positions in a log. */
export interface Operation<Input, Output> {
  readonly client: string;
  readonly key: string;
  readonly input: Input;
  readonly calledAt: number;
  /** `null`: the outcome is unknown. It took effect at any time after the call, or never. */
  readonly returned: { readonly at: number; readonly output: Output } | null;
}

/** The sequential object that the history is held against. States are immutable. */
export interface Model<State, Input, Output> {
  readonly initial: State;
  /** The state after the operation, or `undefined` where this output is impossible. `output` `null`: unknown, anything may have been answered. */
  step(state: State, input: Input, output: Output | null): { readonly state: State } | undefined;
  /** Equal for equal states and no others. */
  stateKey(state: State): string;
  describe(input: Input, output: Output | null): string;
}

export type Verdict =
  | { readonly ok: true; readonly steps: number }
  /** `report`: the longest prefix that could be linearized and the operation that cannot follow it. */
  | { readonly ok: false; readonly key: string; readonly report: string };

/** Far beyond what a history that a test should produce needs; past it the search throws rather than guesses. */
const MAX_STEPS_PER_KEY = 20_000_000;

/** Throws where the history itself is malformed (a return before its call) or the search grows past all bounds. */
export function checkLinearizable<State, Input, Output>(
  history: readonly Operation<Input, Output>[],
  model: Model<State, Input, Output>,
): Verdict {
  const byKey = new Map<string, Operation<Input, Output>[]>();
  for (const operation of history) {
    if (operation.returned !== null && operation.returned.at < operation.calledAt) {
      throw new Error(`${operation.client}: an operation on ${operation.key} returns before its call`);
    }
    const operations = byKey.get(operation.key);
    if (operations === undefined) byKey.set(operation.key, [operation]);
    else operations.push(operation);
  }
  let steps = 0;
  for (const [key, operations] of byKey) {
    const search = new Search(operations, model);
    const found = search.run();
    steps += search.steps;
    if (!found) return { ok: false, key, report: search.report(key) };
  }
  return { ok: true, steps };
}

/** A call or a return in time order, in a doubly linked list from which linearized operations are lifted out. */
interface Event {
  readonly operation: number;
  /** The return's event on a call; `null` on a return and on a call whose outcome is unknown. */
  readonly match: Event | null;
  readonly isCall: boolean;
  previous: Event | null;
  next: Event | null;
}

class Search<State, Input, Output> {
  steps = 0;
  readonly #operations: readonly Operation<Input, Output>[];
  readonly #model: Model<State, Input, Output>;
  readonly #head: Event = { operation: -1, match: null, isCall: false, previous: null, next: null };
  readonly #seen = new Map<string, Set<string>>();
  readonly #linearized: Uint32Array;
  #longest: number[] = [];
  #stuckAt = -1;

  constructor(operations: readonly Operation<Input, Output>[], model: Model<State, Input, Output>) {
    this.#operations = operations;
    this.#model = model;
    this.#linearized = new Uint32Array(Math.ceil(operations.length / 32));
    this.#link();
  }

  run(): boolean {
    let state = this.#model.initial;
    let waiting = this.#operations.filter((operation) => operation.returned !== null).length;
    const stack: { event: Event; before: State }[] = [];
    let event = this.#head.next;
    // What is left once every known return is placed is open to the end: it may never take effect.
    while (waiting > 0) {
      if (++this.steps > MAX_STEPS_PER_KEY)
        throw new Error('the linearizability search grew past all bounds');
      if (event === null) throw new Error('the event list ended before its returns');
      if (event.isCall) {
        const after = this.#tryStep(state, event.operation);
        if (after !== undefined) {
          stack.push({ event, before: state });
          state = after.state;
          this.#lift(event);
          if (event.match !== null) waiting--;
          event = this.#head.next;
        } else {
          event = event.next;
        }
        continue;
      }
      // A return whose operation could not be placed before it: take the last choice back.
      this.#remember(stack, event.operation);
      const last = stack.pop();
      if (last === undefined) return false;
      state = last.before;
      this.#unlift(last.event);
      if (last.event.match !== null) waiting++;
      event = last.event.next;
    }
    return true;
  }

  report(key: string): string {
    const lines = [`not linearizable: key ${key}, ${this.#operations.length} operations`];
    lines.push(`longest order found, ${this.#longest.length} operations, its end:`);
    let state = this.#model.initial;
    const order = this.#longest.map((index) => {
      const operation = this.#operations[index] as Operation<Input, Output>;
      state = this.#model.step(state, operation.input, operation.returned?.output ?? null)?.state ?? state;
      return `  ${this.#line(index)}  → ${this.#model.stateKey(state)}`;
    });
    lines.push(...order.slice(-20));
    lines.push('cannot follow:', `  ${this.#line(this.#stuckAt)}`);
    const open = this.#operations
      .map((_, index) => index)
      .filter((index) => index !== this.#stuckAt && !this.#longest.includes(index) && this.#overlaps(index));
    if (open.length > 0)
      lines.push('concurrent with it and not placed:', ...open.map((index) => `  ${this.#line(index)}`));
    return lines.join('\n');
  }

  #overlaps(index: number): boolean {
    const stuck = this.#operations[this.#stuckAt];
    const other = this.#operations[index];
    return other !== undefined && other.calledAt <= (stuck?.returned?.at ?? -Infinity);
  }

  #line(index: number): string {
    const { client, calledAt, returned, input } = this.#operations[index] as Operation<Input, Output>;
    const until = returned === null ? 'unknown' : String(returned.at);
    return `[${calledAt}, ${until}] ${client}: ${this.#model.describe(input, returned?.output ?? null)}`;
  }

  #tryStep(state: State, index: number): { readonly state: State } | undefined {
    const operation = this.#operations[index] as Operation<Input, Output>;
    const after = this.#model.step(
      state,
      operation.input,
      operation.returned === null ? null : operation.returned.output,
    );
    if (after === undefined) return undefined;
    this.#flip(index);
    const bits = this.#bits();
    const key = this.#model.stateKey(after.state);
    let states = this.#seen.get(bits);
    if (states === undefined) this.#seen.set(bits, (states = new Set()));
    if (states.has(key)) {
      this.#flip(index);
      return undefined;
    }
    states.add(key);
    return after;
  }

  #flip(index: number): void {
    const word = index >>> 5;
    this.#linearized[word] = (this.#linearized[word] as number) ^ (1 << (index & 31));
  }

  #bits(): string {
    return String.fromCharCode(...new Uint16Array(this.#linearized.buffer));
  }

  #remember(stack: readonly { event: Event }[], stuckAt: number): void {
    if (this.#stuckAt >= 0 && stack.length <= this.#longest.length) return;
    this.#longest = stack.map((choice) => choice.event.operation);
    this.#stuckAt = stuckAt;
  }

  #lift(call: Event): void {
    for (const event of [call, call.match]) {
      if (event === null) continue;
      if (event.previous !== null) event.previous.next = event.next;
      if (event.next !== null) event.next.previous = event.previous;
    }
  }

  #unlift(call: Event): void {
    for (const event of [call.match, call]) {
      if (event === null) continue;
      if (event.previous !== null) event.previous.next = event;
      if (event.next !== null) event.next.previous = event;
    }
    this.#flip(call.operation);
  }

  /** Builds the list: by time, calls before returns at the same instant (they count as concurrent). */
  #link(): void {
    const events: { at: number; event: Event }[] = [];
    for (const [operation, { calledAt, returned }] of this.#operations.entries()) {
      const end: Event | null =
        returned === null ? null : { operation, match: null, isCall: false, previous: null, next: null };
      events.push({
        at: calledAt,
        event: { operation, match: end, isCall: true, previous: null, next: null },
      });
      if (returned !== null && end !== null) events.push({ at: returned.at, event: end });
    }
    events.sort((a, b) => a.at - b.at || Number(b.event.isCall) - Number(a.event.isCall));
    let last = this.#head;
    for (const { event } of events) {
      last.next = event;
      event.previous = last;
      last = event;
    }
  }
}
