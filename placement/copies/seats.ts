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
  readonly #seats: Int32Array;
  readonly #leads: Int32Array;
  readonly #upper: Int32Array;
  readonly #whole: Int32Array;
  /** By place in `field.shared`: ones left over inside the zone, and whether it gets one more. */
  readonly #ones: Int32Array;

  constructor(targets: CopyTargets) {
    const n = targets.view.brokers.count;
    this.#targets = targets;
    this.#order = new Order(targets.view, targets.field);
    this.#seats = new Int32Array(n);
    this.#leads = new Int32Array(n);
    this.#upper = new Int32Array(n);
    this.#whole = new Int32Array(n);
    this.#ones = new Int32Array(targets.field.shared.length);
  }

  /** Of the shards of `r` placed in this pass. The arrays hold until the next call. */
  of(r: number, shards: readonly number[]): SeatRow {
    const { view, field } = this.#targets;
    const { share: parts, rule } = this.#targets.of(r);
    const seats = this.#seats;
    const leads = this.#leads.fill(0);
    const upper = this.#upper;
    const whole = this.#whole;
    for (const s of shards) {
      const leader = view.leader[s] ?? 0;
      leads[leader] = (leads[leader] ?? 0) + 1;
    }
    this.#wholeTargets(parts, view.tally.leadersRow(r), this.#targets.ranking(shards[0] ?? 0));
    const copies = view.tally.copiesRow(r);
    let sum = 0;
    for (let i = 0; i < field.members.length; i++) {
      const b = field.members[i] ?? 0;
      const led = leads[b] ?? 0;
      const before = (copies[b] ?? 0) - led;
      upper[b] = Math.min(shards.length, led + Math.max(0, view.room(b)));
      seats[b] = Math.max(led, Math.min(upper[b] ?? 0, (whole[b] ?? 0) - before));
      sum += seats[b] ?? 0;
    }
    const seating = new Seating(this.#targets, r, { seats, leaders: leads, upper, whole }, shards.length);
    sum -= seating.keepWithinZones();
    seating.add(shards.length * rule.factor - sum);
    return { seats, leads };
  }

  /**
   * `t_b` in whole numbers: zone by zone, then broker by broker. The ones left over go to those whose leaders need
   * them, then to the fewest copies in total by weight, then by score.
   */
  #wholeTargets(parts: Share, led: Int32Array, ranking: Ranking): void {
    const { field } = this.#targets;
    const { floors, ceilings } = parts;
    const order = this.#order;
    const whole = this.#whole;
    const ones = this.#ones;
    const needs = (b: number): boolean => (led[b] ?? 0) > (whole[b] ?? 0);
    const isOpen = (b: number): boolean => (ceilings[b] ?? 0) > (floors[b] ?? 0);
    let left = parts.total;
    order.begin(ranking);
    for (const z of field.zones) {
      if (field.size(z) > 1) continue;
      const b = field.members[field.start[z] ?? 0] ?? 0;
      whole[b] = floors[b] ?? 0;
      left -= whole[b] ?? 0;
      if (isOpen(b)) order.add(b, order.brokerLoad(b), needs(b));
    }
    // Zones of several brokers take part in the first round as one, with the leaders that their floors do not cover.
    for (let i = 0; i < field.shared.length; i++) {
      const z = field.shared[i] ?? 0;
      const first = field.start[z] ?? 0;
      let sum = 0;
      let need = 0;
      for (let at = first; at < (field.start[z + 1] ?? 0); at++) {
        const b = field.members[at] ?? 0;
        whole[b] = floors[b] ?? 0;
        sum += whole[b] ?? 0;
        if (isOpen(b) && needs(b)) need++;
      }
      const part = parts.zone(z);
      left -= part.floor;
      ones[i] = part.floor - sum;
      if (part.remainder > 0) {
        order.add(field.members[first] ?? 0, order.zoneLoad(z), need > (ones[i] ?? 0));
      }
    }
    this.#giveOnes(order.choose(left));
    for (let i = 0; i < field.shared.length; i++) {
      const z = field.shared[i] ?? 0;
      order.begin(ranking);
      for (let at = field.start[z] ?? 0; at < (field.start[z + 1] ?? 0); at++) {
        const b = field.members[at] ?? 0;
        if (isOpen(b)) order.add(b, order.brokerLoad(b), needs(b));
      }
      const chosen = order.choose(ones[i] ?? 0);
      for (let k = 0; k < chosen; k++) whole[order.at(k)] = (whole[order.at(k)] ?? 0) + 1;
    }
  }

  /** The first round's choice: a lone broker, or the first of a zone, which stands for it. */
  #giveOnes(chosen: number): void {
    const { field } = this.#targets;
    for (let k = 0; k < chosen; k++) {
      const b = this.#order.at(k);
      const group = field.groupOf[b] ?? 0;
      if (group < field.shared.length) this.#ones[group] = (this.#ones[group] ?? 0) + 1;
      else this.#whole[b] = (this.#whole[b] ?? 0) + 1;
    }
  }
}
