import { BrokerTable, NONE } from './broker-table.ts';
import { unconfirmedLeader } from './fence.ts';
import { NO_HOLDS, type Holds } from './holds.ts';
import {
  compareStrings,
  resourceKey,
  splitShard,
  type Assignment,
  type MoveRole,
  type Policy,
  type Resource,
  type ZonePolicy,
} from './model.ts';
import { hasLed } from './moved.ts';
import type { Reports, ShardReport, Snapshot } from './plan-types.ts';
import { ShardKeys } from './shard-keys.ts';
import { shardMove, type ShardMove } from './shard-move.ts';
import { Tally } from './tally.ts';

const NO_COPIES: readonly number[] = Object.freeze([]);

/**
 * A Snapshot through one pass: indexed, and changed as the pass decides, so that what it decided already counts
 * for what it decides next. Brokers are indices in the order of their ids, resources in the order of their keys,
 * shards in the order of their resource, then their number: shard `n` of resource `r` is `firstShard[r] + n`.
 * Arrays handed out are never changed in place, and callers never change them: a change replaces them.
 */
export class View {
  readonly nowMs: number;
  readonly policy: Policy;
  readonly firstRegisteredAtMs: number | null;
  readonly phase: number;
  readonly reports: Reports;
  readonly held: Holds;
  readonly brokers: BrokerTable;
  readonly resources: readonly Resource[];
  readonly resourceKeys: readonly string[];
  readonly resourceCount: number;
  readonly shardCount: number;
  /** By resource, and one more: where its shards begin. */
  readonly firstShard: Int32Array;
  readonly resourceOf: Int32Array;
  /** By shard: who leads it now; NONE while it was never placed. */
  readonly leader: Int32Array;
  /** By shard: its row in the snapshot; `undefined`: it has none. */
  readonly rows: readonly (Assignment | undefined)[];
  /** By shard: 1 if it counts (Tally). */
  readonly counts: Uint8Array;
  /** By shard: 1 once this pass has a step for it; at most one step a shard and pass. */
  readonly touched: Uint8Array;
  readonly tally: Tally;
  /** Shards whose leadership has moved, in this phase or in another. In no order. */
  readonly movedLeaders: number[] = [];
  /** Only shards whose moves failed at most so often are free: the others are at the back of the queue. */
  failedLimit = Infinity;
  readonly #copies: (readonly number[])[];
  readonly #inSync: (readonly number[])[];
  readonly #finished: (readonly number[])[];
  readonly #nextLeader: Int32Array;
  readonly #moves: (ShardMove | null)[];
  #leaderMoves = 0;
  /** By broker: the set of it alone. */
  readonly #alone: (readonly number[] | undefined)[];
  readonly #newKeys: ShardKeys;
  readonly #rows: (Assignment | undefined)[];
  readonly #resourceIndex: ReadonlyMap<string, number>;
  /** By broker: 1 if it was not heard within its lease. */
  readonly #unheard: Uint8Array;

