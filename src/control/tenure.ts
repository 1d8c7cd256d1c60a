import type { Timer } from '../../raft/index.ts';
import type { Command, Proposed, RowResult } from '../command/index.ts';
import { EvenkeelError } from '../errors.ts';
import type { AssignmentRow, Change, ChangeSet, Served } from '../state/index.ts';
import { unawaited } from '../unawaited.ts';
import { Confirmations } from './confirmations.ts';
import { brokersToForget } from './forget-brokers.ts';
import { InactiveShards } from './inactive-shards.ts';
import { leasedUntil, Liveness } from './liveness.ts';
import type { ControlOptions } from './options.ts';
import { Passes, type PassStats } from './passes.ts';
import { ReportBook } from './reports.ts';
import { QuorumRounds } from './rounds.ts';
import { Untold } from './untold.ts';

/** Between two attempts to see what was proposed settled, ms. */
const SETTLE_RETRY_MS = 1_000;

/** How long a write of the leader's own may take, ms. */
export const WRITE_DEADLINE_MS = 10_000;

/**
 * One leadership of this node, from the no-op of its term until the term is lost. Everything that a leader knows
 * and the log does not is in here, and ends with it.
 */
export class Tenure {
  readonly term: number;
  readonly liveness: Liveness;
  readonly reports: ReportBook;
  readonly rounds: QuorumRounds;
  readonly passes: Passes;
  readonly inactive: InactiveShards;
  /** Shards with a move in flight. */
  readonly moving = new Map<string, AssignmentRow>();
  /** Brokers that asked to leave once nothing names them, with the incarnation that asked. */
  readonly leaving = new Map<string, number>();
  readonly untold = new Untold();
  readonly #confirmations = new Confirmations();
  readonly #options: ControlOptions;
  #sessions = 0;
  /** Who was not heard, and what was not confirmed, at the last tick. */
  #silence = '';
  #closed = false;
  #unsubscribe: () => void = () => {};
  #ticker: Timer | null = null;

  constructor(options: ControlOptions, term: number, stats: PassStats) {
    const { plane, clock, timings } = options;
    this.#options = options;
    this.term = term;
    this.liveness = new Liveness(clock, timings);
    this.inactive = new InactiveShards(clock);
    this.reports = new ReportBook(this.nowMs());
    this.rounds = new QuorumRounds(() => plane.confirmLeadership(timings.leaseMs));
    this.passes = new Passes({
      clock,
      state: plane.state,
      host: options.planner,
      log: options.log,
      stats,
      nowMs: () => this.nowMs(),
      reports: (nowMs) =>
        this.reports.view(this.moving.values(), plane.state.brokers, {
          leasedUntilMs: leasedUntil(plane.state.brokers.values(), nowMs, timings),
          unheard: new Set(this.liveness.unheard(plane.state.brokers.values())),
          unconfirmed: this.#overdue(nowMs),
        }),
      propose: async (command) => (await this.propose(command)).value as readonly RowResult[],
    });
  }

  get isOver(): boolean {
    const now = this.#options.plane.leadership();
    return this.#closed || !now.established || now.term !== this.term;
  }

  /** For what is asked of a leader after an await. */
  assertLeading(): void {
    if (this.isOver) throw new EvenkeelError('no_leader', 'this node has just lost its leadership; retry');
  }

