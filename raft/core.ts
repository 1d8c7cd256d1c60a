import type { Random } from './clock.ts';
import type { ConfigurationChange } from './configuration.ts';
import { CoreState, type ReadAnswer } from './core-state.ts';
import * as election from './election.ts';
import { RaftInvariantError } from './errors.ts';
import * as follower from './follower.ts';
import * as leader from './leader.ts';
import type { RaftLimits } from './limits.ts';
import { RaftLog } from './log.ts';
import * as membership from './membership.ts';
import * as replication from './replication.ts';
import { appendAsLeader, becomeFollower, failReads, resetElectionTimer } from './roles.ts';
import type { ProgressStatus } from './status.ts';
import type { StorageWrite, StoredState } from './storage.ts';
import type { Configuration, Entry, MemberId, Message, Role, Snapshot } from './types.ts';

export interface CoreOptions {
  readonly id: MemberId;
  /** In force where `stored` holds none. */
  readonly configuration: Configuration;
  readonly stored: StoredState;
  readonly limits: RaftLimits;
  readonly random: Random;
}

/** What the user of the core must carry out, in this order: restore, send, write; then say `written(id)` once it is synced. */
export interface Work {
  /** Replaces the state machine's whole state; entries to apply follow it. */
  readonly restore: Snapshot | null;
  /** May leave at once: whatever they rest on is on disk. */
  readonly messages: readonly Message[];
  readonly write: { readonly id: number; readonly batch: StorageWrite } | null;
  /** A read with an index may be answered once that index is applied. */
  readonly reads: readonly ReadAnswer[];
}

/**
 * One member's consensus as a synchronous state machine: inputs change it, `takeWork` answers what to do.
 * No clock, no I/O, and no chance but the injected generator. Its user applies `committedEntries` in order and
 * keeps the duties that `Work` states.
 */
export class RaftCore {
  readonly #state: CoreState;

