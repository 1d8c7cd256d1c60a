import { NONE } from '../broker-table.ts';
import type { Ranking } from '../hash.ts';
import type { Field } from './field.ts';
import type { PairCounts } from './pairs.ts';
import { Quotas, QUOTA_UNIT, type QuotaGroup } from './quotas.ts';

/** The shards of one resource that are placed in one pass. Everything is by broker index. */
export interface Deal {
  readonly factor: number;
  /** By row: its leader. */
  readonly leaders: readonly number[];
  /** By broker: the seats it takes in these rows, its own leaderships included. Used up. */
  readonly seats: Int32Array;
  /** By broker: rows that it leads. Used up. */
  readonly leads: Int32Array;
  readonly ranking: (row: number) => Ranking;
}

/** Groups with more open brokers than this are looked at in part, */
const LARGE = 128;
/** so many of them a pick. */
const WINDOW = 64;

/**
 * Deals the rows of one resource after another, one by one. What is left after each row can always be dealt, because a row takes
 * (a) every broker with as many seats left as there are rows left, and (b) of every zone the whole part of
 * `seats left / rows left`, or one more: then no broker is needed twice by a later row, no zone ends above its
 * limit or below its part, and the leaders still to come find their own seats untouched (README.md, "Dealing").
 * Everything else is free, and is chosen so that pairs of brokers share equally many shards.
 */
export class Dealer {
  readonly #field: Field;
  readonly #pairs: PairCounts;
  readonly #groups: Group[];
  /** By leader and group: followers that its rows so far should have taken, less those they took. */
  readonly #credit: Float64Array;
  /** Of the row in hand, by group: followers it takes at least, and at most. */
  readonly #least: number[];
  readonly #most: number[];
  /** Of the row in hand: its copies so far, the leader first. */
  readonly #set: number[] = [];
  #size = 0;
  readonly #quotas: Quotas;
  #quota: Float64Array = new Float64Array(0);
  #seats: Int32Array = new Int32Array(0);
  /** By broker: rows to come that it leads. */
  #leads: Int32Array = new Int32Array(0);
  #rowsLeft = 0;

  constructor(field: Field, pairs: PairCounts) {
    this.#field = field;
    this.#pairs = pairs;
    const sizes = new Int32Array(field.groups);
    for (const b of field.members) sizes[field.groupOf[b] ?? 0] = (sizes[field.groupOf[b] ?? 0] ?? 0) + 1;
    this.#groups = Array.from(sizes, (size, g) => newGroup(g === field.shared.length, size));
    this.#quotas = new Quotas(field.groups);
    this.#credit = new Float64Array(field.brokers.count * field.groups);
    this.#least = this.#groups.map(() => 0);
    this.#most = this.#groups.map(() => 0);
  }

