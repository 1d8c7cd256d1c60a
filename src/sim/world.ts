import { SimClock } from './clock.ts';
import { hashString, SimRandom } from './random.ts';
import { TraceHash } from './trace.ts';

/** What a held or killed process does with an event: timers and inputs come back in different orders after a stall. */
export type EventKind = 'timer' | 'input';

/** A step of the world to come. `cancelled` events are skipped. */
export interface SimEvent {
  readonly timeMs: number;
  readonly sequence: number;
  readonly label: number;
  readonly kind: EventKind;
  readonly process: SimProcess | null;
  readonly run: () => void;
  cancelled: boolean;
}

/** Immediates queued at once: Node drains promises between any two of them, which is all a step needs. */
const STEPS_PER_BATCH = 256;

/**
 * Virtual time and everything that happens in it: a queue of events ordered by (time, sequence). One event
 * is one step; all promise reactions of a step run before the next. Nothing here reads a real clock, so one
 * seed is one history, and `traceHash` says so.
 */
export class SimWorld {
  readonly seed: number;
  readonly trace = new TraceHash();
  /** Called after each step, once its promises have settled: where invariants are checked. */
  afterStep: () => void = () => {};
  #nowMs = 0;
  #sequence = 0;
  #steps = 0;
  #failure: Error | null = null;
  readonly #queue: SimEvent[] = [];
  readonly #labels = new Map<string, number>();

  constructor(seed: number) {
    this.seed = seed;
  }

  /** Virtual milliseconds since the beginning; the one true time. */
  get nowMs(): number {
    return this.#nowMs;
  }

  get steps(): number {
    return this.#steps;
  }

  get failure(): Error | null {
    return this.#failure;
  }

  random(stream: string): SimRandom {
    return new SimRandom(this.seed, stream);
  }

  /** Stops the run after this step; the first failure is the one reported. */
  fail(error: Error): void {
    this.#failure ??= error;
  }

  schedule(
    delayMs: number,
    label: string,
    run: () => void,
    process: SimProcess | null = null,
    kind: EventKind = 'input',
  ): SimEvent {
    const event: SimEvent = {
      timeMs: this.#nowMs + Math.max(0, delayMs),
      sequence: this.#sequence++,
      label: this.#label(label),
      kind,
      process,
      run,
      cancelled: false,
    };
    this.#push(event);
    return event;
  }

  /** Runs steps until the time has passed, `until` is true after a step, nothing is left, or something failed (rejects). */
  run(options: { untilMs: number; until?: () => boolean }): Promise<void> {
    return new Promise((resolve, reject) => {
      let ended = false;
      const turn = (): void => {
        if (ended) return;
        try {
          this.afterStep();
          if (this.#failure === null && options.until?.() !== true && this.#step(options.untilMs)) return;
        } catch (error) {
          this.fail(error instanceof Error ? error : new Error(String(error)));
          if (this.#failure === null) return;
        }
        ended = true;
        if (this.#failure === null) resolve();
        else reject(this.#failure);
      };
      const batch = (): void => {
        for (let i = 0; i < STEPS_PER_BATCH; i++) setImmediate(turn);
        setImmediate(() => {
          if (!ended) batch();
        });
      };
      batch();
    });
  }

  /** One event; false when none is left before the time, which has then come. */
  #step(untilMs: number): boolean {
    for (;;) {
      const event = this.#queue[0];
      if (event === undefined || event.timeMs > untilMs) {
        this.#nowMs = Math.max(this.#nowMs, untilMs);
        return false;
      }
      this.#pop();
      if (event.cancelled) continue;
      this.#nowMs = event.timeMs;
      if (event.process !== null) {
        if (!event.process.alive) continue;
        if (event.process.stalled) {
          event.process.hold(event);
          continue;
        }
      }
      this.#steps++;
      this.trace.number(event.timeMs);
      this.trace.integer(event.label);
      event.run();
      return true;
    }
  }

  #label(label: string): number {
    let hash = this.#labels.get(label);
    if (hash === undefined) {
      hash = hashString(label, 0);
      this.#labels.set(label, hash);
    }
    return hash;
  }

  #push(event: SimEvent): void {
    const queue = this.#queue;
    let at = queue.length;
    queue.push(event);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = queue[parent] as SimEvent;
      if (!isBefore(event, above)) break;
      queue[at] = above;
      at = parent;
    }
    queue[at] = event;
  }

  #pop(): void {
    const queue = this.#queue;
    const last = queue.pop() as SimEvent;
    if (queue.length === 0) return;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= queue.length) break;
      const right = queue[child + 1];
      if (right !== undefined && isBefore(right, queue[child] as SimEvent)) child++;
      const below = queue[child] as SimEvent;
      if (!isBefore(below, last)) break;
      queue[at] = below;
      at = child;
    }
    queue[at] = last;
  }
}

function isBefore(a: SimEvent, b: SimEvent): boolean {
  return a.timeMs < b.timeMs || (a.timeMs === b.timeMs && a.sequence < b.sequence);
}

/**
 * One life of one operating-system process on a named host. Killed, nothing of it runs again; stalled
 * (SIGSTOP), its timers and inputs wait, while its clock goes on. A restart is a new SimProcess.
 */
export class SimProcess {
  readonly world: SimWorld;
  readonly host: string;
  readonly clock: SimClock;
  readonly random: SimRandom;
  #alive = true;
  #stalled = false;
  #held: Pick<SimEvent, 'kind' | 'run' | 'cancelled'>[] = [];
  readonly #endings: (() => void)[] = [];

  constructor(
    world: SimWorld,
    host: string,
    options: { life: number; driftPart: number; wallOffsetMs: number },
  ) {
    this.world = world;
    this.host = host;
    this.random = world.random(`process ${host} ${options.life}`);
    this.clock = new SimClock(this, options);
  }

  get alive(): boolean {
    return this.#alive;
  }

  get stalled(): boolean {
    return this.#stalled;
  }

  /** Called at once when the process dies: what the operating system does for it (sockets, locks). */
  onEnd(callback: () => void): void {
    this.#endings.push(callback);
  }

  kill(): void {
    if (!this.#alive) return;
    this.#alive = false;
    this.#held = [];
    for (const callback of this.#endings) callback();
  }

  /** SIGSTOP. */
  stall(): void {
    this.#stalled = true;
  }

  /** SIGCONT: what waited comes at once, in order; whether timers or sockets are looked at first is chance. */
  resume(timersFirst: boolean): void {
    if (!this.#stalled) return;
    this.#stalled = false;
    const held = this.#held;
    this.#held = [];
    const first: EventKind = timersFirst ? 'timer' : 'input';
    for (const pass of [true, false]) {
      for (const event of held) {
        if (event.cancelled || (event.kind === first) !== pass) continue;
        const again = (): void => {
          if (!event.cancelled) event.run();
        };
        this.world.schedule(0, 'resumed', again, this, event.kind);
      }
    }
  }

  /** For the world: an event that came due while stalled. */
  hold(event: Pick<SimEvent, 'kind' | 'run' | 'cancelled'>): void {
    this.#held.push(event);
  }

  /** Input from the kernel, now: taken in at once, or once the process goes on. */
  deliver(run: () => void): void {
    if (!this.#alive) return;
    if (this.#stalled) this.hold({ kind: 'input', run, cancelled: false });
    else run();
  }
}
