import { NONE } from '../broker-table.ts';
import type { Ranking } from '../hash.ts';
import type { ZonePolicy } from '../model.ts';
import { ShardRankings } from '../shard-rankings.ts';
import type { View } from '../view.ts';
import { splitCaps, type CapParts, type LeadersDue } from './caps.ts';
import { CopyFaults } from './faults.ts';
import { Field } from './field.ts';
import { chooseQuotas, type CopyQuotas } from './quota-choice.ts';
import { share, type Share } from './share.ts';
import { zoneRule, type ZoneRule } from './zone-limit.ts';

/** Where one resource's copies should be. */
export interface ResourceTarget {
  readonly rule: ZoneRule;
  /** `t_b`, by broker, before rounding. */
  readonly share: Share;
  /** `rule.most`, raised where the brokers' room makes it unreachable. */
  readonly most: number;
  /** By zone: most copies of one shard, `ceil(T_z / s)` within the rule. `null`: no zone holds two brokers. */
  readonly limits: Int32Array | null;
}

/** Shards that a pass looks at for the totals' sake before it starts no more moves of copies: a second's work, or two. */
const LOOKS_PER_SHARD = 10;
const LEAST_LOOKS = 500_000;

/** Everything the copies' half of a pass aims at. Built once a pass, a resource's part when it is first asked for. */
export class CopyTargets {
  readonly view: View;
  readonly field: Field;
  /** Shards that were looked at for the totals' sake. */
  looked = 0;
  #mayLook = Infinity;
  readonly #rankings: ShardRankings;
  readonly #rules = new Map<ZonePolicy, Map<number, ZoneRule>>();
  readonly #targets: (ResourceTarget | undefined)[];
  readonly #bySize = new Map<ZoneRule, Map<number, ResourceTarget>>();
  #caps: CapParts | undefined;
  #totals: Totals | undefined;
  #quotas: CopyQuotas | undefined;
  #faults: CopyFaults | undefined;

  readonly #toLead: LeadersDue;

  constructor(view: View, toLead: LeadersDue) {
    this.view = view;
    this.#toLead = toLead;
    this.field = new Field(view.brokers);
    this.#rankings = new ShardRankings(view);
    this.#targets = new Array<ResourceTarget | undefined>(view.resourceCount).fill(undefined);
  }