  constructor(snapshot: Snapshot, reports: Reports, held: Holds = NO_HOLDS) {
    this.nowMs = snapshot.nowMs;
    this.policy = snapshot.policy;
    this.firstRegisteredAtMs = snapshot.firstRegisteredAtMs;
    this.phase = snapshot.phase;
    this.reports = reports;
    this.held = held;
    this.brokers = new BrokerTable(snapshot.brokers);
    this.#unheard = Uint8Array.from(this.brokers.ids, (id) => (reports.unheard.has(id) ? 1 : 0));
    const keyed = snapshot.resources.map((resource) => ({ key: resourceKey(resource), resource }));
    keyed.sort((a, b) => compareStrings(a.key, b.key));
    this.resources = keyed.map((entry) => entry.resource);
    this.resourceKeys = keyed.map((entry) => entry.key);
    this.resourceCount = keyed.length;
    this.firstShard = new Int32Array(keyed.length + 1);
    for (let r = 0; r < keyed.length; r++) {
      this.firstShard[r + 1] = (this.firstShard[r] ?? 0) + (this.resources[r]?.shards ?? 0);
    }
    const n = (this.shardCount = this.firstShard[keyed.length] ?? 0);
    this.resourceOf = new Int32Array(n);
    keyed.forEach((_, r) => this.resourceOf.fill(r, this.firstShard[r], this.firstShard[r + 1]));
    this.leader = new Int32Array(n).fill(NONE);
    this.#nextLeader = new Int32Array(n).fill(NONE);
    this.counts = new Uint8Array(n);
    this.touched = new Uint8Array(n);
    this.#copies = new Array<readonly number[]>(n).fill(NO_COPIES);
    this.#inSync = new Array<readonly number[]>(n).fill(NO_COPIES);
    this.#finished = new Array<readonly number[]>(n).fill(NO_COPIES);
    this.#moves = new Array<ShardMove | null>(n).fill(null);
    this.#alone = new Array<readonly number[] | undefined>(this.brokers.count).fill(undefined);
    this.#newKeys = new ShardKeys(this.resourceKeys, this.firstShard);
    this.tally = new Tally(keyed.length, this.brokers.count);
    const rows = new Array<Assignment | undefined>(n).fill(undefined);
    this.#resourceIndex = new Map(this.resourceKeys.map((key, r) => [key, r]));
    for (const row of snapshot.assignments) {
      const { resource, number } = splitShard(row.shard);
      const r = this.#resourceIndex.get(resource);
      if (r === undefined) throw new Error(`${row.shard} belongs to no resource of the snapshot`);
      const first = this.firstShard[r] ?? 0;
      if (!(number < (this.resources[r]?.shards ?? 0))) throw new Error(`${resource} has no shard ${number}`);
      if (rows[first + number] !== undefined) throw new Error(`${row.shard} is assigned twice`);
      rows[first + number] = row;
      this.#read(first + number, row);
      if (row.moved?.leader === true) this.movedLeaders.push(first + number);
    }
    this.rows = this.#rows = rows;
  }

  /** A shard by its key; NONE: the cluster has none of it. */
  indexOf(shard: string): number {
    const { resource, number } = splitShard(shard);
    const r = this.#resourceIndex.get(resource);
    if (r === undefined || !Number.isInteger(number) || number < 0) return NONE;
    return number < this.resourceRow(r).shards ? (this.firstShard[r] ?? 0) + number : NONE;
  }

  /**
   * A shard's row has become another: the view is as if it had been made from that one. For a view that no pass has
   * changed. Answers the shard. Throws where the view has no such shard or broker.
   */
  renew(row: Assignment): number {
    const s = this.indexOf(row.shard);
    if (s === NONE) throw new Error(`the view has no shard ${row.shard}`);
    this.#count(s, -1);
    for (const b of this.copies(s)) this.tally.addHeld(b, -1);
    this.#rows[s] = row;
    this.#setMove(s, null);
    this.#read(s, row);
    return s;
  }

  /** The cluster as it will be once every move in flight has finished. Neither view shows what is done to the other. */
  settled(): View {
    const { nowMs, policy, firstRegisteredAtMs, phase, resources } = this;
    const assignments = this.rows.filter((row) => row !== undefined);
    const rows = { brokers: this.brokers.rows, resources, assignments };
    const settled = new View({ nowMs, policy, firstRegisteredAtMs, phase, ...rows }, this.reports, this.held);
    settled.failedLimit = this.failedLimit;
    for (let s = 0; s < this.shardCount; s++) {
      if (this.counts[s] === 0) continue;
      const copies = this.finished(s);
      const leader = this.nextLeader(s);
      const known = settled.copies(s);
      const same = known.length === copies.length && copies.every((b) => known.includes(b));
      if (same && settled.leader[s] === leader && settled.move(s) === null) continue;
      settled.#change(s, { copies, leader, move: null });
    }
    return settled;
  }

