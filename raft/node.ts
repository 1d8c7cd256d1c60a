import { Applier } from './applier.ts';
import type { Clock, Random } from './clock.ts';
import { ConfigurationRefusal, type ConfigurationChange } from './configuration.ts';
import { RaftCore, type Work } from './core.ts';
import { RaftError } from './errors.ts';
import { LeaderRequests } from './leader-requests.ts';
import { checkedLimits, type RaftLimits } from './limits.ts';
import { PendingProposals, type Applied } from './pending-proposals.ts';
import { ReadBarriers } from './read-barriers.ts';
import { SnapshotWaiters } from './snapshot-waiters.ts';
import type { StateMachine } from './state-machine.ts';
import { sameState, type RaftState, type RaftStatus } from './status.ts';
import type { RaftStorage, StoredState } from './storage.ts';
import type { Transport } from './transport.ts';
import type { Configuration, MemberId, Message } from './types.ts';
import { WakeUp } from './wake-up.ts';

export interface RaftNodeOptions {
  readonly id: MemberId;
  /** Used only where storage holds no configuration yet. A member that joins later starts with no voters. */
  readonly configuration: Configuration;
  /** Loaded at start and closed at stop by the node. */
  readonly storage: RaftStorage;
  /** Bound, started and stopped by the node. */
  readonly transport: Transport;
  /** Empty at start: the node restores the snapshot and replays the log. */
  readonly stateMachine: StateMachine;
  readonly clock: Clock;
  readonly random: Random;
  readonly limits?: Partial<RaftLimits>;
}

/**
 * One member of a Raft group: the loop that carries out the core's work. Inputs change the core at once; a turn
 * of the loop, deferred until what has already arrived is taken in, carries out what they ask for, so that
 * everything that comes together is sent, written and applied together. One write is under way at a time
 * and the next gathers meanwhile. Deadlines are points on `clock.now()`; requests reject with `RaftError`.
 */
export class RaftNode {
  readonly #options: RaftNodeOptions;
  readonly #limits: RaftLimits;
  readonly #core: RaftCore;
  readonly #applier: Applier;
  readonly #proposals: PendingProposals;
  readonly #barriers = new ReadBarriers();
  readonly #requests = new LeaderRequests();
  readonly #stateListeners = new Set<(state: RaftState) => void>();
  readonly #fatalListeners = new Set<(error: Error) => void>();
  readonly #snapshots: SnapshotWaiters;
  readonly #wakeUp: WakeUp;
  #lastState: RaftState;
  #lastSeenMs: number;
  #turnIsDue = false;
  #writing: Promise<void> = Promise.resolve();
  #fatal: Error | null = null;
  #stopping: Promise<void> | null = null;
  #transportStopped: Promise<void> | null = null;
  #caughtUp = false;

  /** Loads the storage, restores the snapshot, opens the transport and joins in. Rejects where any of these fails. */
  static async start(options: RaftNodeOptions): Promise<RaftNode> {
    const limits = checkedLimits(options.limits);
    const stored = await options.storage.load();
    const node = new RaftNode(options, limits, stored);
    if (stored.snapshot !== null) await node.#applier.restoreStored(stored.snapshot, options.clock);
    options.transport.bind({
      onMessages: (messages) => node.#input(() => node.#step(messages)),
      onPeerUp: (peer, bootId) => node.#input(() => node.#core.peerUp(peer, bootId)),
      onPeerDown: (peer) => node.#input(() => node.#core.peerDown(peer)),
    });
    await options.transport.start();
    node.#lastSeenMs = options.clock.now();
    node.#becomeCaughtUp();
    node.#schedule();
    return node;
  }

