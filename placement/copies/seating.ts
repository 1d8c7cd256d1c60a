import { squaredChange } from './measure.ts';
import type { CopyTargets } from './targets.ts';

/** By broker: the seats of the rows in hand, and what bounds them. */
export interface Seats {
  readonly seats: Int32Array;
  /** Rows in hand that it leads: it needs as many seats. */
  readonly leaders: Int32Array;
  /** Most seats it has room for. */
  readonly upper: Int32Array;
  /** `t_b` in whole numbers, copies from before included. */
  readonly whole: Int32Array;
  /** By zone: seats in all. */
  readonly zoneSeats: Int32Array;
}

/**
 * Brings the seats of rows in hand to their number where brokers hold more than their part already, have no room
 * for it, or lead more than their zone's part covers. One at a time, each where it takes least from floor…ceiling
 * of `t_b`, then where the broker is furthest from its whole part.
 */
export class Seating {
  readonly #targets: CopyTargets;
  readonly #r: number;
  readonly #in: Seats;
  /** Most seats in one zone. */
  readonly #most: number;

  constructor(targets: CopyTargets, r: number, input: Seats, rows: number) {
    this.#targets = targets;
    this.#r = r;
    this.#in = input;
    this.#most = targets.of(r).most * rows;
  }

  /** Zones above their limit give up seats that no leader needs. Returns how many. */
  keepWithinZones(): number {
    const { field } = this.#targets;
    let given = 0;
    for (const z of field.shared) {
      if ((this.#in.zoneSeats[z] ?? 0) <= this.#most) continue;
      const members = field.members.subarray(field.start[z], field.start[z + 1]);
      while ((this.#in.zoneSeats[z] ?? 0) > this.#most && this.#change(members, -1)) given++;
    }
    return given;
  }

  /** Adds so many seats (takes them away where negative), as far as brokers can. */
  add(count: number): void {
    const by = count > 0 ? 1 : -1;
    const { members } = this.#targets.field;
    for (let left = Math.abs(count); left > 0 && this.#change(members, by); left--);
  }

  #change(members: Int32Array, by: 1 | -1): boolean {
    const { seats, leaders, upper } = this.#in;
    let best = -1;
    for (const b of members) {
      const n = seats[b] ?? 0;
      if (by === 1 ? n >= (upper[b] ?? 0) : n <= (leaders[b] ?? 0)) continue;
      if (best < 0 || this.#before(b, best, by)) best = b;
    }
    if (best < 0) return false;
    const z = this.#targets.view.brokers.zone[best] ?? 0;
    seats[best] = (seats[best] ?? 0) + by;
    this.#in.zoneSeats[z] = (this.#in.zoneSeats[z] ?? 0) + by;
    return true;
  }

  #before(a: number, b: number, by: 1 | -1): boolean {
    const difference =
      this.#breaksLimit(a, by) - this.#breaksLimit(b, by) ||
      this.#worsens(a, by) - this.#worsens(b, by) ||
      by * (this.#above(a) - this.#above(b));
    return difference < 0;
  }

  #breaksLimit(b: number, by: 1 | -1): number {
    const z = this.#targets.view.brokers.zone[b] ?? 0;
    return by === 1 && (this.#in.zoneSeats[z] ?? 0) >= this.#most ? 1 : 0;
  }

  #worsens(b: number, by: 1 | -1): number {
    const { share } = this.#targets.of(this.#r);
    return squaredChange(this.#held(b), by, share.floor(b), share.ceiling(b));
  }

  #held(b: number): number {
    const { seats, leaders } = this.#in;
    return this.#targets.view.tally.copiesOf(this.#r, b) - (leaders[b] ?? 0) + (seats[b] ?? 0);
  }

  #above(b: number): number {
    return this.#held(b) - (this.#in.whole[b] ?? 0);
  }
}