  constructor(options: CoreOptions) {
    const { id, limits, random, stored } = options;
    const log = new RaftLog(stored, options.configuration);
    this.#state = new CoreState({ id, limits, random, log, hardState: stored.hardState });
    resetElectionTimer(this.#state);
    const { voters, outgoing } = log.configuration;
    // Nobody else can lead a group of one: it need not wait.
    if (outgoing.length === 0 && voters.length === 1 && voters[0] === id) this.#state.electionDeadlineMs = 0;
  }

  get role(): Role {
    return this.#state.role;
  }

  get term(): number {
    return this.#state.term;
  }

  get votedFor(): MemberId | null {
    return this.#state.votedFor;
  }

  get leaderId(): MemberId | null {
    return this.#state.leaderId;
  }

  get leaderCommit(): number {
    return this.#state.leaderCommit;
  }

  get uncommittedBytes(): number {
    return this.#state.uncommittedBytes;
  }

  get transferringTo(): MemberId | null {
    return this.#state.transfer?.to ?? null;
  }

  /** It lost entries that it had acknowledged and does not hold them again yet. */
  get hasLostEntries(): boolean {
    return this.#state.lostThrough > 0;
  }

  /** Where a leader's own term begins: its no-op. 0 for others. */
  get termStartIndex(): number {
    return this.#state.termStartIndex;
  }

  /** Read only: all changes go through the core. */
  get log(): Omit<
    RaftLog,
    'append' | 'truncateFrom' | 'commitTo' | 'install' | 'compact' | 'takeUnwritten' | 'written'
  > {
    return this.#state.log;
  }

  progress(): Record<MemberId, ProgressStatus> {
    return Object.fromEntries(
      [...this.#state.progress].map(([id, progress]) => [id, progress.status(this.#state.limits)]),
    );
  }

  /** Time until `tick` has something to do, if nothing else happens. */
  nextTimeoutMs(): number {
    const core = this.#state;
    if (core.role === 'leader') return Math.max(0, core.limits.heartbeatMs - core.heartbeatElapsedMs);
    return Math.max(0, core.electionDeadlineMs - core.electionElapsedMs);
  }

  tick(elapsedMs: number): void {
    const core = this.#state;
    if (core.role === 'leader') {
      leader.tickLeader(core, elapsedMs);
      return;
    }
    follower.tickForwardedReads(core, elapsedMs);
    election.tickElection(core, elapsedMs);
  }

  step(message: Message): void {
    const core = this.#state;
    if (message.type === 'preVote') election.handlePreVote(core, message);
    else if (message.type === 'preVoteReply') election.handlePreVoteReply(core, message);
    else if (message.term < core.term) this.#answerOldTerm(message);
    else if (message.term === core.term) this.#handle(message);
    else if (message.type !== 'vote' || !election.refusesToHear(core, message)) {
      const leads = message.type === 'append' || message.type === 'heartbeat' || message.type === 'snapshot';
      becomeFollower(core, message.term, leads ? message.from : null);
      this.#handle(message);
    }
  }

  /** Leader only. Answers the index of the first entry; the others follow it. */
  propose(data: readonly Uint8Array[]): number {
    if (this.#state.role !== 'leader') throw new RaftInvariantError('only a leader appends');
    return appendAsLeader(this.#state, 'command', data);
  }

  /** Leader only. Answers the entry's index; throws `ConfigurationRefusal`. */
  proposeConfiguration(changes: readonly ConfigurationChange[]): number {
    return membership.proposeChange(this.#state, changes);
  }

  /** Asks how far a read must see. Every attempt needs a new key; its answer comes with a later `Work`. */
  readIndex(key: number): void {
    if (this.#state.role === 'leader') this.#state.leaderReads.ask({ key });
    else this.#state.forwardedReads.ask(key);
  }

  /** Leader only. Answers why not, or `null` when it has begun. */
  transfer(to: MemberId): string | null {
    if (this.#state.role !== 'leader') return 'this member does not lead';
    return leader.startTransfer(this.#state, to);
  }

  abortTransfer(): void {
    this.#state.transfer = null;
  }

  /** A leader that cannot vouch for the time that has passed gives up its term before it answers anything (hazard 4). */
  stepDown(): void {
    if (this.#state.role === 'leader') becomeFollower(this.#state, this.#state.term, null);
  }

  /** The peer's socket closed and one reconnect failed. */
  peerDown(peer: MemberId): void {
    this.#state.downPeers.add(peer);
    this.#socketClosed(peer);
  }

  /** A new boot id says that the process before it is gone, whatever the sockets did. */
  peerUp(peer: MemberId, bootId: string): void {
    const before = this.#state.bootIds.get(peer);
    this.#state.bootIds.set(peer, bootId);
    this.#state.downPeers.delete(peer);
    if (before !== undefined && before !== bootId) this.#socketClosed(peer);
    this.#state.progress.get(peer)?.becomeProbe();
    // What was asked on the socket before this one may be lost.
    if (this.#state.leaderId === peer) failReads(this.#state, this.#state.forwardedReads.giveUp());
  }

  /** The write is synced. */
  written(writeId: number): void {
    const core = this.#state;
    if (writeId !== core.inFlightWriteId) throw new RaftInvariantError(`write ${writeId} is not under way`);
    core.inFlightWriteId = null;
    core.writtenId = writeId;
    core.log.written();
    core.durableAdvanced = true;
    core.commitMayAdvance = true;
    core.releaseHeld();
    election.ownVoteWritten(core);
    if (core.role === 'leader' && core.log.configurationIndex === 0) {
      // From here on the log itself says who the members are.
      membership.appendConfiguration(core, core.log.configuration);
    }
  }

  /** Entries to apply after `applied`. */
  committedEntries(applied: number, budget: { maxEntries: number; maxBytes: number }): readonly Entry[] {
    const { log } = this.#state;
    return applied >= log.commitIndex ? [] : log.slice(applied + 1, log.commitIndex, budget);
  }

  /** The state machine's state at `index`, which is applied: it goes to disk with the next write and the log behind it goes. */
  compact(index: number, data: Uint8Array): void {
    const { log, limits } = this.#state;
    const term = log.termAt(index);
    if (term === null || index <= log.snapshotIndex)
      throw new RaftInvariantError(`no snapshot can be taken at ${index}`);
    const snapshot = { meta: { index, term, configuration: log.configurationAt(index) }, data };
    log.compact(snapshot, { maxEntries: limits.trailingEntries, maxBytes: limits.trailingBytes });
    this.#state.snapshotToWrite = snapshot;
  }

  takeWork(): Work {
    const core = this.#state;
    if (core.role === 'leader') this.#lead();
    else {
      follower.answerLeader(core);
      follower.askForReads(core);
    }
    const write = this.#takeWrite();
    const work = { restore: core.snapshotToRestore, messages: core.outbox, write, reads: core.readAnswers };
    core.snapshotToRestore = null;
    core.outbox = [];
    core.readAnswers = [];
    return work;
  }

  #lead(): void {
    const core = this.#state;
    // Without sockets to a quorum it answers nothing: they open again soon, or it steps down.
    const mayAnswer = leader.hasQuorumOfSockets(core);
    if (mayAnswer) replication.advanceCommit(core);
    membership.finishChange(core);
    replication.sendAppends(core);
    leader.advanceTransfer(core);
    if (mayAnswer) replication.confirmReads(core);
    membership.leaveIfRemoved(core);
  }

  #takeWrite(): Work['write'] {
    const core = this.#state;
    const { log, limits } = core;
    if (core.inFlightWriteId !== null) return null;
    if (!core.hardStateDirty && !log.hasUnwritten && core.snapshotToWrite === null) return null;
    // A vote asked or given speaks for the whole log: then all of it goes to disk together with the vote.
    const bounded = { maxEntries: limits.maxWriteEntries, maxBytes: limits.maxWriteBytes };
    const entries = log.takeUnwritten(
      core.hardStateDirty ? { maxEntries: Infinity, maxBytes: Infinity } : bounded,
    );
    const id = core.nextWriteId;
    const batch: StorageWrite = {
      hardState: {
        term: core.term,
        votedFor: core.votedFor,
        commit: Math.min(log.commitIndex, log.claimedIndex),
      },
      entries,
      snapshot: core.snapshotToWrite,
      compactTo: core.snapshotToWrite?.meta.index ?? 0,
    };
    core.nextWriteId += 1;
    core.inFlightWriteId = id;
    core.hardStateDirty = false;
    core.snapshotToWrite = null;
    return { id, batch };
  }

  #socketClosed(peer: MemberId): void {
    const core = this.#state;
    core.progress.get(peer)?.becomeProbe();
    if (core.leaderId !== peer) return;
    election.leaderIsGone(core);
    failReads(core, core.forwardedReads.giveUp());
  }

  /** Tells a sender of an older term which term it is, so that it steps down or catches up. */
  #answerOldTerm(message: Message): void {
    const core = this.#state;
    const { from, type } = message;
    if (type === 'vote') core.send(from, { type: 'voteReply', granted: false });
    else if (type === 'readIndex')
      core.send(from, { type: 'readIndexReply', token: message.token, index: null });
    else if (type === 'append' || type === 'heartbeat' || type === 'snapshot') {
      core.send(from, {
        type: 'appendReply',
        success: false,
        index: 0,
        hintIndex: 0,
        hintTerm: 0,
        lost: false,
      });
    }
  }

  #handle(message: Message): void {
    const core = this.#state;
    const leads = core.role === 'leader';
    switch (message.type) {
      case 'vote':
        return election.handleVote(core, message);
      case 'voteReply':
        return election.handleVoteReply(core, message);
      case 'append':
        return follower.handleAppend(core, message);
      case 'heartbeat':
        return follower.handleHeartbeat(core, message);
      case 'snapshot':
        return follower.handleSnapshot(core, message);
      case 'appendReply':
        return leads ? replication.handleAppendReply(core, message) : undefined;
      case 'heartbeatReply':
        return leads ? replication.handleHeartbeatReply(core, message) : undefined;
      case 'readIndex':
        return replication.handleReadIndex(core, message);
      case 'readIndexReply':
        return follower.handleReadIndexReply(core, message);
      case 'timeoutNow':
        return election.handleTimeoutNow(core, message);
      case 'preVote':
      case 'preVoteReply':
        throw new RaftInvariantError(`a ${message.type} is handled whatever its term`);
    }
  }
}
