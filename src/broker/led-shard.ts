import type { Clock } from '../../raft/index.ts';
import type { ShardReportMessage, WatchedAssignment } from '../broker-protocol.ts';
import { EvenkeelError } from '../errors.ts';
import { RECORDS_PER_MESSAGE, type LeadMessage } from './copy-protocol.ts';
import type { StoredRecord } from './record-codec.ts';
import type { ShardLog } from './record-store.ts';

/** An in-sync copy that has lacked records for so long is reported as out of sync, ms. */
export const REPLICA_LAG_MS = 10_000;
/** Records of one append. */
export const MAX_RECORDS_PER_APPEND = 1_000;
/** How often a second a copy that is limited to a rate is sent its part. */
const PARTS_PER_SECOND = 10;

/** A copy as its leader sees it. */
interface Follower {
  readonly incarnation: number;
  send: ((message: LeadMessage) => void) | null;
  /** It has everything below on disk. */
  end: number;
  /** Sent and not yet acknowledged. */
  isSending: boolean;
  /** When it last had everything. */
  caughtUpAtMs: number;
}

interface Waiter {
  readonly end: number;
  readonly resolve: () => void;
  readonly reject: (error: EvenkeelError) => void;
}

/** A report that was sent, until the row shows what became of it. */
interface Proposal {
  readonly generation: number;
  readonly added: readonly string[];
}

/**
 * A shard that this broker leads at one epoch: takes records, carries them to the other copies, acknowledges what
 * every in-sync copy has on disk, and knows what is to be reported.
 */
export class LedShard {
  readonly epoch: number;
  readonly log: ShardLog;
  readonly #self: string;
  readonly #clock: Clock;
  readonly #copyRate: number;
  /** Something that may have to be reported has changed. */
  readonly #onChange: () => void;
  readonly #onFailure: (error: unknown) => void;
  readonly #followers = new Map<string, Follower>();
  readonly #waiters: Waiter[] = [];
  #row: WatchedAssignment;
  /** What the log held when the epoch began: some of it was acknowledged by the leaders before, and how much is not known. */
  readonly #openedEnd: number;
  #proposal: Proposal | null = null;
  #appending = 0;
  #acknowledged = 0;
  #closed = false;

  constructor(options: {
    readonly self: string;
    readonly row: WatchedAssignment;
    readonly log: ShardLog;
    readonly clock: Clock;
    /** Records a second to each copy that is not in sync. */
    readonly copyRate: number;
    readonly onChange: () => void;
    /** The log cannot be read: this broker must stop. */
    readonly onFailure: (error: unknown) => void;
  }) {
    this.#self = options.self;
    this.#row = options.row;
    this.epoch = options.row.epoch;
    this.log = options.log;
    this.#openedEnd = options.log.end;
    this.#clock = options.clock;
    this.#copyRate = options.copyRate;
    this.#onChange = options.onChange;
    this.#onFailure = options.onFailure;
  }

  get row(): WatchedAssignment {
    return this.#row;
  }

  /** Everything below is on every in-sync copy's disk. */
  get acknowledged(): number {
    return this.#acknowledged;
  }

  /**
   * Where reads end. Right after the leader changed it is not known how far its predecessors acknowledged: until the
   * in-sync copies hold what the log held then, this throws `unavailable` (KIP-207 has the same).
   */
  get readableEnd(): number {
    if (this.#acknowledged < this.#openedEnd) {
      throw new EvenkeelError('unavailable', `${this.#row.shard} has just changed its leader; retry`);
    }
    return this.#acknowledged;
  }

