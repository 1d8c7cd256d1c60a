import { NONE } from '../broker-table.ts';
import type { Field } from './field.ts';

/**
 * A resource's copies shared over the live brokers by weight (water-filling): broker `b` gets
 * `min(limit_b, w_b · level)`, where the level is one for all zones that keep within their bounds, and a zone's
 * own where it is held at a bound. Levels are exact fractions `num/den`; `den = 0` stands for "all at their limit".
 */
export class Share {
  readonly field: Field;
  /** One copy a shard: no broker holds more. */
  readonly shards: number;
  /** Copies that are shared: `shards · factor`, or what room there is. */
  readonly total: number;
  readonly #room: Int32Array | null;
  readonly #num: number;
  readonly #den: number;
  readonly #held: ReadonlyMap<number, Level>;
  /** Parts follow from weights alone. */
  readonly #plain: boolean;
  readonly #zones: (ZonePart | undefined)[];
  #floors: Int32Array | undefined;
  #ceilings: Int32Array | undefined;
  #weight = NONE;
  #floor = 0;
  #remainder = 0;

  constructor(field: Field, shards: number, bounds: Bounds, solved: Solved) {
    this.field = field;
    this.shards = shards;
    this.total = bounds.total;
    this.#room = bounds.room;
    this.#num = solved.common.num;
    this.#den = solved.common.den;
    this.#held = solved.held;
    this.#plain = bounds.room === null && solved.held.size === 0;
    this.#zones = new Array<ZonePart | undefined>(field.zoneCount).fill(undefined);
  }

