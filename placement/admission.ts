import { NO_CAP } from './broker-table.ts';
import type { View } from './view.ts';

/**
 * Which new shards the brokers' caps have room for, before any is placed: with so many copies on distinct
 * brokers each. The Gale-Ryser condition, kept true shard by shard: the k shards that need the most copies
 * together need at most what brokers can give to k shards.
 */
export class Admission {
  /** Rooms of the live brokers, falling; `null` where no live broker has a cap. */
  readonly #rooms: number[] | null;
  /** Of the rooms' reversed running sums: what the brokers with less room than k give in all. */
  readonly #sums: number[] = [];
  /** Admitted shards by the number of copies they need. */
  readonly #admitted = new Map<number, number>();

  constructor(view: View) {
    const { liveList, cap } = view.brokers;
    if (liveList.every((b) => cap[b] === NO_CAP)) {
      this.#rooms = null;
      return;
    }
    this.#rooms = [...liveList].map((b) => Math.max(0, view.room(b))).sort((a, b) => a - b);
    let sum = 0;
    for (const room of this.#rooms) this.#sums.push((sum += room));
  }

  /** Takes a shard of `copies` copies in, if there is room for it besides all that were taken in before. */
  admit(copies: number): boolean {
    if (this.#rooms === null) return copies > 0;
    const before = this.#admitted.get(copies) ?? 0;
    this.#admitted.set(copies, before + 1);
    if (copies > 0 && this.#fits()) return true;
    this.#admitted.set(copies, before);
    return false;
  }

  /** Only where the number of copies changes can the condition break first: brokers' gifts grow ever more slowly. */
  #fits(): boolean {
    let shards = 0;
    let copies = 0;
    for (const [each, count] of [...this.#admitted].sort((a, b) => b[0] - a[0])) {
      if (count === 0) continue;
      shards += count;
      copies += each * count;
      if (copies > this.#given(shards)) return false;
    }
    return true;
  }

  /** What brokers can give to `shards` shards, one copy a shard each. */
  #given(shards: number): number {
    const rooms = this.#rooms ?? [];
    let low = 0;
    let high = rooms.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((rooms[middle] ?? 0) < shards) low = middle + 1;
      else high = middle;
    }
    return (this.#sums[low - 1] ?? 0) + (rooms.length - low) * shards;
  }
}