  /** The sets of all rows, the leader first. Fewer copies than wanted only where the seats are too few. */
  deal(deal: Deal): number[][] {
    this.#begin(deal);
    return deal.leaders.map((leader, row) => this.#next(deal, leader, row));
  }

  #begin({ factor, leaders, seats, leads }: Deal): void {
    const { groupOf, members } = this.#field;
    const rows = leaders.length;
    this.#rowsLeft = rows;
    this.#seats = seats;
    this.#leads = leads;
    for (const group of this.#groups) clear(group);
    for (let i = 0; i < members.length; i++) {
      const b = members[i] ?? 0;
      const left = seats[b] ?? 0;
      if (left === 0) continue;
      const group = this.#group(groupOf[b] ?? 0);
      const led = leads[b] ?? 0;
      group.seats += left;
      group.rows += led;
      group.members[group.memberCount++] = b;
      if (left > led) group.open[group.openCount++] = b;
    }
    for (const group of this.#groups) {
      group.followers = group.seats - group.rows;
      group.least = group.lone ? 0 : wholePart(group.seats, rows);
      group.most = group.lone ? group.memberCount : wholeOrMore(group.seats, rows);
    }
    const groups = this.#groups.length;
    for (const leader of leaders) {
      for (let g = 0; g < groups; g++) this.#credit[leader * groups + g] = 0;
    }
    this.#quota = this.#quotas.of(this.#groups, { followers: factor - 1, rows });
  }

  #next(deal: Deal, leader: number, row: number): number[] {
    this.#set[0] = leader;
    this.#size = 1;
    this.#count(deal.factor, leader);
    this.#take(leader, true);
    for (let g = 0; g < this.#groups.length; g++) {
      const group = this.#group(g);
      for (let n = this.#least[g] ?? 0; n > 0; n--) this.#pick(deal, group, row);
    }
    // Seats that do not fit (caps): any broker that still has one.
    while (this.#size < deal.factor && this.#groups.some((group) => this.#pick(deal, group, row)));
    this.#rowsLeft--;
    const set = this.#set.slice(0, this.#size);
    this.#pairs.add(set);
    return set;
  }

  #group(g: number): Group {
    const group = this.#groups[g];
    if (group === undefined) throw new Error(`no group ${g}`);
    return group;
  }

  #follower(b: number): number {
    return (this.#seats[b] ?? 0) - (this.#leads[b] ?? 0);
  }

  /** How many followers the row takes from each group: left in `#least`. */
  #count(factor: number, leader: number): void {
    const rows = this.#rowsLeft;
    const own = this.#field.groupOf[leader] ?? 0;
    const least = this.#least;
    const most = this.#most;
    let free = factor - 1;
    for (let g = 0; g < this.#groups.length; g++) {
      const group = this.#group(g);
      const mine = g === own ? 1 : 0;
      const available = group.openCount - (mine === 1 && this.#follower(leader) > 0 ? 1 : 0);
      const forced = this.#forced(group, leader);
      const part = group.lone ? 0 : Math.max(0, wholePart(group.seats, rows) - mine);
      const limit = group.lone ? available : Math.max(0, wholeOrMore(group.seats, rows) - mine);
      least[g] = Math.min(available, Math.max(part, forced));
      most[g] = Math.max(least[g] ?? 0, Math.min(available, limit));
      free -= least[g] ?? 0;
    }
    this.#share(leader, free);
  }

  /** Brokers of a group, but the leader, that have a seat in every row left. */
  #forced(group: Group, leader: number): number {
    // No broker's seats come closer to the rows left than by one a row: look again only when they may have met.
    if (group.slack > 0) {
      group.slack--;
      return 0;
    }
    let forced = 0;
    group.forced = 0;
    let slack = this.#rowsLeft;
    for (let i = 0; i < group.memberCount; i++) {
      const b = group.members[i] ?? 0;
      const distance = this.#rowsLeft - (this.#seats[b] ?? 0);
      if (distance === 0 && b !== leader) forced++;
      if (distance < slack) slack = distance;
    }
    group.slack = Math.max(0, slack - 1);
    group.forced = forced;
    return forced;
  }

