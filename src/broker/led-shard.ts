import type { Clock } from '../../raft/index.ts';
import type { ShardReportMessage, WatchedAssignment } from '../broker-protocol.ts';
import { EvenkeelError } from '../errors.ts';
import { RECORDS_PER_MESSAGE, type LeadMessage } from './copy-protocol.ts';
import {
  afterEvent,
  isWhole,
  openInSync,
  requiredCopies,
  setToReport,
  type InSyncEvent,
  type InSyncState,
} from './in-sync.ts';
import { isAhead, type LogPosition } from './log-position.ts';
import type { StoredRecord } from './record-codec.ts';
import type { ShardLog } from './record-store.ts';

/** Records of one append. */
export const MAX_RECORDS_PER_APPEND = 1_000;
/** How often a second a copy that is limited to a rate is sent its part. */
const PARTS_PER_SECOND = 10;

/** How records get to a copy. What the copy holds is in `InSyncState`. */
interface Follower {
  readonly incarnation: number;
  send: ((message: LeadMessage) => void) | null;
  /** Sent and not yet acknowledged. */
  isSending: boolean;
}

interface Waiter {
  readonly end: number;
  readonly resolve: () => void;
  readonly reject: (error: EvenkeelError) => void;
}

/**
 * A shard that this broker leads at one epoch: takes records, sends them to the other copies, acknowledges those that
 * every required copy has on disk, and says what has to be reported. `InSyncState` decides which copies are required.
 */
