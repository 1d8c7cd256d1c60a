import type { Worker } from 'node:worker_threads';
import type { Clock } from '../../raft/index.ts';
import { plan, type Plan } from '../../placement/index.ts';
import { EvenkeelError } from '../errors.ts';
import type { StateView } from '../state/index.ts';
import type { ChangeFeed } from '../watch/index.ts';
import type { ControlLog } from './log.ts';
import {
  InlinePlanner,
  questionOf,
  type PassPlan,
  type PlanInput,
  type PlannerAnswers,
  type PlannerHost,
  type PlannerQuestion,
  type PlannerSubjects,
} from './planner-host.ts';
import type { FromPlanner, PlanList, ToPlanner } from './planner-messages.ts';
import { spawnPlanner } from './planner-thread.ts';
import { StateFeeder } from './state-feeder.ts';

/** Threads in a row that may end without having answered anything; after that plans are made on this thread. */
const MAX_LOST_THREADS = 3;

export interface WorkerPlannerOptions {
  readonly clock: Clock;
  readonly log: ControlLog;
  /** Starts the thread; `spawnPlanner` unless given. */
  readonly spawn?: () => Worker;
}

const LISTS: readonly PlanList[] = ['steps', 'waiting', 'unplaceable', 'unspread', 'conflicts'];

type Work = 'plan' | 'fullPlan' | PlannerQuestion;

interface Asked {
  readonly input: () => PlanInput;
  readonly work: Work;
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: Error) => void;
}

type Planned = Extract<FromPlanner, { type: 'planned' }>;

/**
 * Plans in a thread of its own that keeps a copy of the state, so that no pass holds the thread that runs Raft:
 * what changes is sent in parts, one a turn; the plan comes back in parts, each asked for by a turn of its own.
 */
export class WorkerPlanner implements PlannerHost {
  readonly #state: StateView;
  readonly #clock: Clock;
  readonly #log: ControlLog;
  readonly #feeder: StateFeeder;
  readonly #spawnThread: () => Worker;
  #worker: Worker | null = null;
  #lostThreads = 0;
  /** Where no thread can be had. */
  #inline: InlinePlanner | null = null;
  #running = false;
  #pumping = false;
  readonly #asked: Asked[] = [];
  /** The plan that is being made or fetched. */
  #current: (Asked & { readonly id: number }) | null = null;
  #planned: Planned | null = null;
  #lists: Record<PlanList, unknown[]> = emptyLists();
  #lastId = 0;

  constructor(
    state: StateView,
    feed: ChangeFeed,
    { clock, log, spawn = spawnPlanner }: WorkerPlannerOptions,
  ) {
    this.#state = state;
    this.#spawnThread = spawn;
    this.#clock = clock;
    this.#log = log;
    this.#feeder = new StateFeeder(state, feed, () => this.#pump());
  }

