import { NONE } from './broker-table.ts';
import type { Ranking } from './hash.ts';
import type { Why } from './plan-types.ts';
import type { ShareBook } from './share-book.ts';
import type { LeaderTargets } from './targets.ts';
import type { View } from './view.ts';

/** Where a shard without a leader goes, and by which tier. */
export interface Seat {
  readonly broker: number;
  readonly why: Why;
}

/** Most brokers that a `Why` lists as rejected, and the tier at which each falls out. */
const REJECTED_SHOWN = 3;

type Tier = 'resource_floor' | 'resource_target' | 'resource_ceiling' | 'any_with_room';

/**
 * The tiers by which a leaderless shard of one resource is placed: the highest-scoring broker under the resource's
 * floor, preferring one under the cluster share; then under its target; then, only where caps put targets out of
 * reach, under the ceiling and any with room, the fewest leaders by weight first. A cap is a wall in every tier.
 */
export class Placer {
  readonly #view: View;
  readonly #book: ShareBook;
  readonly #targets: LeaderTargets;
  readonly #details = new Map<number, string>();
  readonly #rejections = new Map<number, Why['rejected'][number]>();

  constructor(view: View, book: ShareBook, targets: LeaderTargets) {
    this.#view = view;
    this.#book = book;
    this.#targets = targets;
  }

  /** `holders`: brokers that hold a copy already, which costs no room. `null`: no broker has room. */
  seat(r: number, ranking: Ranking, holders: readonly number[]): Seat | null {
    return (
      this.#byScore(r, ranking, holders, 'resource_floor', (b) => this.#targets.floor(r, b)) ??
      this.#byScore(r, ranking, holders, 'resource_target', (b) => this.#targets.of(r, b)) ??
      this.#byLoad(r, ranking, holders, 'resource_ceiling', this.#book.of(r).ceiling) ??
      this.#byLoad(r, ranking, holders, 'any_with_room', null)
    );
  }

  #fits(b: number, holders: readonly number[]): boolean {
    return this.#view.room(b) > 0 || holders.includes(b);
  }

  #byScore(
    r: number,
    ranking: Ranking,
    holders: readonly number[],
    tier: Tier,
    limit: (b: number) => number,
  ): Seat | null {
    const { tally, brokers } = this.#view;
    const share = this.#book.cluster().exact;
    let best = NONE;
    let next = NONE;
    let bestUnder = false;
    for (const b of brokers.liveList) {
      if (tally.leadersOf(r, b) >= limit(b) || !this.#fits(b, holders)) continue;
      const under = (tally.leaders[b] ?? 0) < (share[b] ?? 0);
      if (best === NONE || (under !== bestUnder ? under : ranking.compare(b, best) < 0)) {
        next = best;
        best = b;
        bestUnder = under;
      } else if (next === NONE) next = b;
    }
    if (best === NONE) return null;
    return { broker: best, why: this.#why(r, ranking, holders, tier, best, next) };
  }

  #byLoad(
    r: number,
    ranking: Ranking,
    holders: readonly number[],
    tier: Tier,
    limit: Int32Array | null,
  ): Seat | null {
    const { tally, brokers } = this.#view;
    let best = NONE;
    let next = NONE;
    for (const b of brokers.liveList) {
      if (limit !== null && tally.leadersOf(r, b) >= (limit[b] ?? 0)) continue;
      if (!this.#fits(b, holders)) continue;
      // Leaders by weight, without a division: a/v < c/w is a·w < c·v.
      const order =
        best === NONE
          ? -1
          : (tally.leaders[b] ?? 0) * (brokers.weight[best] ?? 1) -
              (tally.leaders[best] ?? 0) * (brokers.weight[b] ?? 1) || ranking.compare(b, best);
      if (order < 0) {
        next = best;
        best = b;
      } else if (next === NONE) next = b;
    }
    if (best === NONE) return null;
    return { broker: best, why: this.#why(r, ranking, holders, tier, best, next) };
  }

  #why(
    r: number,
    ranking: Ranking,
    holders: readonly number[],
    tier: Tier,
    b: number,
    runnerUp: number,
  ): Why {
    return {
      rule: tier,
      detail: this.#detail(r, b, tier),
      rejected: this.#rejected(r, ranking, holders, b),
      runnerUp: runnerUp === NONE ? null : this.#view.brokers.id(runnerUp),
    };
  }

  /** One text a resource, broker and tier, however many shards land there. */
  #detail(r: number, b: number, tier: Tier): string {
    const { brokers, resourceKeys } = this.#view;
    const key = (r * brokers.count + b) * 4 + TIERS.indexOf(tier);
    let text = this.#details.get(key);
    if (text === undefined) {
      const numbers = `floor ${this.#targets.floor(r, b)}, target ${this.#targets.of(r, b)}`;
      text = `${brokers.id(b)} is ${TIER_TEXT[tier]} of ${resourceKeys[r]} (${numbers})`;
      this.#details.set(key, text);
    }
    return text;
  }

  /** The first brokers by index that score higher and were passed over, with what stood against each. */
  #rejected(r: number, ranking: Ranking, holders: readonly number[], chosen: number): Why['rejected'] {
    const rejected: Why['rejected'][number][] = [];
    const score = ranking.high(chosen);
    for (const b of this.#view.brokers.liveList) {
      if (rejected.length === REJECTED_SHOWN) break;
      if (b === chosen || ranking.high(b) <= score) continue;
      const by = !this.#fits(b, holders)
        ? 0
        : this.#view.tally.leadersOf(r, b) >= this.#targets.of(r, b)
          ? 1
          : 2;
      const key = b * 3 + by;
      let row = this.#rejections.get(key);
      if (row === undefined) {
        row = { broker: this.#view.brokers.id(b), by: REJECTIONS[by] ?? '' };
        this.#rejections.set(key, row);
      }
      rejected.push(row);
    }
    return rejected;
  }
}

const TIERS: readonly Tier[] = ['resource_floor', 'resource_target', 'resource_ceiling', 'any_with_room'];
const TIER_TEXT: Readonly<Record<Tier, string>> = {
  resource_floor: 'under its floor',
  resource_target: 'under its target',
  resource_ceiling: 'under the ceiling and leads the fewest by weight; caps put targets out of reach; it is',
  any_with_room: 'the least loaded with room; caps put targets out of reach; it',
};
const REJECTIONS = ['at_max_shards', 'at_target', 'later_tier'];
