import { copyTargets } from '../../../placement/copies/index.ts';
import { Layout } from '../../../placement/copies/chain.ts';
import { moveChange } from '../../../placement/copies/measure.ts';
import type { Phase } from '../../../placement/index.ts';
import { ShareBook } from '../../../placement/share-book.ts';
import { leaderTargets } from '../../../placement/targets.ts';
import { View } from '../../../placement/view.ts';
import { NO_REPORTS, snapshot } from './rows.ts';

/**
 * Every follower to every broker: none is left whose move would bring the totals closer and unlevel no resource. The parts of
 * a cap count who is to lead, as the planner's do (placement/copies/README.md).
 */
export function judgeTotals(phase: Phase): void {
  const { version: _version, ...rows } = phase.cluster;
  const view = new View(snapshot({ ...rows, nowMs: phase.virtualMs }), NO_REPORTS);
  const leaders = leaderTargets(view, new ShareBook(view), new Int32Array(view.resourceCount));
  const targets = copyTargets(view, (r, b) => leaders.of(r, b));
  for (let r = 0; r < view.resourceCount; r++) {
    if (view.tally.shards[r] === 0) continue;
    const layout = new Layout(view, targets, r);
    for (let s = view.firstShard[r] ?? 0; s < (view.firstShard[r + 1] ?? 0); s++) {
      if (view.counts[s] === 0) continue;
      for (const from of view.copies(s).filter((b) => b !== view.leader[s])) {
        for (const to of view.brokers.liveList) {
          if (from === to || !layout.allows(s, from, to, 'keep')) continue;
          const { copies, totals } = moveChange(view, targets, { r, from, to });
          if (copies > 0 || totals >= 0) continue;
          const id = (b: number): string => view.brokers.id(b);
          throw new Error(`${view.shardKey(s)}'s copy on ${id(from)} would even the totals on ${id(to)}`);
        }
      }
    }
  }
}
