import { NO_CAP, NONE } from './broker-table.ts';
import type { Ranking } from './hash.ts';
import type { Why } from './plan-types.ts';
import { REJECTED_SHOWN, Rejections } from './rejections.ts';
import type { LeaderTargets } from './targets.ts';
import type { View } from './view.ts';

/** Where a shard without a leader goes, and by which tier. */
export interface Seat {
  readonly broker: number;
  readonly why: Why;
}

type Tier = 'resource_floor' | 'resource_target' | 'resource_ceiling' | 'any_with_room';

/** Most brokers that are looked at for what a `Why` lists as rejected. */
const REJECTED_SEEN = 32;

/**
 * The tiers by which a leaderless shard of one resource is placed: the highest-scoring broker under the resource's
 * floor, preferring one under the cluster share; then under its target; then, only where caps and brokers that are not heard
 * put targets out of reach, under the ceiling and any with room, the fewest leaders by weight first. A cap is a wall in every tier, and nothing goes to a broker that is not heard.
 */
export class Placer {
  readonly #view: View;
  readonly #targets: LeaderTargets;
  readonly #limited: boolean;
  readonly #rejections: Rejections;
  readonly #above = new Int32Array(REJECTED_SHOWN);
  readonly #tiers: ResourceTiers;
  #best = NONE;
  #next = NONE;

  constructor(view: View, targets: LeaderTargets) {
    this.#view = view;
    this.#targets = targets;
    this.#tiers = new ResourceTiers(view, targets);
    this.#rejections = new Rejections(view.brokers.ids);
    this.#limited = view.brokers.liveList.some((b) => view.brokers.cap[b] !== NO_CAP || !view.isHeard(b));
  }

  /** `holders`: brokers that hold a copy already, which costs no room. `null`: no broker has room. */
  seat(r: number, ranking: Ranking, holders: readonly number[]): Seat | null {
    const tiers = this.#tiers;
    if (tiers.r !== r) tiers.begin(r);
    const fits = this.#limited ? (b: number): boolean => this.#fits(b, holders) : null;
    const tier = this.#tier(r, ranking, fits);
    if (tier === null) return null;
    const best = this.#best;
    const next = this.#next;
    return {
      broker: best,
      why: {
        rule: tier,
        detail: tiers.detail(best, tier),
        rejected: this.#rejected(tiers, ranking, fits, best),
        runnerUp: next === NONE ? null : this.#view.brokers.id(next),
      },
    };
  }

  #fits(b: number, holders: readonly number[]): boolean {
    // What is led by a broker that is gone already waits until that is known for sure.
    if (!this.#view.isHeard(b)) return false;
    return this.#view.room(b) > 0 || holders.includes(b);
  }

  /** The first tier that has a broker: the two best of it are left in `#best` and `#next`. */
  #tier(r: number, ranking: Ranking, fits: Fits): Tier | null {
    if (this.#byScore(this.#tiers.floor, ranking, fits)) return 'resource_floor';
    if (this.#byScore(this.#tiers.target, ranking, fits)) return 'resource_target';
    for (const last of ['resource_ceiling', 'any_with_room'] as const) {
      if (this.#byLoad(r, ranking, fits, last)) return last;
    }
    return null;
  }

  /** The two best of a tier that goes by score: under the cluster share first. */
  #byScore(list: OpenList, ranking: Ranking, fits: Fits): boolean {
    const { leaders } = this.#view.tally;
    const share = this.#targets.cluster.exact;
    let best = NONE;
    let bestHigh = -1;
    let next = NONE;
    let nextHigh = -1;
    list.closeFull();
    for (let i = 0; i < list.count; i++) {
      const b = list.at(i);
      if (fits !== null && !fits(b)) continue;
      // Under the share outranks every score: the high lane is below 2^32.
      const high = ranking.high(b) + ((leaders[b] ?? 0) < (share[b] ?? 0) ? 2 ** 32 : 0);
      if (high > bestHigh || (high === bestHigh && ranking.compare(b, best) < 0)) {
        next = best;
        nextHigh = bestHigh;
        best = b;
        bestHigh = high;
      } else if (high > nextHigh || (high === nextHigh && ranking.compare(b, next) < 0)) {
        next = b;
        nextHigh = high;
      }
    }
    this.#best = best;
    this.#next = next;
    return best !== NONE;
  }

  /** The two that lead the fewest by weight, of those under the ceiling or of all. */
  #byLoad(r: number, ranking: Ranking, fits: Fits, tier: Tier): boolean {
    const { tally, brokers } = this.#view;
    const open = [...brokers.liveList].filter((b) => {
      if (fits !== null && !fits(b)) return false;
      return tier === 'any_with_room' || tally.leadersOf(r, b) < this.#targets.ceiling(r, b);
    });
    // Leaders by weight, without a division: a/v < c/w is a·w < c·v.
    const load = (a: number, b: number): number => (tally.leaders[a] ?? 0) * (brokers.weight[b] ?? 1);
    open.sort((a, b) => load(a, b) - load(b, a) || ranking.compare(a, b));
    this.#best = open[0] ?? NONE;
    this.#next = open[1] ?? NONE;
    return this.#best !== NONE;
  }

