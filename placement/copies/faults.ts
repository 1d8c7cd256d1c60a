import type { View } from '../view.ts';
import { BarrenResources } from './barren.ts';
import { Layout, mayNarrow, shortestPath, type Path, type SpanMode } from './chain.ts';
import { Counted } from './counted.ts';
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
  /** By resource: squared copies outside floor…ceiling of `t_b`. */
  readonly #outside: Counted;
  /** By resource: copies over zone limits, and zones missing under `zone`. */
  readonly #zones: Counted;
  /** By resource: its shortest path. */
  readonly #kept: Known<Path | null>[];
  readonly #narrowed: Known<Path | null>[];
  /** By resource: whether a copy could go from above a quota to below one. */
  readonly #offQuotas: Known<boolean>[];
  readonly #barren = new Map<string, BarrenResources>();

  constructor(targets: CopyTargets) {
    const { view } = targets;
    const { resourceCount } = view;
    this.#view = view;
    this.#targets = targets;
    this.#outside = new Counted(view, (r) => {
      this.#forget(r);
      return resourceOutside(view, targets, r);
    });
    this.#zones = new Counted(view, (r) => this.#zoneFaults(r));
    this.#kept = new Array<Known<Path | null>>(resourceCount).fill(undefined);
    this.#narrowed = new Array<Known<Path | null>>(resourceCount).fill(undefined);
    this.#offQuotas = new Array<Known<boolean>>(resourceCount).fill(undefined);
  }

  /** Squared copies outside floor…ceiling, over all resources. */
  get outside(): number {
    return this.#outside.sum;
  }

  /** Copies over zone limits, and zones missing, over all shards that count. */
  get zones(): number {
    return this.#zones.sum;
  }

  /** Resources with a broker outside floor…ceiling, rising. */
  uneven(): number[] {
    const found: number[] = [];
    if (this.#outside.sum === 0) return found;
    for (let r = 0; r < this.#view.resourceCount; r++) if (this.#outside.of(r) > 0) found.push(r);
    return found;
  }

  /** For the totals' sake: by where they may end and between whom they go. */
  barren(bound: string, tier: string): BarrenResources {
    this.#outside.catchUp();
    const key = `${bound}/${tier}`;
    let known = this.#barren.get(key);
    if (known === undefined) this.#barren.set(key, (known = new BarrenResources(this.#view.resourceCount)));
    return known;
  }

  isUneven(r: number): boolean {
    return this.#outside.of(r) > 0;
  }

  /** The shortest path of an uneven resource; `null`: none. */
  path(r: number, mode: SpanMode): Path | null {
    this.#outside.catchUp();
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
    this.#outside.catchUp();
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

  /** The resource has changed: what was found of it holds no more. */
  #forget(r: number): void {
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