  start(): void {
    this.#running = true;
    if (this.#inline === null) this.#feeder.start(() => this.#post({ type: 'reset' }));
  }

  plan(input: () => PlanInput): Promise<PassPlan> {
    return this.#inline?.plan(input) ?? (this.#queue('plan', input) as Promise<PassPlan>);
  }

  fullPlan(input: () => PlanInput): Promise<Plan> {
    return this.#inline?.fullPlan(input) ?? (this.#queue('fullPlan', input) as Promise<Plan>);
  }

  ask<K extends keyof PlannerSubjects>(
    kind: K,
    subject: PlannerSubjects[K],
    input: () => PlanInput,
  ): Promise<PlannerAnswers[K]> {
    return (
      this.#inline?.ask(kind, subject, input) ??
      (this.#queue(questionOf(kind, subject), input) as Promise<PlannerAnswers[K]>)
    );
  }

  stop(): void {
    this.#running = false;
    this.#feeder.stop();
    this.#fail(new EvenkeelError('no_leader', 'the leadership ended while a plan was made'));
  }

  async close(): Promise<void> {
    this.stop();
    const worker = this.#worker;
    this.#worker = null;
    await worker?.terminate();
  }

  #queue(work: Work, input: () => PlanInput): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (!this.#running) {
        reject(new EvenkeelError('no_leader', 'plans are made where the quorum is led'));
        return;
      }
      this.#asked.push({ input, work, resolve, reject });
      this.#pump();
    });
  }

  /** Sends one part a turn; once the copy is whole, the next question. */
  #pump(): void {
    if (this.#pumping || !this.#running) return;
    this.#pumping = true;
    this.#clock.defer(() => {
      this.#pumping = false;
      if (!this.#running) return;
      const part = this.#feeder.next();
      if (part !== null) {
        this.#post({ type: 'part', part });
        this.#pump();
      } else if (this.#current === null) {
        this.#askNext();
      }
    });
  }

  #askNext(): void {
    const next = this.#asked.shift();
    if (next === undefined) return;
    const id = ++this.#lastId;
    this.#current = { ...next, id };
    this.#planned = null;
    this.#lists = emptyLists();
    const { policy, firstRegisteredAtMs } = this.#state;
    const { work } = next;
    this.#post({ type: 'work', id, input: next.input(), policy, firstRegisteredAtMs, work });
  }

  #post(message: ToPlanner): void {
    this.#worker ??= this.#spawn();
    this.#worker.postMessage(message, []);
  }

  #spawn(): Worker {
    const worker = this.#spawnThread();
    // The node's life does not hang on it.
    worker.unref();
    worker.on('message', (message: FromPlanner) => {
      this.#lostThreads = 0;
      this.#take(message);
    });
    worker.on('error', (error) => {
      this.#lose(worker, error instanceof Error ? error : new Error(String(error)));
    });
    worker.on('exit', (code) => this.#lose(worker, new Error(`the planner's thread ended with ${code}`)));
    return worker;
  }

  /** The thread is gone: a new one begins with nothing. Where none can be had, the passes go on here. */
  #lose(worker: Worker, error: Error): void {
    if (this.#worker !== worker) return;
    this.#worker = null;
    this.#fail(error);
    this.#lostThreads++;
    const fields = { error: error.message, threadsLost: this.#lostThreads };
    if (this.#lostThreads < MAX_LOST_THREADS) {
      this.#log.warn(fields, "the planner's thread ended; a new one begins");
      if (this.#running) this.start();
      return;
    }
    this.#log.error(
      fields,
      'the planner has no thread: plans are made on the thread that runs Raft, which a large cluster holds up',
    );
    this.#feeder.stop();
    this.#inline = new InlinePlanner(this.#state, plan);
  }

  #take(message: FromPlanner): void {
    const current = this.#current;
    if (current === null || message.id !== current.id) return;
    switch (message.type) {
      case 'failed':
        this.#current = null;
        current.reject(new Error(message.message));
        this.#pump();
        return;
      case 'answered':
        this.#current = null;
        current.resolve(message.answer);
        this.#pump();
        return;
      case 'planned':
        this.#planned = message;
        break;
      case 'rows':
        this.#lists[message.list].push(...message.rows);
    }
    // One message a turn: between any two, the thread sees to everything else.
    this.#clock.defer(() => this.#fetch());
  }

  #fetch(): void {
    const { current, planned } = { current: this.#current, planned: this.#planned };
    if (current === null || planned === null) return;
    for (const list of LISTS) {
      const from = this.#lists[list].length;
      if (from < planned.lengths[list]) {
        this.#post({ type: 'fetch', id: current.id, list, from });
        return;
      }
    }
    this.#current = null;
    current.resolve(assemble(planned, this.#lists));
    this.#pump();
  }

  #fail(error: Error): void {
    const failed = [...this.#asked.splice(0), ...(this.#current === null ? [] : [this.#current])];
    this.#current = null;
    for (const { reject } of failed) reject(error);
  }
}

function emptyLists(): Record<PlanList, unknown[]> {
  return { steps: [], waiting: [], unplaceable: [], unspread: [], conflicts: [] };
}

function assemble(planned: Planned, lists: Record<PlanList, unknown[]>): Plan | PassPlan {
  const { minimumLeaderMoves, nextDeadlineMs, levels } = planned;
  const plan = { ...lists, minimumLeaderMoves, nextDeadlineMs } as unknown as PassPlan;
  return levels === null ? plan : { ...plan, levels };
}
