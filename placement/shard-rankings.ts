import { NONE } from './broker-table.ts';
import { Rendezvous, type Ranking, type Stem } from './hash.ts';
import type { View } from './view.ts';

/** The order of brokers for every shard of a view, where nothing else decides. */
export class ShardRankings {
  readonly #view: View;
  readonly #rendezvous: Rendezvous;
  /** Of the resource asked for last: most are asked for shard by shard. */
  #r = NONE;
  #stem: Stem;

  constructor(view: View) {
    this.#view = view;
    this.#rendezvous = new Rendezvous(view.brokers.ids);
    this.#stem = this.#rendezvous.stem('');
  }

  of(s: number): Ranking {
    const view = this.#view;
    const r = view.resource(s);
    if (r !== this.#r) {
      this.#r = r;
      this.#stem = this.#rendezvous.stem(`${view.resourceKeys[r]}/`);
    }
    return this.#stem.of(String(s - (view.firstShard[r] ?? 0)));
  }
}
