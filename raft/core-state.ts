import type { Random } from './clock.ts';
import type { RaftLimits } from './limits.ts';
import type { RaftLog } from './log.ts';
import type { Progress } from './progress.ts';
import { ForwardedReads, LeaderReads } from './reads.ts';
import type { HardState, MemberId, Message, Role, Snapshot } from './types.ts';

/** A read's answer: wait for `index` to be applied, or (`null`) nothing can be said: ask again as a new attempt. */
export interface ReadAnswer {
  readonly key: number;
  readonly index: number | null;
}

type Unaddressed<M> = M extends Message ? Omit<M, 'from' | 'to' | 'term'> : never;
export type MessageBody = Unaddressed<Message>;

interface Held {
  readonly writeId: number;
  readonly message: Message;
}

/** The state of one member's core, shared by the functions that carry out its parts. */
export class CoreState {
  readonly id: MemberId;
  readonly limits: RaftLimits;
  readonly random: Random;
  readonly log: RaftLog;

  term: number;
  votedFor: MemberId | null;
  role: Role = 'follower';
  leaderId: MemberId | null = null;
  /** The newest commit any leader has named. */
  leaderCommit = 0;

  // Writes: one under way at a time; what rests on one is held back until it is durable.
  nextWriteId = 1;
  writtenId = 0;
  /** The write that holds the present term and vote. */
  hardStateWriteId = 0;
  hardStateDirty = false;
  inFlightWriteId: number | null = null;
  snapshotToWrite: Snapshot | null = null;

  // What the node is handed with the next batch of work.
  outbox: Message[] = [];
  held: Held[] = [];
  readAnswers: ReadAnswer[] = [];
  snapshotToRestore: Snapshot | null = null;

  electionElapsedMs = 0;
  electionDeadlineMs = 0;
  heartbeatElapsedMs = 0;
  /** The leader is known to be gone: stand again soon, not after a whole time-out. */
  leaderGone = false;
  /** The last term in which it gave way to another that asked for pre-votes too. */
  yieldedInTerm = -1;

  readonly votes = new Map<MemberId, boolean>();
  /** The write that makes the own vote (and the log it speaks for) durable; 0: not a candidate. */
  candidacyWriteId = 0;

  /** Follower: the highest index known equal to the leader's log in this term. */
  matchedIndex = 0;
  ackedIndex = 0;
  ackOwed = false;
  /** Follower: the newest round of heartbeats of this leader in this term. */
  heardRound = 0;
  /** Follower: this leader has its acknowledgement up to here, from this life or an earlier one. */
  heardMatch = 0;
  /** A write has ended since the last answer to the leader. */
  durableAdvanced = false;
  /** Entries up to here were acknowledged and lost: until they are held again it neither votes nor acknowledges (hazard 18). */
  lostThrough = 0;

  /** Leader: by peer, in sorted order; without itself. */
  progress = new Map<MemberId, Progress>();
  termStartIndex = 0;
  uncommittedBytes = 0;
  commitMayAdvance = false;
  /** How long it has had no open sockets to a quorum. */
  cutOffMs = 0;
  transfer: { readonly to: MemberId; elapsedMs: number; asked: boolean } | null = null;

  readonly leaderReads = new LeaderReads();
  readonly forwardedReads: ForwardedReads;

  readonly downPeers = new Set<MemberId>();
  readonly bootIds = new Map<MemberId, string>();

  constructor(parts: {
    id: MemberId;
    limits: RaftLimits;
    random: Random;
    log: RaftLog;
    hardState: HardState;
  }) {
    this.id = parts.id;
    this.limits = parts.limits;
    this.random = parts.random;
    this.log = parts.log;
    this.term = parts.hardState.term;
    this.votedFor = parts.hardState.votedFor;
    this.forwardedReads = new ForwardedReads(parts.random);
    // The hint was written with entries that reached it: a shorter log has lost some.
    if (parts.hardState.commit > this.log.lastIndex) this.lostThrough = parts.hardState.commit;
  }

  /** Whether the present term and vote are on disk. */
  get hardStateIsDurable(): boolean {
    return this.hardStateWriteId <= this.writtenId;
  }

  send(to: MemberId, body: MessageBody, term = this.term): void {
    this.outbox.push({ ...body, from: this.id, to, term });
  }

  /** Sends once the write is durable, unless the term has moved on by then. */
  sendAfter(writeId: number, to: MemberId, body: MessageBody): void {
    if (writeId <= this.writtenId) this.send(to, body);
    else this.held.push({ writeId, message: { ...body, from: this.id, to, term: this.term } });
  }

  releaseHeld(): void {
    const due = this.held.filter((each) => each.writeId <= this.writtenId);
    if (due.length === 0) return;
    this.held = this.held.filter((each) => each.writeId > this.writtenId);
    for (const { message } of due) this.outbox.push(message);
  }

  /** Term and vote go to disk with the next write. */
  setHardState(term: number, votedFor: MemberId | null): void {
    if (term === this.term && votedFor === this.votedFor) return;
    if (term > this.term) this.held = [];
    this.term = term;
    this.votedFor = votedFor;
    this.hardStateDirty = true;
    this.hardStateWriteId = this.nextWriteId;
  }

  /** Uniform in [from, from + range). */
  draw(from: number, range: number): number {
    return from + Math.floor((this.random.nextUint32() / 2 ** 32) * range);
  }
}
