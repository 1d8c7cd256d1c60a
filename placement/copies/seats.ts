import type { Ranking } from '../hash.ts';
import { Order } from './order.ts';
import { Seating } from './seating.ts';
import type { Share } from './share.ts';
import type { CopyTargets } from './targets.ts';

/** What one resource's shards of this pass take of every broker. */
export interface SeatRow {
  /** Seats, the leaders' own included. */
  readonly seats: Int32Array;
  /** Leaderships. */
  readonly leads: Int32Array;
}

/** The seats of the shards that a pass places, resource by resource. */
export class SeatPlan {
  readonly #targets: CopyTargets;
  readonly #order: Order;
  /** The zones of several brokers, and the lone brokers. */
  readonly #zoneOrder: Order;
  readonly #seats: Int32Array;
  readonly #leads: Int32Array;
  readonly #upper: Int32Array;
  readonly #whole: Int32Array;
  readonly #zoneSeats: Int32Array;
  /** By place in `field.shared`: ones left over inside the zone, and where its brokers end in the order. */
  readonly #ones: Int32Array;
  readonly #ends: Int32Array;

  constructor(targets: CopyTargets) {
    const n = targets.view.brokers.count;
    this.#targets = targets;
    this.#order = new Order(targets.view, targets.field);
    this.#zoneOrder = new Order(targets.view, targets.field);
    this.#seats = new Int32Array(n);
    this.#leads = new Int32Array(n);
    this.#upper = new Int32Array(n);
    this.#whole = new Int32Array(n);
    this.#zoneSeats = new Int32Array(targets.field.zoneCount);
    this.#ones = new Int32Array(targets.field.shared.length);
    this.#ends = new Int32Array(targets.field.shared.length);
  }

  /** Of the shards of `r` placed in this pass. The arrays hold until the next call. */
  of(r: number, shards: readonly number[]): SeatRow {
    const { view } = this.#targets;
    const { share: parts, rule, most } = this.#targets.of(r);
    const seats = this.#seats;
    const leads = this.#leads.fill(0);
    for (const s of shards) {
      const leader = view.leader[s] ?? 0;
      leads[leader] = (leads[leader] ?? 0) + 1;
    }
    this.#wholeTargets(parts, r, this.#targets.ranking(shards[0] ?? 0));
    const missing = shards.length * rule.factor - this.#seatAll(r, shards.length);
    if (missing !== 0 || this.#isCrowded(most * shards.length)) {
      const bounds = { leaders: leads, upper: this.#upper, whole: this.#whole };
      const input = { seats, ...bounds, zoneSeats: this.#zoneSeats };
      const seating = new Seating(this.#targets, r, input, shards.length);
      seating.add(missing + seating.keepWithinZones());
    }
    return { seats, leads };
  }

  /** Every broker's whole part less the copies it has, as far as it has room and no less than it leads. Answers the sum. */
  #seatAll(r: number, rows: number): number {
    const { view, field } = this.#targets;
    const seats = this.#seats;
    const leads = this.#leads;
    const upper = this.#upper;
    const whole = this.#whole;
    const { tally } = view;
    let sum = 0;
    for (let k = 0; k < field.zones.length; k++) {
      const z = field.zones[k] ?? 0;
      const end = field.start[z + 1] ?? 0;
      let inZone = 0;
      for (let i = field.start[z] ?? 0; i < end; i++) {
        const b = field.members[i] ?? 0;
        const led = leads[b] ?? 0;
        const before = tally.copiesOf(r, b) - led;
        const most = Math.min(rows, led + Math.max(0, view.room(b)));
        const n = Math.max(led, Math.min(most, (whole[b] ?? 0) - before));
        upper[b] = most;
        seats[b] = n;
        inZone += n;
      }
      this.#zoneSeats[z] = inZone;
      sum += inZone;
    }
    return sum;
  }

  #isCrowded(most: number): boolean {
    for (const z of this.#targets.field.shared) if ((this.#zoneSeats[z] ?? 0) > most) return true;
    return false;
  }

  /**
   * `t_b` in whole numbers: zone by zone, then broker by broker. The ones left over go to those whose leaders need
   * them, then to the fewest copies in total by weight, then by score.
   */
  #wholeTargets(parts: Share, r: number, ranking: Ranking): void {
    const { field } = this.#targets;
    const order = this.#order;
    const whole = this.#whole;
    whole.set(parts.floors);
    order.begin();
    this.#zoneOrder.begin();
    let left = parts.total;
    for (const z of field.zones) if (field.size(z) === 1) left -= this.#addLone(parts, r, z);
    for (let i = 0; i < field.shared.length; i++) {
      const z = field.shared[i] ?? 0;
      const part = parts.zone(z);
      left -= part.floor;
      this.#ones[i] = part.ones;
      const need = this.#addMembers(parts, r, z);
      this.#ends[i] = order.count;
      if (part.remainder > 0) this.#zoneOrder.addZone(z, need > part.ones);
    }
    this.#giveOnes(this.#zoneOrder.choose(left, ranking));
    for (let i = 0; i < field.shared.length; i++) {
      const from = i === 0 ? 0 : (this.#ends[i - 1] ?? 0);
      const chosen = order.choose(this.#ones[i] ?? 0, ranking, from, this.#ends[i] ?? 0);
      for (let k = from; k < from + chosen; k++) whole[order.at(k)] = (whole[order.at(k)] ?? 0) + 1;
    }
  }

  /** Answers the floor of the zone's one broker. */
  #addLone({ floors, ceilings }: Share, r: number, z: number): number {
    const { tally } = this.#targets.view;
    const { start, members } = this.#targets.field;
    const b = members[start[z] ?? 0] ?? 0;
    const floor = floors[b] ?? 0;
    if ((ceilings[b] ?? 0) > floor) this.#zoneOrder.addBroker(b, tally.leadersOf(r, b) > floor);
    return floor;
  }

  /** The brokers of a zone of several that may get one more. Answers how many need it for the shards they lead. */
  #addMembers({ floors, ceilings }: Share, r: number, z: number): number {
    const { tally } = this.#targets.view;
    const { start, members } = this.#targets.field;
    const order = this.#order;
    const end = start[z + 1] ?? 0;
    let need = 0;
    for (let at = start[z] ?? 0; at < end; at++) {
      const b = members[at] ?? 0;
      const floor = floors[b] ?? 0;
      if ((ceilings[b] ?? 0) <= floor) continue;
      const needs = tally.leadersOf(r, b) > floor;
      order.addBroker(b, needs);
      if (needs) need++;
    }
    return need;
  }

  /** The first round's choice: a lone broker, or the first of a zone, which stands for it. */
  #giveOnes(chosen: number): void {
    const { groupOf, shared } = this.#targets.field;
    for (let k = 0; k < chosen; k++) {
      const b = this.#zoneOrder.at(k);
      const group = groupOf[b] ?? 0;
      if (group < shared.length) this.#ones[group] = (this.#ones[group] ?? 0) + 1;
      else this.#whole[b] = (this.#whole[b] ?? 0) + 1;
    }
  }
}