  /** Most copies of this resource that the broker can hold. */
  limit(b: number): number {
    return limitOf(this.field, this.shards, this.#room, b);
  }

  /** By broker, live ones only: parts rounded down, and up. Read, never write. */
  get floors(): Int32Array {
    return (this.#floors ??= this.#rounded((b) => this.floor(b)));
  }

  get ceilings(): Int32Array {
    return (this.#ceilings ??= this.#rounded((b) => this.ceiling(b)));
  }

  #rounded(part: (b: number) => number): Int32Array {
    const parts = new Int32Array(this.field.brokers.count);
    for (const b of this.field.members) parts[b] = part(b);
    return parts;
  }

  floor(b: number): number {
    this.#work(b);
    return this.#floor;
  }

  ceiling(b: number): number {
    this.#work(b);
    return this.#remainder === 0 ? this.#floor : this.#floor + 1;
  }

  /** `t_b - floor` is `remainder / denominator`. */
  remainder(b: number): number {
    this.#work(b);
    return this.#remainder;
  }

  /** Works out a broker's part, unless it is that of the last one asked for: most brokers weigh the same. */
  #work(b: number): void {
    const weight = this.field.brokers.weight[b] ?? 0;
    if (this.#plain && weight === this.#weight) return;
    const limit = this.limit(b);
    const { num, den } = this.#level(b);
    const scaled = weight * num;
    const full = scaled >= limit * den;
    this.#floor = full ? limit : Math.floor(scaled / den);
    this.#remainder = full ? 0 : scaled % den;
    this.#weight = weight;
  }

  denominator(b: number): number {
    return Math.max(1, this.#level(b).den);
  }

  /** The zone's part, rounded down, and what is left over as a fraction. */
  zone(z: number): ZonePart {
    return (this.#zones[z] ??= this.#zone(z));
  }

  #zone(z: number): ZonePart {
    let whole = 0;
    let rest = 0;
    let den = 1;
    for (let i = this.field.start[z] ?? 0; i < (this.field.start[z + 1] ?? 0); i++) {
      const b = this.field.members[i] ?? 0;
      whole += this.floor(b);
      rest += this.remainder(b);
      den = this.denominator(b);
    }
    const ones = Math.floor(rest / den);
    return { floor: whole + ones, ones, remainder: rest % den, den };
  }

  zoneCeiling(z: number): number {
    const part = this.zone(z);
    return part.remainder === 0 ? part.floor : part.floor + 1;
  }

  #level(b: number): Level {
    const own = this.#held.size === 0 ? undefined : this.#held.get(this.field.brokers.zone[b] ?? NONE);
    return own ?? { num: this.#num, den: this.#den };
  }
}

interface ZonePart {
  readonly floor: number;
  /** Of the floor: what the brokers' own floors leave over. */
  readonly ones: number;
  readonly remainder: number;
  readonly den: number;
}

interface Level {
  readonly num: number;
  readonly den: number;
}

/** What a share is solved for. `room` is by place in `field.capped`; `null`: no cap binds. */
export interface Bounds {
  readonly total: number;
  readonly room: Int32Array | null;
  /** By zone: fewest and most copies. `null`: no zone is bounded. */
  readonly least: Float64Array | null;
  readonly most: Float64Array | null;
}

interface Solved {
  readonly common: Level;
  readonly held: ReadonlyMap<number, Level>;
}

const FREE = 0;
const LOW = 1;
const HIGH = 2;
const NOTHING_HELD: ReadonlyMap<number, Level> = new Map();

/** Shares `bounds.total` copies. The bounds must be feasible: the sums of `least` and `most` enclose the total. */
export function share(field: Field, shards: number, bounds: Bounds): Share {
  return new Share(field, shards, bounds, solve(field, shards, bounds));
}

function limitOf(field: Field, shards: number, room: Int32Array | null, b: number): number {
  if (room === null) return shards;
  const i = field.cappedIndex[b] ?? NONE;
  return i === NONE ? shards : Math.min(shards, room[i] ?? 0);
}

/**
 * The level at which the parts sum to the total. Each round takes the level that would do if nothing more were
 * held at a bound, and looks at what it breaks. If more is cut off than raised the true level is higher, so what
 * is cut off now stays cut off; else it is lower, and what is raised stays raised. Every round settles a bound.
 */
function solve(field: Field, shards: number, bounds: Bounds): Solved {
  const { weight, liveList, liveWeight } = field.brokers;
  const simple = { num: bounds.total, den: liveWeight };
  if (bounds.room === null && bounds.most === null && bounds.least === null) {
    let fits = true;
    for (const b of liveList) if ((weight[b] ?? 0) * simple.num > shards * simple.den) fits = false;
    if (fits) return { common: simple, held: NOTHING_HELD };
  }
  const work = new Work(field, shards, bounds);
  for (;;) {
    const level = work.level();
    if (level.den === 0) return work.solved(level);
    const off = work.off(level);
    if (off.cut === 0 && off.raised === 0) return work.solved(level);
    if (off.cut >= off.raised) work.holdCut(level);
    else work.holdRaised(level);
  }
}

/** What `solve` has settled so far. */
class Work {
  readonly #field: Field;
  readonly #shards: number;
  readonly #bounds: Bounds;
  readonly #state: Uint8Array;
  readonly #full: Uint8Array;

  constructor(field: Field, shards: number, bounds: Bounds) {
    this.#field = field;
    this.#shards = shards;
    this.#bounds = bounds;
    this.#state = new Uint8Array(field.zoneCount);
    this.#full = new Uint8Array(field.brokers.count);
  }

  level(): Level {
    let fixed = 0;
    let weight = 0;
    for (const z of this.#field.zones) {
      if (this.#state[z] === LOW) fixed += this.#bounds.least?.[z] ?? 0;
      else if (this.#state[z] === HIGH) fixed += this.#bounds.most?.[z] ?? 0;
      else {
        const sums = this.#sums(z);
        fixed += sums.full;
        weight += sums.weight;
      }
    }
    return weight === 0 ? { num: 1, den: 0 } : { num: Math.max(0, this.#bounds.total - fixed), den: weight };
  }

  /** How much (times `den`) the bounds cut off and raise at a level. */
  off(level: Level): { cut: number; raised: number } {
    let cut = 0;
    let raised = 0;
    for (const z of this.#field.zones) {
      if (this.#state[z] !== FREE) continue;
      const part = this.#part(z, level);
      const bounded = this.#bounded(z, part.kept, level);
      cut += part.cut + Math.max(0, part.kept - bounded);
      raised += Math.max(0, bounded - part.kept);
    }
    return { cut, raised };
  }

  holdCut(level: Level): void {
    for (const z of this.#field.zones) {
      if (this.#state[z] !== FREE) continue;
      const kept = this.#part(z, level).kept;
      if (this.#bounds.most !== null && kept > (this.#bounds.most[z] ?? 0) * level.den) this.#state[z] = HIGH;
      else this.#fill(z, level);
    }
  }

  holdRaised(level: Level): void {
    for (const z of this.#field.zones) {
      if (this.#state[z] !== FREE || this.#bounds.least === null) continue;
      if (this.#part(z, level).kept < (this.#bounds.least[z] ?? 0) * level.den) this.#state[z] = LOW;
    }
  }

  solved(common: Level): Solved {
    let held: Map<number, Level> | undefined;
    for (const z of this.#field.zones) {
      if (this.#state[z] === FREE) continue;
      held ??= new Map();
      const total = (this.#state[z] === LOW ? this.#bounds.least : this.#bounds.most)?.[z] ?? 0;
      held.set(z, this.#within(z, total));
    }
    return { common, held: held ?? NOTHING_HELD };
  }

  /** The level inside one zone whose total is known. */
  #within(z: number, total: number): Level {
    const { members, start } = this.#field;
    for (let i = start[z] ?? 0; i < (start[z + 1] ?? 0); i++) this.#full[members[i] ?? 0] = 0;
    for (;;) {
      const sums = this.#sums(z);
      if (sums.weight === 0) return { num: 1, den: 0 };
      const level = { num: Math.max(0, total - sums.full), den: sums.weight };
      if (this.#part(z, level).cut === 0) return level;
      this.#fill(z, level);
    }
  }

  /** Copies on the brokers of a zone that are full, and the weight of the others. */
  #sums(z: number): { full: number; weight: number } {
    const { members, start, brokers } = this.#field;
    let full = 0;
    let weight = 0;
    for (let i = start[z] ?? 0; i < (start[z + 1] ?? 0); i++) {
      const b = members[i] ?? 0;
      if (this.#full[b] === 1) full += limitOf(this.#field, this.#shards, this.#bounds.room, b);
      else weight += brokers.weight[b] ?? 0;
    }
    return { full, weight };
  }

  /** What a zone's brokers hold at a level, and what their own limits cut off; both times `den`. */
  #part(z: number, level: Level): { kept: number; cut: number } {
    const { members, start, brokers } = this.#field;
    let kept = 0;
    let cut = 0;
    for (let i = start[z] ?? 0; i < (start[z + 1] ?? 0); i++) {
      const b = members[i] ?? 0;
      const most = limitOf(this.#field, this.#shards, this.#bounds.room, b) * level.den;
      const wanted = (brokers.weight[b] ?? 0) * level.num;
      kept += this.#full[b] === 1 ? most : Math.min(most, wanted);
      if (this.#full[b] === 0 && wanted > most) cut += wanted - most;
    }
    return { kept, cut };
  }

  #bounded(z: number, kept: number, level: Level): number {
    const most = this.#bounds.most === null ? kept : Math.min(kept, (this.#bounds.most[z] ?? 0) * level.den);
    return this.#bounds.least === null ? most : Math.max(most, (this.#bounds.least[z] ?? 0) * level.den);
  }

  #fill(z: number, level: Level): void {
    const { members, start, brokers } = this.#field;
    for (let i = start[z] ?? 0; i < (start[z + 1] ?? 0); i++) {
      const b = members[i] ?? 0;
      const most = limitOf(this.#field, this.#shards, this.#bounds.room, b) * level.den;
      if ((brokers.weight[b] ?? 0) * level.num > most) this.#full[b] = 1;
    }
  }
}
