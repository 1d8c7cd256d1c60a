import { NONE } from './broker-table.ts';
import { resourceOutside, totalsOutside, zoneFault, type CopyTargets } from './copies/index.ts';
import type { Assignment } from './model.ts';
import type { Pass } from './pass.ts';
import type { Plan } from './plan-types.ts';
import type { ShareBook } from './share-book.ts';
import { isSettledResource, totalsAreSettled } from './targets.ts';
import type { View } from './view.ts';

/**
 * A cluster that wants nothing, followed row by row. That it still wants nothing is seen from the rows that changed, the
 * resources they belong to and the totals, and no pass over all shards is needed: while every shard is served, whole and
 * within its zones, and nothing is in flight, no step of a pass is due (0 to 3), and none is allowed where the objective
 * could not fall any further (4 to 7). Reports say nothing of such a cluster, and no time matters to it.
 */
export class QuietCluster {
  readonly #view: View;
  readonly #book: ShareBook;
  readonly #targets: CopyTargets;
  /** What changed since it was last looked at. */
  readonly #shards = new Set<number>();
  readonly #resources = new Set<number>();

  private constructor({ view, book, copyTargets }: Pass) {
    this.#view = view;
    this.#book = book;
    this.#targets = copyTargets;
  }

  /** Follows the cluster of a pass that has ended in `made`. `null`: it wants something, or cannot be followed. */
  static after(pass: Pass, made: Plan): QuietCluster | null {
    // Where caps bind, the copies' targets depend on who leads: they would have to be found anew.
    if (made.steps.length > 0 || made.nextDeadlineMs !== null || pass.copyTargets.capsBind) return null;
    const quiet = new QuietCluster(pass);
    const { view } = pass;
    for (let s = 0; s < view.shardCount; s++) if (!quiet.#isSound(s)) return null;
    for (let r = 0; r < view.resourceCount; r++) if (!quiet.#isLevel(r)) return null;
    return quiet.#totalsAreLevel() ? quiet : null;
  }

  /** A shard's row as it is now. Throws for one of another resource or broker than the pass knew. */
  write(row: Assignment): void {
    const s = this.#view.renew(row);
    this.#shards.add(s);
    this.#resources.add(this.#view.resource(s));
  }

  /** A pass over the rows as they are would plan what the one followed did. `false`: only a pass can tell. */
  wantsNothing(): boolean {
    for (const s of this.#shards) if (!this.#isSound(s)) return false;
    for (const r of this.#resources) if (!this.#isLevel(r)) return false;
    if (!this.#totalsAreLevel()) return false;
    this.#shards.clear();
    this.#resources.clear();
    return true;
  }

  /** Served, as many copies as wanted, all on live brokers and within their zones, and no move in flight. */
  #isSound(s: number): boolean {
    const view = this.#view;
    if (view.leader[s] === NONE || view.move(s) !== null || !view.leaderServes(s)) return false;
    const copies = view.copies(s);
    const r = view.resource(s);
    if (copies.length !== view.resourceRow(r).replicationFactor) return false;
    for (const b of copies) if (view.brokers.live[b] === 0) return false;
    return zoneFault(view, this.#targets, r, copies) === 0;
  }

  #isLevel(r: number): boolean {
    if ((this.#view.tally.shards[r] ?? 0) === 0) return true;
    return (
      isSettledResource(this.#view, this.#book, r) && resourceOutside(this.#view, this.#targets, r) === 0
    );
  }

  #totalsAreLevel(): boolean {
    return totalsAreSettled(this.#view, this.#book) && totalsOutside(this.#view, this.#targets) === 0;
  }
}