  /** Some brokers that score higher and were passed over, with what stood against each. */
  #rejected(tiers: ResourceTiers, ranking: Ranking, fits: Fits, chosen: number): Why['rejected'] {
    const rejections = this.#rejections;
    rejections.begin();
    const score = ranking.high(chosen);
    const above = this.#above;
    const { closed, closedCount } = tiers.target;
    const found = ranking.above(score, closed, closedCount, above);
    for (let i = 0; i < found; i++) rejections.add(above[i] ?? NONE, 'at_target');
    if (fits === null) return rejections.list();
    for (const b of this.#view.brokers.liveList) {
      if (rejections.isFull) break;
      if (fits(b) || ranking.high(b) <= score) continue;
      rejections.add(b, this.#view.isHeard(b) ? 'at_max_shards' : 'not_heard');
    }
    return rejections.list();
  }
}

type Fits = ((b: number) => boolean) | null;

/** Brokers of one resource that are under a limit; those found full leave, for leaders are only added here. */
class OpenList {
  readonly #brokers: Int32Array;
  #limit: Int32Array;
  #led: Int32Array;
  /** The first that were found full, and of how many it is. */
  readonly closed: Int32Array;
  closedCount = 0;
  count = 0;

  /** `shown`: how many of those found full somebody may ask for. */
  constructor(brokers: number, shown: number) {
    this.closed = new Int32Array(shown);
    this.#brokers = new Int32Array(brokers);
    this.#limit = this.#led = this.#brokers;
  }

  begin(live: Int32Array, limit: Int32Array, led: Int32Array): void {
    this.#brokers.set(live);
    this.#limit = limit;
    this.#led = led;
    this.closedCount = 0;
    this.count = live.length;
  }

  at(i: number): number {
    return this.#brokers[i] ?? NONE;
  }

  closeFull(): void {
    const brokers = this.#brokers;
    const limit = this.#limit;
    const led = this.#led;
    let count = this.count;
    for (let i = 0; i < count;) {
      const b = brokers[i] ?? NONE;
      if ((led[b] ?? 0) < (limit[b] ?? 0)) {
        i++;
        continue;
      }
      if (this.closedCount < this.closed.length) this.closed[this.closedCount++] = b;
      brokers[i] = brokers[--count] ?? NONE;
    }
    this.count = count;
  }
}

const NOBODY = new Int32Array(0);
const NO_TEXT = { tier: '', floor: NONE, target: NONE, before: '', after: '' };

/** The first two tiers of one resource, while its shards are walked. */
class ResourceTiers {
  r = NONE;
  readonly floor: OpenList;
  readonly target: OpenList;
  readonly #view: View;
  readonly #targets: LeaderTargets;
  /** The last text but for the broker's id, and what it was made for: most brokers of a resource share it. */
  #text = NO_TEXT;
  /** Of the last resource; those of one size have the same. */
  #floors: Int32Array = NOBODY;
  #hasFloors = false;

  constructor(view: View, targets: LeaderTargets) {
    this.#view = view;
    this.#targets = targets;
    const { liveList } = view.brokers;
    this.floor = new OpenList(liveList.length, 0);
    this.target = new OpenList(liveList.length, REJECTED_SEEN);
  }

  begin(r: number): void {
    this.r = r;
    this.#text = NO_TEXT;
    const { liveList } = this.#view.brokers;
    const led = this.#view.tally.leadersRow(r);
    const floors = this.#targets.floors(r);
    if (floors !== this.#floors) {
      this.#floors = floors;
      this.#hasFloors = floors.some((n) => n > 0);
    }
    this.floor.begin(this.#hasFloors ? liveList : NOBODY, floors, led);
    this.target.begin(liveList, this.#targets.row(r), led);
  }

  detail(b: number, tier: Tier): string {
    const floor = this.#targets.floor(this.r, b);
    const target = this.#targets.of(this.r, b);
    const last = this.#text;
    if (last.tier !== tier || last.floor !== floor || last.target !== target) {
      const name = this.#view.resourceKeys[this.r] ?? '';
      const numbers = `floor ${floor}, target ${target} of ${this.#view.resourceRow(this.r).shards}`;
      const { before, after } = TIER_TEXT[tier];
      this.#text = { tier, floor, target, before: before(name), after: `${after(name)} (${numbers})` };
    }
    return this.#text.before + this.#view.brokers.id(b) + this.#text.after;
  }
}

type Text = (name: string) => string;

/** What a tier says of a broker: its id stands between the two. */
const TIER_TEXT: Readonly<Record<Tier, { readonly before: Text; readonly after: Text }>> = {
  resource_floor: { before: () => '', after: (name) => ` leads less than its floor of ${name}` },
  resource_target: { before: () => '', after: (name) => ` leads less than its target of ${name}` },
  resource_ceiling: {
    before: () => 'targets are out of reach; ',
    after: (name) => ` leads the fewest by weight of those under their ceiling of ${name}`,
  },
  any_with_room: {
    before: (name) => `the ceilings of ${name} are out of reach; `,
    after: () => ' leads the fewest by weight with room',
  },
};
