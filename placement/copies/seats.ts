import type { Ranking } from '../hash.ts';
import type { View } from '../view.ts';
import type { Field } from './field.ts';
import { Seating } from './seating.ts';
import type { Share } from './share.ts';
import type { CopyTargets } from './targets.ts';

/**
 * `t_b` in whole numbers: zone by zone, then broker by broker. The ones left over go to those whose leaders need
 * them, then to the fewest copies in total by weight, then by score.
 */
export function wholeTargets(field: Field, parts: Share, leaders: Int32Array, order: Order): Int32Array {
  const whole = new Int32Array(leaders.length);
  const lone: number[] = [];
  let left = parts.total;
  for (const z of field.zones) {
    let sum = 0;
    for (let i = field.start[z] ?? 0; i < (field.start[z + 1] ?? 0); i++) {
      const b = field.members[i] ?? 0;
      whole[b] = parts.floor(b);
      sum += whole[b] ?? 0;
    }
    if (field.size(z) === 1) {
      left -= sum;
      const b = field.members[field.start[z] ?? 0] ?? 0;
      if (parts.remainder(b) > 0) lone.push(b);
    }
  }
  // Zones of several brokers take part in the first round as one, with the leaders that their floors do not cover.
  const zones: { zone: number; floor: number; open: number[] }[] = [];
  for (const z of field.shared) {
    const part = parts.zone(z);
    const open: number[] = [];
    let floors = 0;
    for (let i = field.start[z] ?? 0; i < (field.start[z + 1] ?? 0); i++) {
      const b = field.members[i] ?? 0;
      floors += whole[b] ?? 0;
      if (parts.remainder(b) > 0) open.push(b);
    }
    left -= part.floor;
    zones.push({ zone: z, floor: part.floor - floors, open });
  }
  const takers = firstRound(field, parts, { whole, leaders, order, lone, zones, left });
  for (const b of takers.brokers) whole[b] = (whole[b] ?? 0) + 1;
  for (const z of zones) {
    const ones = z.floor + (takers.zones.has(z.zone) ? 1 : 0);
    for (const b of order.best(z.open, ones, (x) => (leaders[x] ?? 0) > (whole[x] ?? 0))) {
      whole[b] = (whole[b] ?? 0) + 1;
    }
  }
  return whole;
}

interface Round {
  readonly whole: Int32Array;
  readonly leaders: Int32Array;
  readonly order: Order;
  readonly lone: number[];
  readonly zones: readonly { zone: number; floor: number; open: number[] }[];
  readonly left: number;
}

/** Which lone brokers and which zones get one more. */
function firstRound(field: Field, parts: Share, round: Round): { brokers: number[]; zones: Set<number> } {
  const { whole, leaders, order, zones } = round;
  const standsFor = new Map<number, number>();
  const needy = new Set<number>();
  const candidates = [...round.lone];
  for (const z of zones) {
    if (parts.zone(z.zone).remainder === 0) continue;
    const first = field.members[field.start[z.zone] ?? 0] ?? 0;
    let need = 0;
    for (const b of z.open) if ((leaders[b] ?? 0) > (whole[b] ?? 0)) need++;
    if (need > z.floor) needy.add(first);
    standsFor.set(first, z.zone);
    candidates.push(first);
  }
  const needs = (b: number): boolean =>
    standsFor.has(b) ? needy.has(b) : (leaders[b] ?? 0) > (whole[b] ?? 0);
  const chosen = order.best(candidates, round.left, needs, standsFor);
  const taken = { brokers: [] as number[], zones: new Set<number>() };
  for (const b of chosen) {
    const zone = standsFor.get(b);
    if (zone === undefined) taken.brokers.push(b);
    else taken.zones.add(zone);
  }
  return taken;
}

/** Who gets what is left over: fewest copies in total by weight, then the higher score. */
export class Order {
  readonly #view: View;
  readonly #field: Field;
  readonly #ranking: Ranking;
  readonly #load: Float64Array;

  constructor(view: View, field: Field, ranking: Ranking) {
    this.#view = view;
    this.#field = field;
    this.#ranking = ranking;
    this.#load = new Float64Array(view.brokers.count);
  }