  /** Gives the row's free picks to the groups in turn, each leader's rows by their quotas. */
  #share(leader: number, picks: number): void {
    const n = this.#groups.length;
    const own = this.#field.groupOf[leader] ?? 0;
    const least = this.#least;
    const most = this.#most;
    const credit = this.#credit;
    for (let g = 0; g < n; g++) {
      const at = leader * n + g;
      credit[at] = (credit[at] ?? 0) + (this.#quota[own * n + g] ?? 0) - (least[g] ?? 0) * QUOTA_UNIT;
    }
    for (let free = picks; free > 0; free--) {
      let best = -1;
      for (let g = 0; g < n; g++) {
        if ((least[g] ?? 0) >= (most[g] ?? 0)) continue;
        if (best < 0 || this.#before(leader, g, best)) best = g;
      }
      if (best < 0) return;
      least[best] = (least[best] ?? 0) + 1;
      credit[leader * n + best] = (credit[leader * n + best] ?? 0) - QUOTA_UNIT;
    }
  }

  #before(leader: number, a: number, b: number): boolean {
    const n = this.#groups.length;
    const difference = (this.#credit[leader * n + a] ?? 0) - (this.#credit[leader * n + b] ?? 0);
    if (difference !== 0) return difference > 0;
    return this.#group(a).seats % this.#rowsLeft > this.#group(b).seats % this.#rowsLeft;
  }

  /** Takes the best open broker of a group into the set. */
  #pick(deal: Deal, group: Group, row: number): boolean {
    const { openCount } = group;
    const leader = this.#set[0] ?? 0;
    const all = openCount <= LARGE || group.forced > 0;
    const from = all ? 0 : scramble(row, leader + this.#size) % openCount;
    const at = this.#best(deal, group, { from, count: all ? openCount : WINDOW }, row);
    if (at === NONE) return false;
    const best = group.open[at] ?? 0;
    if (this.#seats[best] === this.#rowsLeft) group.forced--;
    this.#take(best, false);
    if (this.#follower(best) === 0) close(group, at);
    this.#set[this.#size++] = best;
    return true;
  }

  /** Where the best of `count` open brokers is: one that every row left needs, else by pairs, seats and score. */
  #best(
    deal: Deal,
    { open, openCount }: Group,
    look: { readonly from: number; readonly count: number },
    row: number,
  ): number {
    const seats = this.#seats;
    const pairs = this.#pairs;
    const { follows, brokers } = pairs;
    const set = this.#set;
    const size = this.#size;
    const base = (set[0] ?? 0) * brokers;
    const rowsLeft = this.#rowsLeft;
    let best = NONE;
    let bestAt = NONE;
    let bestKey = 0;
    let bestShares = 0;
    let ranking: Ranking | undefined;
    for (let i = 0; i < look.count; i++) {
      const sum = look.from + i;
      const at = sum < openCount ? sum : sum - openCount;
      const b = open[at] ?? 0;
      const left = seats[b] ?? 0;
      const key = left >= rowsLeft ? -1 : (follows[base + b] ?? 0);
      if ((best >= 0 && key > bestKey) || this.#isTaken(b)) continue;
      const shares = pairs.sharesWith(set, size, b);
      if (best >= 0 && key === bestKey) {
        if (shares > bestShares) continue;
        if (shares === bestShares) {
          const difference = left - (seats[best] ?? 0);
          if (difference < 0) continue;
          if (difference === 0 && (ranking ??= deal.ranking(row)).compare(best, b) < 0) continue;
        }
      }
      best = b;
      bestAt = at;
      bestKey = key;
      bestShares = shares;
    }
    return bestAt;
  }

  #isTaken(b: number): boolean {
    for (let i = 0; i < this.#size; i++) if (this.#set[i] === b) return true;
    return false;
  }

  #take(b: number, leads: boolean): void {
    const group = this.#group(this.#field.groupOf[b] ?? 0);
    this.#seats[b] = (this.#seats[b] ?? 0) - 1;
    group.seats--;
    if (leads) this.#leads[b] = (this.#leads[b] ?? 0) - 1;
  }
}

/** `seats / rows` rounded down, and up; in whole numbers throughout, which is quicker. */
function wholePart(seats: number, rows: number): number {
  return (seats - (seats % rows)) / rows;
}

function wholeOrMore(seats: number, rows: number): number {
  return wholePart(seats, rows) + (seats % rows > 0 ? 1 : 0);
}

/** Where a pick begins to look: anywhere, or brokers that stand side by side would share too many shards. */
function scramble(row: number, pick: number): number {
  return Math.imul(Math.imul(row + 1, 0x9e3779b1) ^ Math.imul(pick + 1, 0x85ebca6b), 0xc2b2ae35) >>> 0;
}

/** `seats` are those left, in all; the rest that quotas follow from are as the resource began. */
interface Group extends QuotaGroup {
  readonly lone: boolean;
  seats: number;
  rows: number;
  followers: number;
  least: number;
  most: number;
  /** Rows for which none of its brokers can be needed by every row left. */
  slack: number;
  /** Brokers that the row in hand must still take. */
  forced: number;
  readonly members: Int32Array;
  memberCount: number;
  /** Brokers that may still follow. */
  readonly open: Int32Array;
  openCount: number;
}

function newGroup(lone: boolean, size: number): Group {
  const counts = { seats: 0, rows: 0, followers: 0, least: 0, most: 0, slack: 0, forced: 0 };
  const [members, open] = [new Int32Array(size), new Int32Array(size)];
  return { lone, ...counts, members, memberCount: 0, open, openCount: 0 };
}

function clear(group: Group): void {
  group.seats = group.rows = group.slack = group.forced = 0;
  group.memberCount = group.openCount = 0;
}

/** The open broker at a place follows no more. The others stay in their order. */
function close(group: Group, at: number): void {
  const { open } = group;
  group.openCount--;
  for (let i = at; i < group.openCount; i++) open[i] = open[i + 1] ?? 0;
}