export class LedShard {
  readonly epoch: number;
  readonly log: ShardLog;
  readonly #clock: Clock;
  readonly #copyRate: number;
  /** Something that may have to be reported has changed. */
  readonly #onChange: () => void;
  readonly #onFailure: (error: unknown) => void;
  readonly #followers = new Map<string, Follower>();
  readonly #waiters: Waiter[] = [];
  #row: WatchedAssignment;
  /** What the log held when the epoch began: some of it was acknowledged by the leaders before, and how much is not known. */
  readonly #opened: LogPosition;
  #isBehind = false;
  #state: InSyncState;
  #appending = 0;
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
    this.#row = options.row;
    this.epoch = options.row.epoch;
    this.log = options.log;
    this.#opened = { lastEpoch: options.log.epochBefore(options.log.end), end: options.log.end };
    this.#clock = options.clock;
    this.#copyRate = options.copyRate;
    this.#onChange = options.onChange;
    this.#onFailure = options.onFailure;
    const { self, row, log, clock } = options;
    this.#state = openInSync({ self, row, end: log.end, nowMs: clock.now() });
  }

  get row(): WatchedAssignment {
    return this.#row;
  }

  /**
   * A copy in sync was found ahead of the log that this leader opened with. This log may lack acknowledged records (its
   * disk went back in time): the leader serves nothing, has nothing cut off, and reports itself out of sync.
   */
  get isBehind(): boolean {
    return this.#isBehind;
  }

  /** Everything below is on every in-sync copy's disk. */
  get acknowledged(): number {
    return this.#state.acknowledged;
  }

  /**
   * Where reads end. Right after the leader changed it is not known how far its predecessors acknowledged: until the
   * in-sync copies hold what the log held then, this throws `unavailable` (KIP-207 has the same).
   */
  get readableEnd(): number {
    if (this.#isBehind) throw this.#behind();
    if (this.acknowledged < this.#opened.end) {
      throw new EvenkeelError('unavailable', `${this.#row.shard} has just changed its leader; retry`);
    }
    return this.acknowledged;
  }

  /** The watch shows a newer row of the same epoch. */
  update(row: WatchedAssignment): void {
    this.#row = row;
    for (const id of this.#followers.keys()) if (!row.replicas.includes(id)) this.#followers.delete(id);
    this.#take({ type: 'row', row, nowMs: this.#clock.now() });
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
    if (this.#isBehind) throw this.#behind();
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
    this.#take({ type: 'appended', end, nowMs: this.#clock.now() });
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
    this.#compare(broker, { lastEpoch, end });
    if (this.#closed || this.#isBehind || isOld || !replicas.includes(broker)) {
      send({ type: 'refused', shard, epoch: this.epoch });
      return;
    }
    const to = this.#partingOf(end, lastEpoch);
    if (to < end) {
      send({ type: 'truncate', shard, epoch: this.epoch, to });
      return;
    }
    this.#followers.set(broker, { incarnation, send, isSending: false });
    this.#take({ type: 'attached', copy: broker, end, nowMs: this.#clock.now() });
    this.#onChange();
    this.#pump(broker);
  }

  acknowledge(broker: string, incarnation: number, end: number): void {
    const follower = this.#followers.get(broker);
    if (follower === undefined || follower.incarnation !== incarnation || end > this.log.end) return;
    follower.isSending = false;
    this.#take({ type: 'acked', copy: broker, end, nowMs: this.#clock.now() });
    if (isWhole(this.#state, broker)) this.#onChange();
    this.#pump(broker);
  }

  /** Its connection is gone. What it has on disk it still has. */
  detach(broker: string, send: (message: LeadMessage) => void): void {
    const follower = this.#followers.get(broker);
    if (follower?.send !== send) return;
    follower.send = null;
    this.#take({ type: 'detached', copy: broker });
  }

  /** A broker registered again: what was known of an older incarnation's copy is void. */
  forget(broker: string, olderThan: number): void {
    const follower = this.#followers.get(broker);
    if (follower === undefined || follower.incarnation >= olderThan) return;
    this.#followers.delete(broker);
    this.#take({ type: 'forgotten', copy: broker, nowMs: this.#clock.now() });
    this.#onChange();
  }

  /** Whether its offsets are of use: a move is under way, or a copy is out of sync. */
  get isUnsettled(): boolean {
    return this.#row.move !== null || this.#state.row.inSync.length < this.#row.replicas.length;
  }

  /** Offsets alone. */
  offsets(): ShardReportMessage {
    const followers: Record<string, number> = {};
    for (const [id, { end }] of this.#state.copies) if (end !== null) followers[id] = end;
    return {
      shard: this.#row.shard,
      generation: this.#state.row.generation,
      leaderOffset: this.log.end,
      followers,
    };
  }

  /**
   * The change to report now: of the copies in sync, or that the fenced shard is drained; `null` if there is none. The
   * caller sends it and passes the answer to `answered`; until then there is no other change.
   */
  change(): ShardReportMessage | null {
    if (this.#isBehind) {
      const others = this.#state.row.inSync.filter((id) => id !== this.#state.self);
      return { ...this.offsets(), inSync: others };
    }
    if (this.#closed || this.#row.state === 'assigning' || this.#state.underWay !== null) return null;
    const change = setToReport(this.#state, this.#clock.now());
    const inSync = change ?? this.#state.row.inSync;
    const isDrained = this.#isDrained(inSync);
    if (change === null && !isDrained) return null;
    const report = { ...this.offsets(), inSync, ...(isDrained ? { drained: true as const } : {}) };
    this.#take({ type: 'reported', inSync });
    return report;
  }

  /** What became of a report that `change` returned. `accepted` is false where no answer came, too. */
  answered({ generation }: ShardReportMessage, accepted: boolean): void {
    this.#take({ type: 'answered', generation, accepted });
  }

  /** A copy in sync that may hold what this log lacks ends this leadership. Records of this epoch came from here. */
  #compare(broker: string, position: LogPosition): void {
    if (this.#isBehind || !requiredCopies(this.#state).includes(broker)) return;
    if (position.lastEpoch === this.epoch || !isAhead(position, this.#opened)) return;
    this.#isBehind = true;
    this.close();
    this.#onChange();
  }

  #behind(): EvenkeelError {
    const message = `${this.#row.shard}: another copy holds more than its leader, and will lead it; resolve its leader and retry`;
    return new EvenkeelError('unavailable', message);
  }

  /** Whether a fenced shard's every record is on all of these copies, the destination among them. */
  #isDrained(copies: readonly string[]): boolean {
    const { state, move } = this.#row;
    if (state !== 'draining' || move === null || !copies.includes(move.to)) return false;
    return this.#appending === 0 && copies.every((id) => isWhole(this.#state, id));
  }

  #take(event: InSyncEvent): void {
    this.#state = afterEvent(this.#state, event);
    const { acknowledged } = this.#state;
    while (this.#waiters[0] !== undefined && this.#waiters[0].end <= acknowledged) {
      this.#waiters.shift()?.resolve();
    }
  }

  /** How much of a copy's log is the same as ours, judged by the epoch of its last record; `end` if all of it is. */
  #partingOf(end: number, lastEpoch: number): number {
    if (end === 0) return 0;
    if (end <= this.log.end && this.log.epochBefore(end) === lastEpoch) return end;
    return Math.min(end - 1, this.log.endOfEpoch(lastEpoch));
  }

  /** Sends the next records, one message at a time; to a copy that is not required, at the set rate. */
  #pump(broker: string): void {
    const follower = this.#followers.get(broker);
    const from = this.#state.copies.get(broker)?.end ?? null;
    if (this.#closed || follower === undefined || from === null) return;
    const { send } = follower;
    if (follower.isSending || send === null || from >= this.log.end) return;
    follower.isSending = true;
    const isLimited = !requiredCopies(this.#state).includes(broker);
    const part = isLimited ? Math.ceil(this.#copyRate / PARTS_PER_SECOND) : RECORDS_PER_MESSAGE;
    const count = Math.min(RECORDS_PER_MESSAGE, part);
    const delayMs = isLimited ? (Math.min(count, this.log.end - from) / this.#copyRate) * 1_000 : 0;
    const isOver = (): boolean => this.#closed || this.#followers.get(broker) !== follower;
    const go = (): void => {
      if (isOver()) return;
      this.log.read(from, count).then(
        (records: StoredRecord[]) => {
          if (isOver()) return;
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
