import type { View } from '../view.ts';
import { BarrenResources } from './barren.ts';
import { Layout, mayNarrow, shortestPath, type Path, type SpanMode } from './chain.ts';
import { outside, zoneFault } from './measure.ts';
import type { CopyTargets } from './targets.ts';

/** Not looked for yet. */
type Known<T> = T | undefined;

/**
 * What is wrong with the copies, resource by resource: counted once, and again only for resources whose shards have
 * changed since. Moves in flight count as finished.
 */
export class CopyFaults {
  readonly #view: View;
  readonly #targets: CopyTargets;
  /** By resource: the version of its tally that the rest was counted at. */
  readonly #version: Int32Array;
  /** By resource: squared copies outside floor…ceiling of `t_b`. */
  readonly #outside: Float64Array;
  /** By resource: copies over zone limits, and zones missing under `zone`. */
  readonly #zones: Int32Array;
  /** By resource: its shortest path. */
  readonly #kept: Known<Path | null>[];
  readonly #narrowed: Known<Path | null>[];
  /** By resource: whether a copy could go from above a quota to below one. */
  readonly #offQuotas: Known<boolean>[];
  readonly #barren = new Map<string, BarrenResources>();
  #changes = -1;
  #outsideSum = 0;
  #zonesSum = 0;

  constructor(targets: CopyTargets) {
    const { view } = targets;
    const { resourceCount } = view;
    this.#view = view;
    this.#targets = targets;
    this.#version = new Int32Array(resourceCount).fill(-1);
    this.#outside = new Float64Array(resourceCount);
    this.#zones = new Int32Array(resourceCount);
    this.#kept = new Array<Known<Path | null>>(resourceCount).fill(undefined);
    this.#narrowed = new Array<Known<Path | null>>(resourceCount).fill(undefined);
    this.#offQuotas = new Array<Known<boolean>>(resourceCount).fill(undefined);
  }

  /** Squared copies outside floor…ceiling, over all resources. */
  get outside(): number {
    this.#catchUp();
    return this.#outsideSum;
  }

  /** Copies over zone limits, and zones missing, over all shards that count. */
  get zones(): number {
    this.#catchUp();
    return this.#zonesSum;
  }

  /** Resources with a broker outside floor…ceiling, rising. */
  uneven(): number[] {
    this.#catchUp();
    const found: number[] = [];
    if (this.#outsideSum === 0) return found;
    for (let r = 0; r < this.#outside.length; r++) if ((this.#outside[r] ?? 0) > 0) found.push(r);
    return found;
  }

  /** For the totals' sake: by where they may end and between whom they go. */
  barren(bound: string, tier: string): BarrenResources {
    this.#catchUp();
    const key = `${bound}/${tier}`;
    let known = this.#barren.get(key);
    if (known === undefined) this.#barren.set(key, (known = new BarrenResources(this.#version.length)));
    return known;
  }

  isUneven(r: number): boolean {
    this.#catchUp();
    return (this.#outside[r] ?? 0) > 0;
  }

  /** The shortest path of an uneven resource; `null`: none. */
  path(r: number, mode: SpanMode): Path | null {
    this.#catchUp();
    const known = mode === 'keep' ? this.#kept : this.#narrowed;
    const path = known[r];
    if (path !== undefined) return path;
    const allowed = mode === 'keep' || mayNarrow(this.#targets, r);
    const found = allowed ? shortestPath(new Layout(this.#view, this.#targets, r), mode) : null;
    // How much room there is changes with moves of any resource.
    if (this.#targets.field.capped.length === 0) known[r] = found;
    return found;
  }

  /** Resources in which a broker holds more than its quota and another less, or that have no quotas; rising. */
  offQuotas(): number[] {
    this.#catchUp();
    const found: number[] = [];
    for (let r = 0; r < this.#offQuotas.length; r++) {
      if ((this.#view.tally.shards[r] ?? 0) === 0) continue;
      if ((this.#offQuotas[r] ??= this.#isOffQuotas(r))) found.push(r);
    }
    return found;
  }

  #isOffQuotas(r: number): boolean {
    const { liveList } = this.#view.brokers;
    const held = this.#view.tally.copiesRow(r);
    const quotas = this.#targets.quotas();
    let above = false;
    let below = false;
    for (let i = 0; i < liveList.length; i++) {
      const b = liveList[i] ?? 0;
      const quota = quotas(r, b);
      if (quota === null) return true;
      if ((held[b] ?? 0) > quota) above = true;
      if ((held[b] ?? 0) < quota) below = true;
    }
    return above && below;
  }

  /** Quotas say where paths may begin and end. */
  quotasChanged(): void {
    this.#offQuotas.fill(undefined);
    for (const barren of this.#barren.values()) barren.forgetAll();
    this.#kept.fill(undefined);
    this.#narrowed.fill(undefined);
  }

  #catchUp(): void {
    const { changes, versions } = this.#view.tally;
    if (changes === this.#changes) return;
    this.#changes = changes;
    for (let r = 0; r < versions.length; r++) {
      const version = versions[r] ?? 0;
      if (version === this.#version[r]) continue;
      this.#version[r] = version;
      this.#count(r);
    }
  }

  #count(r: number): void {
    const copies = resourceOutside(this.#view, this.#targets, r);
    const zones = this.#zoneFaults(r);
    this.#outsideSum += copies - (this.#outside[r] ?? 0);
    this.#zonesSum += zones - (this.#zones[r] ?? 0);
    this.#outside[r] = copies;
    this.#zones[r] = zones;
    this.#kept[r] = this.#narrowed[r] = undefined;
    this.#offQuotas[r] = undefined;
    for (const barren of this.#barren.values()) barren.forget(r);
  }

  #zoneFaults(r: number): number {
    const { rule, limits } = this.#targets.of(r);
    if (limits === null && rule.span === 0) return 0;
    const view = this.#view;
    let sum = 0;
    for (let s = view.firstShard[r] ?? 0; s < (view.firstShard[r + 1] ?? 0); s++) {
      if (view.counts[s] === 1) sum += zoneFault(view, this.#targets, r, view.finished(s));
    }
    return sum;
  }
}

/** Squared copies outside floor…ceiling, of one resource. */
export function resourceOutside(view: View, targets: CopyTargets, r: number): number {
  if ((view.tally.shards[r] ?? 0) === 0) return 0;
  const { floors, ceilings } = targets.of(r).share;
  const { tally } = view;
  const { liveList } = view.brokers;
  let sum = 0;
  for (let i = 0; i < liveList.length; i++) {
    const b = liveList[i] ?? 0;
    const n = tally.copiesOf(r, b);
    const floor = floors[b] ?? 0;
    const ceiling = ceilings[b] ?? 0;
    // Most are within: that is told first.
    if (n < floor || n > ceiling) sum += outside(n, floor, ceiling) ** 2;
  }
  return sum;
}
