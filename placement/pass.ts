import { NONE } from './broker-table.ts';
import { copyTargets, type CopyTargets } from './copies/index.ts';
import { compareShards } from './model.ts';
import type { WaitingRow } from './plan-types.ts';
import { Objective } from './objective.ts';
import { ShardRankings } from './shard-rankings.ts';
import { ShareBook } from './share-book.ts';
import { MoveSlots } from './slots.ts';
import { StepBuilder } from './step-builder.ts';
import type { LeaderTargets } from './targets.ts';
import type { View } from './view.ts';

/** Everything the rules of one pass share. */
export class Pass {
  readonly view: View;
  readonly book: ShareBook;
  readonly builder: StepBuilder;
  readonly rankings: ShardRankings;
  readonly #waiting = new Map<string, WaitingRow>();
  readonly unplaceable: WaitingRow[] = [];
  /** Some shard that nobody leads waits for room under the caps. */
  lacksRoom = false;
  /** Shards that got their first leader in this pass. */
  placed = 0;
  /** A broker had no room when the pass began. */
  readonly #beganFull: boolean;
  readonly #slots = new MoveSlots();
  #deadline: number | null = null;
  #targets: LeaderTargets | null = null;
  #copyTargets: CopyTargets | null = null;
  #objective: Objective | null = null;

  constructor(view: View) {
    this.view = view;
    this.book = new ShareBook(view);
    this.builder = new StepBuilder(view);
    this.rankings = new ShardRankings(view);
    this.#beganFull = isFull(view);
    for (let s = 0; s < view.shardCount; s++) {
      const move = view.rows[s]?.move;
      if (move) this.#slots.add(move);
    }
  }

  /** Set once, when the pass knows which shards count. */
  set targets(targets: LeaderTargets) {
    this.#targets = targets;
  }

  get targets(): LeaderTargets {
    if (this.#targets === null) throw new Error('the pass has no targets yet');
    return this.#targets;
  }

  /** First asked for once every leader of the pass is placed: the copies' targets follow from who counts. */
  get copyTargets(): CopyTargets {
    return (this.#copyTargets ??= copyTargets(this.view, (r, b) => this.targets.of(r, b)));
  }

  get objective(): Objective {
    return (this.#objective ??= new Objective(this.view, this.book, this.copyTargets));
  }

  /** Keeps the objective right, if it was asked for already, after leaders of `r` have changed. */
  leadersChanged(r: number): void {
    this.#objective?.refresh(r);
  }

  /** Why no slot is free for such a move; `null`: one is. */
  slotRefusal(copied: boolean, from: number, to: number): string | null {
    return this.#slots.refusal(this.#use(copied, from, to), this.view.policy);
  }

  hasSlot(copied: boolean, from: number, to: number): boolean {
    return this.slotRefusal(copied, from, to) === null;
  }

  /** Whether a copy of the shard may start; an ephemeral shard has nothing to copy and takes a hand-over's slot. */
  slotTest(s: number): (from: number, to: number) => boolean {
    const copied = this.view.resourceRow(this.view.resource(s)).durable;
    return (from, to) => this.hasSlot(copied, from, to);
  }

  takeSlot(copied: boolean, from: number, to: number): void {
    this.#slots.add(this.#use(copied, from, to));
  }

  freeSlot(copied: boolean, from: number, to: number): void {
    this.#slots.remove(this.#use(copied, from, to));
  }

  #use(copied: boolean, from: number, to: number): { copied: boolean; from: string | null; to: string } {
    return { copied, from: from === NONE ? null : this.view.brokers.id(from), to: this.view.brokers.id(to) };
  }

  /** Room is, or was as the pass began, what some broker lacks, or some shard. */
  get isTight(): boolean {
    return this.#beganFull || this.lacksRoom || isFull(this.view);
  }

  /** Some move is in flight, or this pass has decided a write. */
  get moving(): boolean {
    return this.#slots.copies > 0 || this.#slots.handovers > 0 || this.builder.steps.length > 0;
  }

  /** Copies, and hand-overs, that could still start if the brokers allow it. */
  get copySlotsLeft(): number {
    return this.view.policy.maxConcurrentMoves - this.#slots.copies;
  }

  get handoverSlotsLeft(): number {
    return this.view.policy.maxConcurrentHandovers - this.#slots.handovers;
  }

  /** Lists a shard as waiting: the first reason a pass finds stands. */
  wait(s: number, reason: string, detail: string): void {
    const shard = this.view.shardKey(s);
    if (!this.#waiting.has(shard)) this.#waiting.set(shard, { shard, reason, detail });
  }

  /** In order. Where more than one waits for room, each says how many do: that many copies of room are missing. */
  get waiting(): WaitingRow[] {
    const rows = [...this.#waiting.values()].sort((a, b) => compareShards(a.shard, b.shard));
    const short = rows.filter((row) => row.reason === 'no_room').length;
    if (short < 2) return rows;
    const inAll = `; ${short} shards wait for room in all`;
    return rows.map((row) => (row.reason === 'no_room' ? { ...row, detail: `${row.detail}${inAll}` } : row));
  }

  refuse(s: number, reason: string, detail: string): void {
    this.lacksRoom ||= reason === 'no_room';
    this.unplaceable.push({ shard: this.view.shardKey(s), reason, detail });
  }

  /** Something could be wanted at `atMs` (cluster time) though nothing else changes. */
  wakeAt(atMs: number): void {
    if (atMs > this.view.nowMs && (this.#deadline === null || atMs < this.#deadline)) this.#deadline = atMs;
  }

  get nextDeadlineMs(): number | null {
    return this.#deadline;
  }
}

function isFull(view: View): boolean {
  return view.brokers.liveList.some((b) => view.room(b) <= 0);
}