  /** The `count` best of `candidates`, those that `needs` holds for first. A candidate may stand for its zone. */
  best(
    candidates: readonly number[],
    count: number,
    needs: (b: number) => boolean,
    standsFor?: ReadonlyMap<number, number>,
  ): readonly number[] {
    if (count >= candidates.length) return candidates;
    if (count <= 0) return [];
    const load = this.#load;
    for (const b of candidates) {
      const zone = standsFor?.get(b);
      const base = zone === undefined ? this.#brokerLoad(b) : this.#zoneLoad(zone);
      load[b] = needs(b) ? base : base + NEEDLESS;
    }
    const loads = new Float64Array(candidates.length);
    for (let i = 0; i < candidates.length; i++) loads[i] = load[candidates[i] ?? 0] ?? 0;
    const last = nthSmallest(loads, count - 1);
    const chosen: number[] = [];
    const tied: number[] = [];
    for (const b of candidates) {
      const value = load[b] ?? 0;
      if (value < last) chosen.push(b);
      else if (value === last) tied.push(b);
    }
    return [...chosen, ...this.#highest(tied, count - chosen.length)];
  }

  /** The `count` brokers of the highest scores. */
  #highest(tied: number[], count: number): number[] {
    if (count >= tied.length) return tied;
    const scores = new Float64Array(tied.length);
    for (let i = 0; i < tied.length; i++) scores[i] = -this.#ranking.high(tied[i] ?? 0);
    const last = -nthSmallest(scores.slice(), count - 1);
    const chosen = tied.filter((_, i) => -(scores[i] ?? 0) > last);
    const equal = tied.filter((_, i) => -(scores[i] ?? 0) === last);
    equal.sort((a, b) => this.#ranking.compare(a, b));
    return [...chosen, ...equal.slice(0, count - chosen.length)];
  }

  /** Copies per weight, in units of 2^-16. */
  #brokerLoad(b: number): number {
    const copies = this.#view.tally.copies[b] ?? 0;
    return Math.floor((copies * LOAD_UNIT) / (this.#view.brokers.weight[b] ?? 1));
  }

  #zoneLoad(zone: number): number {
    let copies = 0;
    for (let i = this.#field.start[zone] ?? 0; i < (this.#field.start[zone + 1] ?? 0); i++) {
      copies += this.#view.tally.copies[this.#field.members[i] ?? 0] ?? 0;
    }
    return Math.floor((copies * LOAD_UNIT) / this.#field.weight(zone));
  }
}

const LOAD_UNIT = 2 ** 16;
/** Above every load: 2^31 copies of 2^16 units. */
const NEEDLESS = 2 ** 48;

/** The value at place `n` of the sorted array, found by partition (C. A. R. Hoare's Find); reorders the array. */
function nthSmallest(values: Float64Array, n: number): number {
  let low = 0;
  let high = values.length - 1;
  while (low < high) {
    const pivot = values[(low + high) >> 1] ?? 0;
    let i = low;
    let j = high;
    while (i <= j) {
      while ((values[i] ?? 0) < pivot) i++;
      while ((values[j] ?? 0) > pivot) j--;
      if (i > j) break;
      const swap = values[i] ?? 0;
      values[i++] = values[j] ?? 0;
      values[j--] = swap;
    }
    if (n <= j) high = j;
    else if (n >= i) low = i;
    else break;
  }
  return values[n] ?? 0;
}

/** The seats of the shards placed in this pass, by broker, their leaders' own included. */
export function seatsOf(targets: CopyTargets, r: number, shards: readonly number[]): Int32Array {
  const { view, field } = targets;
  const { share: parts, rule } = targets.of(r);
  const n = view.brokers.count;
  const leaders = new Int32Array(n);
  for (const s of shards) {
    const leader = view.leader[s] ?? 0;
    leaders[leader] = (leaders[leader] ?? 0) + 1;
  }
  const order = new Order(view, field, targets.ranking(shards[0] ?? 0));
  const whole = wholeTargets(field, parts, view.tally.leadersRow(r), order);
  const seats = new Int32Array(n);
  const upper = new Int32Array(n);
  let sum = 0;
  for (const b of field.members) {
    const led = leaders[b] ?? 0;
    const before = view.tally.copiesOf(r, b) - led;
    upper[b] = Math.min(shards.length, led + Math.max(0, view.room(b)));
    seats[b] = Math.max(led, Math.min(upper[b] ?? 0, (whole[b] ?? 0) - before));
    sum += seats[b] ?? 0;
  }
  const seating = new Seating(targets, r, { seats, leaders, upper, whole }, shards.length);
  sum -= seating.keepWithinZones();
  seating.add(shards.length * rule.factor - sum);
  return seats;
}