  /** The row was written anew at the same epoch. */
  update(row: WatchedAssignment): void {
    this.#row = row;
    for (const id of this.#followers.keys()) if (!row.replicas.includes(id)) this.#followers.delete(id);
    this.#advance();
    for (const id of this.#followers.keys()) this.#pump(id);
  }

  /** The epoch is over: what waits may or may not have been kept. */
  close(): void {
    this.#closed = true;
    this.#followers.clear();
    for (const waiter of this.#waiters.splice(0)) {
      waiter.reject(new EvenkeelError('outcome_unknown', `${this.#row.shard} is led by another now; ask it`));
    }
  }

  /** Resolves with the first record's offset once every in-sync copy has them on disk. */
  async append(payloads: readonly Uint8Array[]): Promise<number> {
    const { shard, state } = this.#row;
    if (this.#closed || state === 'draining') {
      throw new EvenkeelError('unavailable', `${shard} is being handed over; resolve its leader and retry`);
    }
    if (payloads.length > MAX_RECORDS_PER_APPEND) {
      throw new EvenkeelError(
        'limit_exceeded',
        `${payloads.length} records, at most ${MAX_RECORDS_PER_APPEND} at once`,
      );
    }
    this.#appending++;
    let end: number;
    try {
      end = await this.log.append(payloads.map((payload) => ({ epoch: this.epoch, payload })));
    } finally {
      this.#appending--;
    }
    const done = new Promise<void>((resolve, reject) => this.#waiters.push({ end, resolve, reject }));
    if (this.#closed) this.close();
    this.#advance();
    for (const id of this.#followers.keys()) this.#pump(id);
    await done;
    return end - payloads.length;
  }

  /** A copy asks for everything from its end on. */
  follow(
    broker: string,
    incarnation: number,
    end: number,
    lastEpoch: number,
    send: (m: LeadMessage) => void,
  ): void {
    const { shard, replicas } = this.#row;
    const known = this.#followers.get(broker);
    const isOld = known !== undefined && known.incarnation > incarnation;
    if (this.#closed || isOld || !replicas.includes(broker)) {
      send({ type: 'refused', shard, epoch: this.epoch });
      return;
    }
    const to = this.#partingOf(end, lastEpoch);
    if (to < end) {
      send({ type: 'truncate', shard, epoch: this.epoch, to });
      return;
    }
    const nowMs = this.#clock.now();
    this.#followers.set(broker, { incarnation, send, end, isSending: false, caughtUpAtMs: nowMs });
    this.#advance();
    this.#onChange();
    this.#pump(broker);
  }

  acknowledge(broker: string, incarnation: number, end: number): void {
    const follower = this.#followers.get(broker);
    if (follower === undefined || follower.incarnation !== incarnation || end > this.log.end) return;
    follower.isSending = false;
    if (end > follower.end) follower.end = end;
    const isCaughtUp = follower.end === this.log.end;
    if (isCaughtUp) follower.caughtUpAtMs = this.#clock.now();
    this.#advance();
    if (isCaughtUp) this.#onChange();
    this.#pump(broker);
  }

  /** Its connection is gone. What it has on disk it still has. */
  detach(broker: string, send: (message: LeadMessage) => void): void {
    const follower = this.#followers.get(broker);
    if (follower?.send === send) follower.send = null;
  }

  /** A broker registered anew: what was known of an older incarnation's copy is void. */
  forget(broker: string, olderThan: number): void {
    const follower = this.#followers.get(broker);
    if (follower === undefined || follower.incarnation >= olderThan) return;
    this.#followers.delete(broker);
    this.#onChange();
  }

  /** Whether its offsets are of use: a move is under way, or a copy is out of sync. */
  get isUnsettled(): boolean {
    return this.#row.move !== null || this.#row.inSync.length < this.#row.replicas.length;
  }

  /** Offsets alone. */
  offsets(): ShardReportMessage {
    const followers: Record<string, number> = {};
    for (const [id, { end }] of this.#followers) followers[id] = end;
    const { shard, generation } = this.#row;
    return { shard, generation, leaderOffset: this.log.end, followers };
  }

  /**
   * A change of who is in sync, or that the fenced shard is drained; `null`: neither. A copy that the answer adds is
   * waited for from this very call on.
   */
  change(): ShardReportMessage | null {
    const { inSync, replicas, generation, state, move } = this.#row;
    if (this.#closed || state === 'assigning') return null;
    const added = replicas.filter((id) => !inSync.includes(id) && this.#hasAll(id));
    const kept = inSync.filter((id) => id === this.#self || !this.#lagsTooLong(id));
    const next = [...kept, ...added];
    const isDrained =
      state === 'draining' &&
      move !== null &&
      next.includes(move.to) &&
      this.#appending === 0 &&
      this.#isWhole(next);
    if (added.length === 0 && kept.length === inSync.length && !isDrained) return null;
    this.#proposal = { generation, added };
    return { ...this.offsets(), inSync: next, ...(isDrained ? { drained: true as const } : {}) };
  }

  /** Every copy of the set has every record. */
  #isWhole(copies: readonly string[]): boolean {
    return copies.every((id) => id === this.#self || this.#hasAll(id));
  }

  #hasAll(id: string): boolean {
    const follower = this.#followers.get(id);
    return follower !== undefined && follower.send !== null && follower.end === this.log.end;
  }

  #lagsTooLong(id: string): boolean {
    const follower = this.#followers.get(id);
    if (follower === undefined || follower.end === this.log.end) return false;
    return this.#clock.now() - follower.caughtUpAtMs > REPLICA_LAG_MS;
  }

  /** Copies without whose disk nothing is acknowledged: those in sync, and those just proposed to be. */
  #required(): readonly string[] {
    const { inSync, generation } = this.#row;
    // Until a newer row shows what became of the report, it may have been applied.
    const added = this.#proposal?.generation === generation ? this.#proposal.added : [];
    return [...inSync, ...added];
  }

  #advance(): void {
    let end = this.log.end;
    for (const id of this.#required()) {
      if (id !== this.#self) end = Math.min(end, this.#followers.get(id)?.end ?? 0);
    }
    if (end <= this.#acknowledged) return;
    this.#acknowledged = end;
    while (this.#waiters[0] !== undefined && this.#waiters[0].end <= end) this.#waiters.shift()?.resolve();
  }

  /** How much of a copy's log is the same as ours, judged by the epoch of its last record; `end` if all of it is. */
  #partingOf(end: number, lastEpoch: number): number {
    if (end === 0) return 0;
    if (end <= this.log.end && this.log.epochBefore(end) === lastEpoch) return end;
    return Math.min(end - 1, this.log.endOfEpoch(lastEpoch));
  }

  /** Sends the next records, one message at a time; to a copy that is not in sync, at the set rate. */
  #pump(broker: string): void {
    const follower = this.#followers.get(broker);
    if (this.#closed || follower === undefined || follower.isSending || follower.end >= this.log.end) return;
    const { end: from, send } = follower;
    if (send === null) return;
    follower.isSending = true;
    const limited = !this.#row.inSync.includes(broker);
    const part = limited ? Math.ceil(this.#copyRate / PARTS_PER_SECOND) : RECORDS_PER_MESSAGE;
    const count = Math.min(RECORDS_PER_MESSAGE, part);
    const delayMs = limited ? (Math.min(count, this.log.end - follower.end) / this.#copyRate) * 1_000 : 0;
    const go = (): void => {
      if (this.#closed || this.#followers.get(broker) !== follower) return;
      this.log.read(from, count).then(
        (records: StoredRecord[]) => {
          const { shard } = this.#row;
          const rows = records.map(({ epoch, payload }) => [epoch, payload] as const);
          send({ type: 'records', shard, epoch: this.epoch, from, records: rows });
        },
        (error: unknown) => {
          if (!this.#closed) this.#onFailure(error);
        },
      );
    };
    if (delayMs > 0) this.#clock.setTimeout(go, delayMs);
    else go();
  }
}