  private constructor(options: RaftNodeOptions, limits: RaftLimits, stored: StoredState) {
    this.#options = options;
    this.#limits = limits;
    this.#proposals = new PendingProposals(limits);
    const { id, configuration, random, stateMachine, clock } = options;
    this.#core = new RaftCore({ id, configuration, random, limits, stored });
    this.#applier = new Applier({
      core: this.#core,
      stateMachine,
      limits,
      onApplied: (entry, result) => {
        this.#proposals.applied(entry, result);
        this.#requests.applied(entry);
      },
    });
    this.#snapshots = new SnapshotWaiters(stored.snapshot?.meta.index ?? 0);
    this.#wakeUp = new WakeUp(clock, () => this.#input(() => this.#barriers.retry()));
    this.#lastSeenMs = clock.now();
    this.#lastState = this.#state();
  }

  /** Leader only. Resolves from the apply of exactly this entry. */
  propose(data: Uint8Array, deadlineMs: number): Promise<Applied> {
    const refusal =
      this.#refusal(deadlineMs) ??
      this.#leaderRefusal() ??
      this.#proposals.refusal(data, this.#core.uncommittedBytes);
    if (refusal !== null) return Promise.reject(refusal);
    this.#schedule();
    return this.#proposals.add(data, deadlineMs);
  }

  /**
   * Any member. Resolves once this member has applied everything that was committed when it was called, and
   * answers that index (ReadIndex; thesis, section 6.4). Without `waitsForApply` it resolves as soon as the index is
   * known: a leader led after this call. That is not refused for reads that wait: ask for one at a time.
   */
  readBarrier(deadlineMs: number, waitsForApply = true): Promise<number> {
    const refusal =
      this.#refusal(deadlineMs) ??
      (waitsForApply ? this.#barriers.refusal(this.#limits, this.#core.leaderId) : null);
    if (refusal !== null) return Promise.reject(refusal);
    this.#schedule();
    return this.#barriers.add(deadlineMs, waitsForApply);
  }

  /** Leader only. Resolves once another member leads; on failure this one goes on leading. Proposals wait meanwhile. */
  transferLeadership(to: MemberId, deadlineMs: number): Promise<void> {
    const refusal = this.#refusal(deadlineMs) ?? this.#leaderRefusal();
    if (refusal !== null) return Promise.reject(refusal);
    const why = this.#core.transfer(to);
    if (why !== null) return Promise.reject(new RaftError('refused', why, this.#core.leaderId));
    this.#schedule();
    return this.#requests.addTransfer(to, deadlineMs);
  }

  /** Leader only. Resolves once the configuration asked for is committed and, if joint, left again. */
  changeConfiguration(changes: readonly ConfigurationChange[], deadlineMs: number): Promise<Configuration> {
    const refusal = this.#refusal(deadlineMs) ?? this.#leaderRefusal();
    if (refusal !== null) return Promise.reject(refusal);
    try {
      const index = this.#core.proposeConfiguration(changes);
      this.#schedule();
      return this.#requests.addChange({ index, term: this.#core.term }, deadlineMs);
    } catch (error) {
      if (!(error instanceof ConfigurationRefusal)) throw error;
      return Promise.reject(new RaftError('refused', error.message, this.#core.leaderId));
    }
  }

  status(): RaftStatus {
    const core = this.#core;
    return {
      id: this.#options.id,
      ...this.#state(),
      votedFor: core.votedFor,
      commitIndex: core.log.commitIndex,
      appliedIndex: this.#applier.appliedIndex,
      lastIndex: core.log.lastIndex,
      durableIndex: core.log.durableIndex,
      snapshotIndex: core.log.snapshotIndex,
      leaderCommit: core.leaderCommit,
      caughtUp: this.#caughtUp,
      configuration: core.log.configuration,
      progress: core.progress(),
      uncommittedBytes: core.uncommittedBytes,
      pendingProposals: this.#proposals.size,
      pendingReads: this.#barriers.size,
      transferringTo: core.transferringTo,
    };
  }

  /** Called at once with the present state, then on each change. Answers the unsubscriber. */
  onState(listener: (state: RaftState) => void): () => void {
    this.#stateListeners.add(listener);
    listener(this.#lastState);
    return () => this.#stateListeners.delete(listener);
  }

  /** The storage failed, an invariant broke or the state machine threw: the node has stopped and answers nothing more. */
  onFatal(listener: (error: Error) => void): () => void {
    this.#fatalListeners.add(listener);
    if (this.#fatal !== null) listener(this.#fatal);
    return () => this.#fatalListeners.delete(listener);
  }

  /** Takes a snapshot at the applied index and compacts behind it. Resolves with that index once it is on disk. */
  snapshotNow(): Promise<number> {
    if (this.#hasStopped) return Promise.reject(new RaftError('stopped', 'the node has stopped'));
    const index = this.#applier.appliedIndex;
    this.#input(() => this.#applier.askForSnapshot(index));
    return this.#snapshots.reach(index);
  }

  /** Waits for the write under way, then closes transport and storage. Open requests reject. */
  stop(): Promise<void> {
    this.#stopping ??= this.#close();
    return this.#stopping;
  }

  get #hasStopped(): boolean {
    return this.#stopping !== null || this.#fatal !== null;
  }

  async #close(): Promise<void> {
    this.#silence();
    await this.#stopTransport();
    await this.#writing;
    await this.#options.storage.close();
  }

  #stopTransport(): Promise<void> {
    this.#transportStopped ??= this.#options.transport.stop();
    return this.#transportStopped;
  }

  /** From here on nothing is answered but refusals. */
  #silence(): void {
    this.#wakeUp.cancel();
    this.#proposals.failAll();
    this.#barriers.failAll();
    this.#requests.failAll();
    this.#snapshots.failAll();
  }

  #fail(error: unknown): void {
    if (this.#hasStopped) return;
    const fatal = error instanceof Error ? error : new Error(String(error));
    this.#fatal = fatal;
    this.#silence();
    this.#stopTransport().catch(() => undefined);
    for (const listener of this.#fatalListeners) listener(fatal);
  }

  #refusal(deadlineMs: number): RaftError | null {
    if (this.#hasStopped) return new RaftError('stopped', 'the node has stopped');
    if (deadlineMs > this.#options.clock.now()) return null;
    return new RaftError(
      'deadlineExceeded',
      'the deadline had passed when the request was made',
      this.#core.leaderId,
    );
  }

  #leaderRefusal(): RaftError | null {
    return this.#core.role === 'leader' ? null : this.#notLeader();
  }

  #notLeader(): RaftError {
    const { leaderId } = this.#core;
    const why = leaderId === null ? 'no leader is known' : `${leaderId} leads`;
    return new RaftError('notLeader', why, leaderId);
  }

  /** Runs one input against the core; a fault there stops the node. */
  #input(change: () => void): void {
    if (this.#hasStopped) return;
    try {
      this.#observeTime();
      change();
    } catch (error) {
      this.#fail(error);
      return;
    }
    this.#schedule();
  }

  #step(messages: readonly Message[]): void {
    for (const message of messages) if (message.to === this.#options.id) this.#core.step(message);
  }

  #schedule(): void {
    if (this.#turnIsDue || this.#hasStopped) return;
    this.#turnIsDue = true;
    this.#options.clock.defer(() => {
      this.#turnIsDue = false;
      if (this.#hasStopped) return;
      try {
        this.#turn();
      } catch (error) {
        this.#fail(error);
      }
    });
  }

  /**
   * Time passes for the core only as this loop sees it pass. A leader that was not running for an election
   * time-out steps down before it does anything else; for the others what waits in the sockets comes
   * before the time that was missed, of which only one heartbeat's worth counts (hazard 4).
   */
  #observeTime(): void {
    const now = this.#options.clock.now();
    const elapsedMs = now - this.#lastSeenMs;
    this.#lastSeenMs = now;
    const { heartbeatMs, electionTimeoutMs } = this.#limits;
    if (elapsedMs >= electionTimeoutMs) this.#core.stepDown();
    if (elapsedMs <= 2 * heartbeatMs) {
      this.#core.tick(elapsedMs);
      return;
    }
    this.#options.clock.defer(() => this.#input(() => this.#core.tick(heartbeatMs)));
  }

  #turn(): void {
    this.#observeTime();
    this.#expire();
    this.#feed();
    this.#carryOut(this.#core.takeWork());
    this.#applier.applySlice();
    this.#barriers.applied(this.#applier.appliedIndex);
    this.#takeSnapshot();
    if (this.#applier.isBehind) this.#schedule();
    this.#tell();
    this.#arm();
  }

  /** One part a turn; the next snapshot once the last one is on disk. */
  #takeSnapshot(): void {
    const isWritten = this.#core.log.snapshotIndex === this.#snapshots.durableIndex;
    if (this.#applier.isTakingSnapshot) this.#applier.fetchPart();
    else if (this.#applier.snapshotIsDue && isWritten) this.#applier.beginSnapshot();
    else return;
    this.#schedule();
  }

  #expire(): void {
    const now = this.#options.clock.now();
    this.#proposals.expire(now);
    this.#barriers.expire(now);
    if (this.#requests.expire(now)) this.#core.abortTransfer();
  }

  /** Hands the core what its callers ask for. While the leadership is being handed over, proposals wait. */
  #feed(): void {
    if (this.#core.role !== 'leader') this.#proposals.refuseInbox(() => this.#notLeader());
    else if (this.#core.transferringTo === null) {
      this.#proposals.place(this.#core.term, (data) => this.#core.propose(data));
    }
    const key = this.#barriers.ask();
    if (key !== null) this.#core.readIndex(key);
  }

  #carryOut(work: Work): void {
    if (work.restore !== null) {
      this.#applier.restore(work.restore);
      this.#proposals.skippedTo(work.restore.meta.index);
    }
    if (work.messages.length > 0) this.#options.transport.send(work.messages);
    if (work.write !== null) this.#write(work.write);
    for (const answer of work.reads) this.#barriers.answered(answer);
  }

  #write({ id, batch }: NonNullable<Work['write']>): void {
    this.#writing = this.#options.storage.write(batch).then(
      () =>
        this.#input(() => {
          this.#core.written(id);
          if (batch.snapshot !== null) this.#snapshots.written(batch.snapshot.meta.index);
        }),
      (error: unknown) => this.#fail(error),
    );
  }

  /** Caught up: a leader has said how far it had committed, and that much is applied (hazard 5). */
  #becomeCaughtUp(): void {
    this.#barriers.add(Infinity).then(
      () => void (this.#caughtUp = true),
      () => undefined,
    );
  }

  #state(): RaftState {
    const { role, term, leaderId, termStartIndex } = this.#core;
    const noopApplied = role === 'leader' && this.#applier.appliedIndex >= termStartIndex;
    return { role, term, leaderId, noopApplied };
  }

  #tell(): void {
    const { leaderId, role, transferringTo } = this.#core;
    this.#requests.observe({ leaderId, leads: role === 'leader', transferringTo });
    const state = this.#state();
    if (sameState(state, this.#lastState)) return;
    this.#lastState = state;
    for (const listener of this.#stateListeners) listener(state);
  }

  /** Wakes the loop for the core's next time-out or the earliest deadline, and at least once a heartbeat. */
  #arm(): void {
    const now = this.#options.clock.now();
    this.#wakeUp.arm(
      Math.min(
        now + Math.min(this.#limits.heartbeatMs, this.#core.nextTimeoutMs()),
        this.#proposals.nextDeadlineMs,
        this.#barriers.nextDeadlineMs,
        this.#requests.nextDeadlineMs,
      ),
    );
  }
}
