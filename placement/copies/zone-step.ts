import { isBarred, timesFailed } from '../failures.ts';
import { reverses } from '../moved.ts';
import type { View } from '../view.ts';
import { allLive, moveChange, replaced, zoneChange, zoneFault } from './measure.ts';
import { rejectedFor, type FollowerMove, type MoveCheck } from './step.ts';
import type { CopyTargets } from './targets.ts';
import { copiesIn, zonesAfter } from './zones.ts';

interface Found {
  readonly shard: number;
  readonly from: number;
  readonly to: number;
  /** Failed moves, those of them to that broker, zone fault after less before, copies, zones lost, totals; smaller first. */
  readonly key: readonly number[];
  readonly second: number | null;
}

/**
 * Step 6: a follower that is over its zone's limit, or stands where a zone is missing under `zone`, is replaced.
 * `null`: no shard is wrong, none can be put right, or the slots are in the way.
 */
export function zoneStep(view: View, targets: CopyTargets, ok: MoveCheck): FollowerMove | null {
  let best: Found | null = null;
  if (targets.faults.zones === 0) return null;
  for (let s = 0; s < view.shardCount; s++) {
    if (!view.mayStart(s, 'follower') || !allLive(view, view.finished(s))) continue;
    const r = view.resource(s);
    const failed = view.rows[s]?.failedMoves ?? 0;
    if (best !== null && failed >= (best.key[0] ?? 0)) continue;
    if (zoneFault(view, targets, r, view.finished(s)) === 0) continue;
    best = repair(view, targets, s, ok) ?? best;
    if (best?.key[0] === 0) break;
  }
  if (best === null) return null;
  const { shard, from, to } = best;
  const set = view.finished(shard);
  const zoneName = (b: number): string => view.brokers.zoneNames[view.brokers.zone[b] ?? 0] ?? '';
  const zones = zonesAfter(view, set);
  const held = copiesIn(view, set, view.brokers.zone[from] ?? 0);
  const limit = targets.limit(view.resource(shard), view.brokers.zone[from] ?? 0);
  const over =
    held > limit ? `zone ${zoneName(from)} holds ${held} copies of it, its limit is ${limit}; ` : '';
  const into =
    copiesIn(view, set, view.brokers.zone[to] ?? 0) === 0 ? `zone ${zoneName(to)} holds none; ` : '';
  const zonesThen = zonesAfter(view, replaced(set, from, to));
  return {
    shard,
    from,
    to,
    reason: 'zone',
    rule: zonesThen > zones ? 'zone_missing' : 'zone_limit',
    detail: `${over}${into}the shard spans ${zonesThen} zones instead of ${zones}`,
    rejected: rejectedFor(view, targets, best),
    runnerUp: best.second === null ? null : view.brokers.id(best.second),
  };
}

/** The best follower move that lowers one shard's zone fault. */
function repair(view: View, targets: CopyTargets, s: number, ok: MoveCheck): Found | null {
  const r = view.resource(s);
  const set = view.finished(s);
  const ranking = targets.ranking(s);
  const failed = view.rows[s]?.failedMoves ?? 0;
  let best: Found | null = null;
  for (const from of set) {
    if (from === view.nextLeader(s)) continue;
    for (const to of view.brokers.liveList) {
      if (view.holds(s, to) || set.includes(to) || view.room(to) <= 0) continue;
      if (isBarred(view, s, to) || reverses(view, s, from, to) || !ok(from, to, s)) continue;
      const { fault, zones } = zoneChange(view, targets, { r, copies: set, from, to });
      if (fault >= 0) continue;
      const gain = moveChange(view, targets, { r, from, to });
      const key = [failed, timesFailed(view, s, to), fault, gain.copies, -zones, gain.totals];
      if (
        best === null ||
        before(key, best.key) ||
        (same(key, best.key) && ranking.compare(to, best.to) < 0)
      ) {
        best = { shard: s, from, to, key, second: best === null || best.to === to ? null : best.to };
      }
    }
  }
  return best;
}

function before(a: readonly number[], b: readonly number[]): boolean {
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return (a[i] ?? 0) < (b[i] ?? 0);
  return false;
}

function same(a: readonly number[], b: readonly number[]): boolean {
  return a.every((n, i) => n === b[i]);
}