  of(r: number): ResourceTarget {
    return (this.#targets[r] ??= this.#build(r));
  }

  /** From here on so much may be looked at, and no more. */
  beginLooking(): void {
    this.#mayLook = this.looked + Math.max(LEAST_LOOKS, LOOKS_PER_SHARD * this.view.shardCount);
  }

  /** So much was looked at that the pass should come to its end. */
  get isWeary(): boolean {
    return this.looked > this.#mayLook;
  }

  /** Resources with shards that count, rising. */
  *placed(): Iterable<number> {
    const { shards } = this.view.tally;
    for (let r = 0; r < shards.length; r++) if ((shards[r] ?? 0) > 0) yield r;
  }

  /** The order of brokers for a shard, where nothing else decides. */
  ranking(shard: number): Ranking {
    return this.#rankings.of(shard);
  }

  rule(r: number): ZoneRule {
    const factor = this.view.factor(r);
    const policy = this.view.zonePolicy(r);
    let byFactor = this.#rules.get(policy);
    if (byFactor === undefined) this.#rules.set(policy, (byFactor = new Map<number, ZoneRule>()));
    let rule = byFactor.get(factor);
    if (rule === undefined) byFactor.set(factor, (rule = zoneRule(this.field, policy, factor)));
    return rule;
  }

  /** Most copies of one shard of the resource in a zone. */
  limit(r: number, zone: number): number {
    const limits = this.of(r).limits;
    return limits === null ? 1 : (limits[zone] ?? 1);
  }

  floor(r: number, b: number): number {
    return this.of(r).share.floor(b);
  }

  ceiling(r: number, b: number): number {
    return this.of(r).share.ceiling(b);
  }

  /** What the broker's copies in total should be: the sum of its `t_b`, rounded down and up. */
  totals(): Totals {
    return (this.#totals ??= sumOfTargets(this));
  }

  /** Whole copies by resource and broker. */
  quotas(): CopyQuotas {
    return (this.#quotas ??= chooseQuotas(this));
  }

  /** The same aims over another view of the cluster. */
  over(view: View): CopyTargets {
    return new CopyTargets(view, this.#toLead);
  }

  /** Chooses quotas anew from the copies as they are now, as the next pass would. */
  renewQuotas(): void {
    this.#quotas = undefined;
    this.#faults?.quotasChanged();
  }

  /** How far the view is from these aims. */
  get faults(): CopyFaults {
    return (this.#faults ??= new CopyFaults(this));
  }

  /** Some broker's cap holds less than its part: who leads what then has a say in the targets. */
  get capsBind(): boolean {
    if (this.field.capped.length === 0) return false;
    if (this.view.resourceCount > 0) this.of(0);
    return this.#caps !== undefined && this.#caps !== null;
  }

  #build(r: number): ResourceTarget {
    const build = (x: number, room: Int32Array | null): ResourceTarget =>
      room === null
        ? this.#uncapped(x)
        : shareByRule(this.field, this.rule(x), this.view.tally.shards[x] ?? 0, room);
    if (this.field.capped.length === 0) return build(r, null);
    if (this.#caps === undefined)
      this.#caps = splitCaps(this.view, this.field, { toLead: this.#toLead, build });
    return build(r, this.#caps?.[r] ?? null);
  }

  /** Where no cap binds, resources of one rule and size have the same target. */
  #uncapped(r: number): ResourceTarget {
    const rule = this.rule(r);
    const shards = this.view.tally.shards[r] ?? 0;
    let bySize = this.#bySize.get(rule);
    if (bySize === undefined) this.#bySize.set(rule, (bySize = new Map<number, ResourceTarget>()));
    let target = bySize.get(shards);
    if (target === undefined) bySize.set(shards, (target = shareByRule(this.field, rule, shards, null)));
    return target;
  }
}

/** A rule's shares for `shards` shards; what room makes unreachable gives way. */
export function shareByRule(
  field: Field,
  rule: ZoneRule,
  shards: number,
  room: Int32Array | null,
): ResourceTarget {
  const space = new Float64Array(field.zoneCount);
  let sum = 0;
  for (const z of field.zones) {
    for (let i = field.start[z] ?? 0; i < (field.start[z + 1] ?? 0); i++) {
      const place = field.cappedIndex[field.members[i] ?? 0] ?? NONE;
      const limit = room === null || place === NONE ? shards : Math.min(shards, room[place] ?? 0);
      space[z] = (space[z] ?? 0) + limit;
    }
    sum += space[z] ?? 0;
  }
  const total = Math.min(shards * rule.factor, sum);
  let most = rule.most;
  while (most < rule.factor && reach(field, space, most * shards) < total) most++;
  const bounded = field.shared.length > 0 && most < rule.factor;
  const upper = bounded ? space.map((places) => Math.min(places, most * shards)) : null;
  const lower = rule.least === 0 ? null : space.map((places) => Math.min(places, rule.least * shards));
  const parts = share(field, shards, { total, room, least: lower, most: upper });
  return { rule, share: parts, most, limits: limitsOf(field, rule, shards, parts) };
}

function reach(field: Field, space: Float64Array, bound: number): number {
  let sum = 0;
  for (const z of field.zones) sum += Math.min(space[z] ?? 0, bound);
  return sum;
}

function limitsOf(field: Field, rule: ZoneRule, shards: number, parts: Share): Int32Array | null {
  if (field.shared.length === 0) return null;
  const limits = new Int32Array(field.zoneCount).fill(1);
  if (shards === 0) return limits.fill(rule.most);
  for (const z of field.shared) {
    limits[z] = Math.max(1, Math.min(rule.most, Math.ceil(parts.zoneCeiling(z) / shards)));
  }
  return limits;
}

/** By broker, live ones only. */
export interface Totals {
  /** Before rounding; a multiple of 2^-30. */
  readonly exact: Float64Array;
  readonly floor: Float64Array;
  readonly ceiling: Float64Array;
}

/** Fractions are summed in units of 2^-30; a sum that is whole but for that rounding counts as whole. */
const UNIT = 2 ** 30;

function sumOfTargets(targets: CopyTargets): Totals {
  const { view, field } = targets;
  const whole = new Float64Array(view.brokers.count);
  const part = new Float64Array(view.brokers.count);
  // Resources of one rule and size share their target: it is worked out once for all of them.
  const times = new Map<ResourceTarget, number>();
  for (let r = 0; r < view.resourceCount; r++) {
    if ((view.tally.shards[r] ?? 0) === 0) continue;
    const target = targets.of(r);
    times.set(target, (times.get(target) ?? 0) + 1);
  }
  for (const [{ share: parts }, n] of times) {
    for (const b of field.members) {
      const rest = parts.remainder(b);
      whole[b] = (whole[b] ?? 0) + n * parts.floor(b);
      if (rest > 0) part[b] = (part[b] ?? 0) + n * Math.floor((rest * UNIT) / parts.denominator(b));
    }
  }
  const slack = view.resourceCount;
  const floor = whole.map((n, b) => n + Math.floor(((part[b] ?? 0) + slack) / UNIT));
  const ceiling = whole.map((n, b) => n + Math.ceil(Math.max(0, (part[b] ?? 0) - slack) / UNIT));
  // A whole number of copies, seen from both sides of the rounding.
  const exact = whole.map((n, b) => n + (part[b] ?? 0) / UNIT);
  return { exact, floor, ceiling: ceiling.map((n, b) => Math.max(n, floor[b] ?? 0)) };
}