  #read(s: number, row: Assignment): void {
    const index = (id: string): number => this.brokers.indexOf(id);
    const copies = row.replicas.map(index);
    this.leader[s] = index(row.leader);
    this.#copies[s] = copies;
    this.#inSync[s] = row.inSync === row.replicas ? copies : row.inSync.map(index);
    if (row.move !== null) this.#setMove(s, shardMove(row.move, this.brokers));
    for (const b of copies) this.tally.addHeld(b, 1);
    this.counts[s] = this.leaderServes(s) ? 1 : 0;
    this.#finish(s);
    this.#count(s, 1);
  }

  /** Sets what the shard will be once its move has finished. A move towards a broker that may take no shards will not finish. */
  #finish(s: number): void {
    const move = this.move(s);
    const copies = this.copies(s);
    this.#nextLeader[s] = this.leader[s] ?? NONE;
    this.#finished[s] = copies;
    if (move === null) return;
    if (this.brokers.live[move.to] === 0) {
      if (move.copied) this.#finished[s] = copies.filter((b) => b !== move.to);
      return;
    }
    if (move.role === 'leader') this.#nextLeader[s] = move.to;
    if (move.drops !== NONE) this.#finished[s] = copies.filter((b) => b !== move.drops);
  }

  #count(s: number, by: 1 | -1): void {
    if (this.counts[s] === 0) return;
    const r = this.resource(s);
    this.tally.addShard(r, by);
    this.tally.addLeader(r, this.nextLeader(s), by);
    for (const b of this.finished(s)) this.tally.addCopy(r, b, by);
  }

  /** Replaces one shard's facts and keeps the tallies. */
  #change(s: number, change: { copies?: readonly number[]; move?: ShardMove | null; leader?: number }): void {
    this.#count(s, -1);
    if (change.copies !== undefined) {
      for (const b of this.copies(s)) this.tally.addHeld(b, -1);
      for (const b of change.copies) this.tally.addHeld(b, 1);
      this.#copies[s] = change.copies;
    }
    if (change.move !== undefined) this.#setMove(s, change.move);
    if (change.leader !== undefined) {
      this.leader[s] = change.leader;
      this.counts[s] = 1;
    }
    this.#finish(s);
    this.#count(s, 1);
  }

  #setMove(s: number, move: ShardMove | null): void {
    if (this.#moves[s]?.role === 'leader') this.#leaderMoves--;
    if (move?.role === 'leader') this.#leaderMoves++;
    this.#moves[s] = move;
  }

  resource(s: number): number {
    return this.resourceOf[s] ?? NONE;
  }

  resourceRow(r: number): Resource {
    const resource = this.resources[r];
    if (resource === undefined) throw new Error(`no resource has the index ${r}`);
    return resource;
  }

  zonePolicy(r: number): ZonePolicy {
    return this.resourceRow(r).zonePolicy ?? this.policy.zonePolicy;
  }

  /** `rf'` of placement: the copies that live brokers can hold. */
  factor(r: number): number {
    return Math.min(this.resourceRow(r).replicationFactor, this.brokers.liveList.length);
  }

  /** `stream:orders/3`. */
  shardKey(s: number): string {
    const row = this.rows[s];
    return row === undefined ? this.#newKeys.of(s, this.resource(s)) : row.shard;
  }

  /** Every copy there is now, a staged or joining one and one about to go included. */
  copies(s: number): readonly number[] {
    return this.#copies[s] ?? NO_COPIES;
  }

  inSync(s: number): readonly number[] {
    return this.#inSync[s] ?? NO_COPIES;
  }

  move(s: number): ShardMove | null {
    return this.#moves[s] ?? null;
  }

  /** The copies there will be once the move in flight has finished. */
  finished(s: number): readonly number[] {
    return this.#finished[s] ?? NO_COPIES;
  }

  /** Who leads once the move in flight has finished. */
  nextLeader(s: number): number {
    return this.#nextLeader[s] ?? NONE;
  }

  holds(s: number, b: number): boolean {
    return this.copies(s).includes(b);
  }

  isInSync(s: number, b: number): boolean {
    return this.inSync(s).includes(b);
  }

  /** Its broker answers (live or draining) and it holds everything the shard acknowledged. */
  leaderServes(s: number): boolean {
    const leader = this.leader[s] ?? NONE;
    return leader !== NONE && this.brokers.serving[leader] === 1 && this.isInSync(s, leader);
  }

  /** It serves by its lifecycle and was heard within its lease: it may die, but nothing says that it has. */
  isHeard(b: number): boolean {
    return this.brokers.serving[b] === 1 && this.#unheard[b] === 0;
  }

  /**
   * Without its copy on `b`, one that holds everything the shard acknowledged stays on a broker that is heard. Only then may
   * a decision drop the copy: whatever it holds, nobody needs it.
   */
  mayDrop(s: number, b: number): boolean {
    if (!this.resourceRow(this.resource(s)).durable) return true;
    return this.inSync(s).some((other) => other !== b && this.isHeard(other));
  }

  /** What the leader reported of this very generation. */
  report(s: number): ShardReport | null {
    const row = this.rows[s];
    if (row === undefined) return null;
    const report = this.reports.shards.get(row.shard);
    return report !== undefined && report.generation === row.generation ? report : null;
  }

  /** How many more copies a broker may be given now. */
  room(b: number): number {
    return (this.brokers.cap[b] ?? 0) - (this.tally.held[b] ?? 0);
  }

  get handsOver(): boolean {
    return this.#leaderMoves > 0;
  }

  /** A move may start: the leader serves, nothing is in flight, this pass has no step for it, and it is its turn. */
  free(s: number): boolean {
    if (this.counts[s] === 0 || this.touched[s] === 1 || this.move(s) !== null) return false;
    if (unconfirmedLeader(this, s) !== null) return false;
    return this.failedMoves(s) <= this.failedLimit;
  }

  /** As `free`, a move of the role is not held in this pass, and a leadership has not moved already. */
  mayStart(s: number, role: MoveRole): boolean {
    if (!this.free(s) || (role === 'leader' && hasLed(this, s))) return false;
    const held = this.held.waits[role];
    return held.size === 0 || !held.has(this.shardKey(s));
  }

  /** Moves of the shard given up since the last that finished. */
  failedMoves(s: number): number {
    return this.rows[s]?.failedMoves ?? 0;
  }

  /** A shard's first leader, and its only copy until setCopies. */
  place(s: number, leader: number): void {
    if (this.leader[s] !== NONE) throw new Error(`${this.shardKey(s)} is placed already`);
    const copies = (this.#alone[leader] ??= [leader]);
    this.leader[s] = this.#nextLeader[s] = leader;
    this.counts[s] = 1;
    this.#copies[s] = this.#inSync[s] = this.#finished[s] = copies;
    this.tally.addHeld(leader, 1);
    this.#count(s, 1);
  }

  /** All copies of a shard placed in this pass, the leader first. All are in sync: there is nothing to hold yet. */
  setCopies(s: number, copies: readonly number[]): void {
    if (this.rows[s] !== undefined) throw new Error(`${this.shardKey(s)} was placed before this pass`);
    const r = this.resource(s);
    for (const b of this.copies(s)) {
      this.tally.addHeld(b, -1);
      this.tally.addCopy(r, b, -1);
    }
    for (const b of copies) {
      this.tally.addHeld(b, 1);
      this.tally.addCopy(r, b, 1);
    }
    this.tally.noteChange(r);
    this.#copies[s] = this.#inSync[s] = this.#finished[s] = copies;
  }

  /** A new leader, at once: `copies` and `inSync` are what stays of the set, `move` what goes on under the new leader. */
  promote(
    s: number,
    leader: number,
    kept: { copies: readonly number[]; inSync: readonly number[]; move: ShardMove | null },
  ): void {
    this.#inSync[s] = kept.inSync;
    this.#change(s, { leader, copies: kept.copies, move: kept.move });
  }

  /**
   * Starts or re-writes a move; the destination joins the copies if it holds none. An ephemeral shard has no log
   * to copy: its destination is in sync from the start.
   */
  setMove(s: number, move: ShardMove): void {
    const copies = this.copies(s);
    if (!this.resourceRow(this.resource(s)).durable && !this.isInSync(s, move.to)) {
      this.#inSync[s] = [...this.inSync(s), move.to];
    }
    this.#change(s, { copies: copies.includes(move.to) ? copies : [...copies, move.to], move });
  }

  /** Takes back a move that this pass has just set. */
  cancelMove(s: number): void {
    const move = this.move(s);
    const row = this.rows[s];
    if (move === null || row === undefined || row.move !== null)
      throw new Error(`${this.shardKey(s)} has no new move`);
    this.#inSync[s] = row.inSync.map((id) => this.brokers.indexOf(id));
    this.#change(s, { copies: row.replicas.map((id) => this.brokers.indexOf(id)), move: null });
  }

  /** Ends the move in flight: `leader` leads and `copies` are the set from here on. */
  endMove(s: number, leader: number, copies: readonly number[]): void {
    this.#inSync[s] = this.inSync(s).filter((b) => copies.includes(b));
    this.#change(s, { copies, move: null, ...(leader === this.leader[s] ? {} : { leader }) });
  }

  dropCopy(s: number, b: number): void {
    this.#inSync[s] = this.inSync(s).filter((x) => x !== b);
    this.#change(s, { copies: this.copies(s).filter((x) => x !== b) });
  }
}