  /** Cluster time as rows carry it: whole ms. */
  nowMs(): number {
    return Math.floor(this.#options.plane.clusterTimeMs());
  }

  start(): void {
    this.#follow();
    this.#tick();
    this.passes.start();
  }

  close(): void {
    this.#closed = true;
    this.#unsubscribe();
    if (this.#ticker !== null) this.#options.clock.clearTimeout(this.#ticker);
    this.passes.close();
  }

  nextSession(): { term: number; n: number } {
    return { term: this.term, n: ++this.#sessions };
  }

  /** Writes in this term or not at all. */
  propose(command: Command, request?: { readonly session: number; readonly n: number }): Promise<Proposed> {
    return this.#options.plane.propose(command, {
      deadlineMs: WRITE_DEADLINE_MS,
      inTerm: this.term,
      ...(request === undefined ? {} : { request }),
    });
  }

  /** Whether it resolves in so many ms. It must not reject. */
  async within(promise: Promise<void>, ms: number): Promise<boolean> {
    const { clock } = this.#options;
    return await new Promise((resolve) => {
      const timer = clock.setTimeout(() => resolve(false), ms);
      unawaited(
        promise.then(() => {
          clock.clearTimeout(timer);
          resolve(true);
        }),
      );
    });
  }

  /**
   * Resolves once each earlier proposal of this leadership is applied or never will be, or the leadership is over: an entry
   * that changes nothing has come after them. Never rejects.
   */
  async settled(): Promise<void> {
    const { clock } = this.#options;
    while (!this.isOver) {
      try {
        await this.propose({ type: 'placement', rows: [] });
        return;
      } catch {
        await new Promise<void>((resolve) => void clock.setTimeout(resolve, SETTLE_RETRY_MS));
      }
    }
  }

  /**
   * Proposes an entry that ends the broker's incarnation. No heartbeat of the broker gets a lease until the entry is applied or
   * never will be: what the entry says of the last lease holds whenever it is applied, and one that was refused
   * takes nothing from the broker. `onUnknown` is told when the outcome, unknown by the deadline, will be known.
   */
  async proposeEnding(
    broker: string,
    command: Command,
    onUnknown: (settled: Promise<void>) => void = () => {},
  ): Promise<Proposed> {
    const release = this.liveness.withholdLeases(broker);
    try {
      const proposed = await this.propose(command);
      release();
      return proposed;
    } catch (error) {
      const isUnknown = error instanceof EvenkeelError && error.data['outcome'] === 'unknown';
      if (isUnknown) onUnknown(this.settled().finally(release));
      else release();
      throw error;
    }
  }

  /**
   * Declares that incarnation gone. Its last sign of life, which bounds every lease it had, goes into the log with it.
   */
  async declare(broker: string, incarnation: number, lifecycle: 'down' | 'left'): Promise<void> {
    const silentForMs = lifecycle === 'left' ? 0 : this.liveness.silentForMs(broker, incarnation);
    const silentSinceMs = Math.max(0, Math.ceil(this.nowMs() - silentForMs));
    const { brokers } = this.#options.plane.state;
    const unheard = this.liveness.unheard(brokers.values()).filter((id) => id !== broker);
    const others = unheard.length === 0 ? {} : { unheard };
    const command = {
      type: 'setLifecycle',
      broker,
      incarnation,
      lifecycle,
      silentSinceMs,
      ...others,
    } as const;
    await this.proposeEnding(broker, command);
  }

  /** Whether any assignment names the broker, as a copy or as a move's destination. */
  isNamed(broker: string): boolean {
    return this.#options.plane.state.copies.has(broker);
  }

  #follow(): void {
    const { plane } = this.#options;
    this.moving.clear();
    for (const [shard, row] of plane.state.moving) this.moving.set(shard, row);
    const { assignments } = plane.state;
    unawaited(this.inactive.scan(assignments.list(), (shard) => plane.state.assignments.get(shard)));
    this.#confirmations.begin(plane.state);
    this.#unsubscribe = plane.feed.subscribe(
      plane.state.revision,
      (set) => this.#take(set),
      () => {
        this.#follow();
        this.passes.wake();
      },
    );
  }

  #take(set: ChangeSet): void {
    for (const change of set.changes) this.#note(change);
    this.passes.wake();
  }

  #note(change: Change): void {
    if (change.kind === 'assignment') {
      const row = change.assignment;
      this.inactive.note(row);
      this.#confirmations.note(row, this.nowMs());
      if (row.move === null) this.moving.delete(row.shard);
      else this.moving.set(row.shard, row);
    } else if (change.kind === 'removed') {
      this.moving.delete(change.shard);
      this.inactive.forget(change.shard);
      this.reports.forget(change.shard);
      this.#confirmations.forget(change.shard);
    } else if (change.kind === 'brokerRemoved') {
      this.liveness.forget(change.id);
      this.leaving.delete(change.id);
    }
  }

  #tick(): void {
    this.liveness.tick();
    for (const row of this.#options.plane.state.brokers.values()) {
      const serves = row.lifecycle === 'live' || row.lifecycle === 'draining';
      if (serves && this.liveness.isSilent(row)) this.#declareOnce(row.id, row.incarnation, 'down');
    }
    this.#wakeForSilence();
    for (const [broker, incarnation] of this.leaving) {
      if (!this.isNamed(broker)) this.#declareOnce(broker, incarnation, 'left');
    }
    this.#forgetBrokers();
    this.#ticker = this.#options.clock.setTimeout(() => this.#tick(), this.liveness.tickMs);
  }

  readonly #forgetting = new Set<string>();

  /** Repeated by the next tick where it failed. */
  #forgetBrokers(): void {
    if (this.#forgetting.size > 0) return;
    const { log, plane, timings } = this.#options;
    for (const { id: broker, incarnation, lifecycle } of brokersToForget(
      plane.state,
      this.nowMs(),
      timings,
    )) {
      this.#forgetting.add(broker);
      log.info({ broker, incarnation, lifecycle }, 'forgetting a broker that nothing names');
      this.propose({ type: 'removeBroker', broker, incarnation })
        .catch((error: unknown) => {
          if (!this.isOver) log.warn({ broker, error: String(error) }, 'could not forget it');
        })
        .finally(() => this.#forgetting.delete(broker));
    }
  }

  /** Passes wait for brokers to be heard or to confirm, which no entry tells of. */
  #wakeForSilence(): void {
    const { state } = this.#options.plane;
    const nowMs = this.nowMs();
    this.#confirmations.turn(state, nowMs);
    const overdue = this.#overdue(nowMs);
    const silence = JSON.stringify([this.liveness.unheard(state.brokers.values()), [...overdue.keys()]]);
    if (silence !== this.#silence) {
      this.#silence = silence;
      this.passes.wake();
    }
    for (const [shard, served] of overdue) if (served === 'never') this.#placeElsewhere(shard);
  }

  #overdue(nowMs: number): Map<string, Served> {
    const { state } = this.#options.plane;
    return this.#confirmations.overdue(state, nowMs, state.policy.fenceTimeoutMs);
  }

  /** A shard that nobody ever served and nobody can now: it holds nothing, and is placed like a new one. */
  #placeElsewhere(shard: string): void {
    const { plane, log } = this.#options;
    const { assignments, brokers } = plane.state;
    const row = assignments.get(shard);
    if (row === undefined || this.#givingUp.has(shard)) return;
    const serves = (id: string): boolean =>
      ['live', 'draining'].includes(brokers.get(id)?.lifecycle ?? 'left');
    if (row.inSync.some(serves)) return;
    this.#givingUp.add(shard);
    log.info({ shard, leader: row.leader }, 'a shard that nobody ever served is placed elsewhere');
    this.propose({ type: 'abandonShard', shard, expectedGeneration: row.generation })
      .catch((error: unknown) => {
        if (!this.isOver) log.warn({ shard, error: String(error) }, 'could not place it elsewhere');
      })
      .finally(() => this.#givingUp.delete(shard));
  }

  readonly #givingUp = new Set<string>();
  readonly #declaring = new Set<string>();

  /** Repeated by the next tick where it failed. */
  #declareOnce(broker: string, incarnation: number, lifecycle: 'down' | 'left'): void {
    const { log } = this.#options;
    if (this.#declaring.has(broker)) return;
    this.#declaring.add(broker);
    log.info({ broker, incarnation, lifecycle }, 'declaring a broker gone');
    this.declare(broker, incarnation, lifecycle)
      .then(() => this.leaving.delete(broker))
      .catch((error: unknown) => {
        if (!this.isOver) log.warn({ broker, lifecycle, error: String(error) }, 'could not declare it gone');
        // Refused: the row has changed, and the incarnation that was meant is gone with it.
        if (error instanceof EvenkeelError && !error.retriable) this.leaving.delete(broker);
      })
      .finally(() => this.#declaring.delete(broker));
  }
}
