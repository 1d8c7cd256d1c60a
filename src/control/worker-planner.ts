import type { Worker } from 'node:worker_threads';
import type { Clock } from '../../raft/index.ts';
import { plan, type Plan } from '../../placement/index.ts';
import { EvenkeelError } from '../errors.ts';
import type { StateView } from '../state/index.ts';
import type { ChangeFeed } from '../watch/index.ts';
import { unawaited } from '../unawaited.ts';
import type { ControlLog } from './log.ts';
import {
  InlinePlanner,
  questionOf,
  type OpenPlan,
  type PlanInput,
  type PlannerAnswers,
  type PlannerHost,
  type PlannerSubjects,
} from './planner-host.ts';
import { PlannerLink } from './planner-link.ts';
import type { PlanLists, PlannerCalls, PlannerFacts } from './planner-messages.ts';
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

interface Job {
  readonly run: (link: PlannerLink) => Promise<void>;
  readonly reject: (error: Error) => void;
}

/**
 * Plans in a thread of its own that keeps a copy of the state, so that no pass holds the thread that runs Raft: what
 * changes is sent in parts, one a turn; a plan stays there and is read slice by slice, each asked for by a turn of its own.
 */
export class WorkerPlanner implements PlannerHost {
  readonly #state: StateView;
  readonly #clock: Clock;
  readonly #log: ControlLog;
  readonly #feeder: StateFeeder;
  readonly #spawnThread: () => Worker;
  /** To the thread of this leadership. */
  #link: PlannerLink | null = null;
  #lostThreads = 0;
  /** Where no thread can be had. */
  #inline: InlinePlanner | null = null;
  #pumping = false;
  readonly #jobs: Job[] = [];
  #isBusy = false;
  #ended: Promise<void> = Promise.resolve();

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
    if (this.#inline !== null) return;
    const link: PlannerLink = new PlannerLink(this.#spawnThread(), {
      onAnswer: () => (this.#lostThreads = 0),
      onLost: (error) => this.#lose(error),
    });
    this.#link = link;
    this.#feeder.start(() => link.reset());
  }

  async plan(input: () => PlanInput): Promise<OpenPlan> {
    if (this.#inline !== null) return this.#inline.plan(input);
    return this.#queue(input, async (link, facts) => {
      const { plan: id, summary } = await link.ask('plan', facts);
      return { summary, slices: this.#read(link, id, 'steps') };
    });
  }

  async fullPlan(input: () => PlanInput): Promise<Plan> {
    if (this.#inline !== null) return this.#inline.fullPlan(input);
    return this.#queue(input, async (link, facts) => {
      const { plan: id, rest } = await link.ask('fullPlan', facts);
      return this.#readAll(link, id, rest);
    });
  }

  async ask<K extends keyof PlannerSubjects>(
    kind: K,
    subject: PlannerSubjects[K],
    input: () => PlanInput,
  ): Promise<PlannerAnswers[K]> {
    if (this.#inline !== null) return this.#inline.ask(kind, subject, input);
    const question = questionOf(kind, subject);
    return this.#queue(
      input,
      (link, facts) => link.ask('question', { ...facts, question }) as Promise<PlannerAnswers[K]>,
    );
  }

  /** The thread ends, with its copy and whatever it was at: the next leadership begins with another. */
  stop(): void {
    const error = new EvenkeelError('no_leader', 'the leadership ended while a plan was made');
    const link = this.#link;
    this.#link = null;
    this.#feeder.stop();
    this.#rejectJobs(error);
    if (link !== null) this.#ended = link.end(error);
  }

  async close(): Promise<void> {
    this.stop();
    await this.#ended;
  }

  /** `work` begins once the thread's copy is that of the moment, and everything asked for before has been answered. */
  #queue<T>(
    input: () => PlanInput,
    work: (link: PlannerLink, facts: PlannerFacts) => Promise<T>,
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#link === null) {
        reject(new EvenkeelError('no_leader', 'plans are made where the quorum is led'));
        return;
      }
      const run = async (link: PlannerLink): Promise<void> => {
        try {
          const { policy, firstRegisteredAtMs, phase } = this.#state;
          resolve(await work(link, { input: input(), policy, firstRegisteredAtMs, phase }));
        } catch (error) {
          reject(error);
        }
      };
      this.#jobs.push({ run, reject });
      this.#pump();
    });
  }

  /** Sends one part a turn; once the copy is whole, the next question. */
  #pump(): void {
    if (this.#pumping || this.#link === null) return;
    this.#pumping = true;
    this.#clock.defer(() => {
      this.#pumping = false;
      const link = this.#link;
      if (link === null) return;
      const part = this.#feeder.next();
      if (part !== null) {
        link.feed(part);
        this.#pump();
      } else if (!this.#isBusy) {
        unawaited(this.#runNext(link));
      }
    });
  }

  async #runNext(link: PlannerLink): Promise<void> {
    const job = this.#jobs.shift();
    if (job === undefined) return;
    this.#isBusy = true;
    await job.run(link);
    this.#isBusy = false;
    this.#pump();
  }

  async #readAll(
    link: PlannerLink,
    id: number,
    rest: PlannerCalls['fullPlan']['answer']['rest'],
  ): Promise<Plan> {
    const all = async <K extends keyof PlanLists>(list: K): Promise<PlanLists[K][number][]> => {
      const found: PlanLists[K][number][] = [];
      for await (const rows of this.#read(link, id, list)) found.push(...rows);
      return found;
    };
    const { levels, ...figures } = rest;
    return {
      steps: await all('steps'),
      waiting: await all('waiting'),
      unplaceable: await all('unplaceable'),
      unspread: await all('unspread'),
      conflicts: await all('conflicts'),
      ...figures,
      levels: { leaders: Object.fromEntries(await all('leaders')), ...levels },
    };
  }

  /** A list of a plan, slice by slice. The next is fetched while one is used. */
  async *#read<K extends keyof PlanLists>(
    link: PlannerLink,
    plan: number,
    list: K,
  ): AsyncGenerator<PlanLists[K], void> {
    const fetch = async (): Promise<PlannerCalls['rows']['answer']> => {
      // One message a turn: between any two, the thread sees to everything else.
      await new Promise<void>((resolve) => this.#clock.defer(resolve));
      return link.ask('rows', { plan, list });
    };
    let next = fetch();
    for (;;) {
      const { rows, left } = await next;
      if (left > 0) {
        next = fetch();
        // Whoever goes on reading is told.
        next.catch(() => {});
      }
      yield rows as unknown as PlanLists[K];
      if (left === 0) return;
    }
  }

  /** The thread is gone: a new one begins with nothing. Where none can be had, the passes go on here. */
  #lose(error: Error): void {
    this.#link = null;
    this.#rejectJobs(error);
    this.#lostThreads++;
    const fields = { error: error.message, threadsLost: this.#lostThreads };
    if (this.#lostThreads < MAX_LOST_THREADS) {
      this.#log.warn(fields, "the planner's thread ended; a new one begins");
      this.start();
      return;
    }
    this.#log.error(
      fields,
      'the planner has no thread: plans are made on the thread that runs Raft, which a large cluster holds up',
    );
    this.#feeder.stop();
    this.#inline = new InlinePlanner(this.#state, plan);
  }

  #rejectJobs(error: Error): void {
    for (const { reject } of this.#jobs.splice(0)) reject(error);
  }
}
