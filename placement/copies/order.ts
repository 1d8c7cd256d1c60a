import type { Ranking } from '../hash.ts';
import type { View } from '../view.ts';
import type { Field } from './field.ts';

const LOAD_UNIT = 2 ** 16;
/** Above every load: 2^31 copies of 2^16 units. */
const NEEDLESS = 2 ** 48;

/** Who gets what is left over: those that need it first, then fewest copies in total by weight, then the higher score. */
export class Order {
  readonly #view: View;
  readonly #field: Field;
  readonly #list: Int32Array;
  /** By broker, of those in the list. */
  readonly #load: Float64Array;
  readonly #score: Float64Array;
  #ranking: Ranking | null = null;
  #count = 0;

  constructor(view: View, field: Field) {
    this.#view = view;
    this.#field = field;
    this.#list = new Int32Array(view.brokers.count);
    this.#load = new Float64Array(view.brokers.count);
    this.#score = new Float64Array(view.brokers.count);
  }

  begin(ranking: Ranking): void {
    this.#ranking = ranking;
    this.#count = 0;
  }

  add(b: number, load: number, needs: boolean): void {
    this.#list[this.#count++] = b;
    this.#load[b] = needs ? load : load + NEEDLESS;
    this.#score[b] = this.#ranking?.high(b) ?? 0;
  }

  /** Brings the best to the front. Answers how many they are: `wanted`, or all there are. */
  choose(wanted: number): number {
    if (wanted >= this.#count) return this.#count;
    if (wanted <= 0) return 0;
    this.#partition(wanted);
    return wanted;
  }

  at(i: number): number {
    return this.#list[i] ?? 0;
  }

  /** Copies per weight, in units of 2^-16. */
  brokerLoad(b: number): number {
    const copies = this.#view.tally.copies[b] ?? 0;
    return Math.floor((copies * LOAD_UNIT) / (this.#view.brokers.weight[b] ?? 1));
  }

  zoneLoad(zone: number): number {
    let copies = 0;
    for (let i = this.#field.start[zone] ?? 0; i < (this.#field.start[zone + 1] ?? 0); i++) {
      copies += this.#view.tally.copies[this.#field.members[i] ?? 0] ?? 0;
    }
    return Math.floor((copies * LOAD_UNIT) / this.#field.weight(zone));
  }

  /** By partition (C. A. R. Hoare's Find): the order within the front, and behind it, is left open. */
  #partition(wanted: number): void {
    const list = this.#list;
    const load = this.#load;
    const score = this.#score;
    let low = 0;
    let high = this.#count - 1;
    while (low < high) {
      const pivot = list[(low + high) >> 1] ?? 0;
      const pivotLoad = load[pivot] ?? 0;
      const pivotScore = score[pivot] ?? 0;
      let i = low;
      let j = high;
      while (i <= j) {
        for (; ; i++) {
          const b = list[i] ?? 0;
          const difference = (load[b] ?? 0) - pivotLoad || pivotScore - (score[b] ?? 0);
          if (difference > 0 || (difference === 0 && !this.#wins(b, pivot))) break;
        }
        for (; ; j--) {
          const b = list[j] ?? 0;
          const difference = (load[b] ?? 0) - pivotLoad || pivotScore - (score[b] ?? 0);
          if (difference < 0 || (difference === 0 && !this.#wins(pivot, b))) break;
        }
        if (i > j) break;
        const swap = list[i] ?? 0;
        list[i++] = list[j] ?? 0;
        list[j--] = swap;
      }
      if (wanted - 1 <= j) high = j;
      else if (wanted <= i) return;
      else low = i;
    }
  }

  /** Among brokers of equal load and equal high lanes. */
  #wins(a: number, b: number): boolean {
    return a !== b && (this.#ranking?.compare(a, b) ?? 0) < 0;
  }
}
