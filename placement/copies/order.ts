import type { Ranking } from '../hash.ts';
import { Selection } from '../selection.ts';
import type { View } from '../view.ts';
import type { Field } from './field.ts';

const LOAD_UNIT = 2 ** 16;
/** Above every load: 2^31 copies of 2^16 units. */
const NEEDLESS = 2 ** 48;

/** Who gets what is left over: those that need it first, then fewest copies in total by weight, then the higher score. */
export class Order {
  readonly #view: View;
  readonly #field: Field;
  readonly #keys: Float64Array;
  readonly #selection: Selection;

  constructor(view: View, field: Field) {
    this.#view = view;
    this.#field = field;
    this.#keys = new Float64Array(view.brokers.count);
    this.#selection = new Selection(this.#keys);
  }

  begin(): void {
    this.#selection.begin();
  }

  /** How many were added since. */
  get count(): number {
    return this.#selection.count;
  }

  addBroker(b: number, needs: boolean): void {
    const copies = this.#view.tally.copies[b] ?? 0;
    this.#add(b, copies, this.#view.brokers.weight[b] ?? 1, needs);
  }

  /** A zone as one; its first broker stands for it. */
  addZone(zone: number, needs: boolean): void {
    const { start, members } = this.#field;
    const first = start[zone] ?? 0;
    let copies = 0;
    for (let i = first; i < (start[zone + 1] ?? 0); i++) {
      copies += this.#view.tally.copies[members[i] ?? 0] ?? 0;
    }
    this.#add(members[first] ?? 0, copies, this.#field.weight(zone), needs);
  }

  /** By copies per weight, in units of 2^-16. */
  #add(b: number, copies: number, weight: number, needs: boolean): void {
    const load = Math.floor((copies * LOAD_UNIT) / weight);
    this.#keys[b] = needs ? load : load + NEEDLESS;
    this.#selection.add(b);
  }

  /** Brings the best of those from place `from` on before `to` to its front, in no order. Answers how many: `wanted`, or all. */
  choose(wanted: number, ranking: Ranking, from = 0, to = this.count): number {
    return this.#selection.choose(wanted, ranking, from, to);
  }

  at(i: number): number {
    return this.#selection.at(i);
  }
}
