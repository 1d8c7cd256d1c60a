import { NONE } from './broker-table.ts';
import { zonesAfter } from './copies/index.ts';
import type { Levels } from './plan-types.ts';
import type { View } from './view.ts';

/** Who leads and holds how much as the snapshot stands; spreads are between live brokers. */
export function levelsOf(view: View): Levels {
  const { brokers } = view;
  const leaders: Record<string, Record<string, number>> = {};
  const total = new Int32Array(brokers.count);
  const held = new Int32Array(brokers.count);
  let leaderSpread = 0;
  let copySpread = 0;
  let zones = Infinity;
  for (let r = 0; r < view.resourceCount; r++) {
    const led = new Int32Array(brokers.count);
    const copies = new Int32Array(brokers.count);
    for (let s = view.firstShard[r] ?? 0; s < (view.firstShard[r + 1] ?? 0); s++) {
      const row = view.rows[s];
      if (row === undefined) continue;
      const leader = brokers.find(row.leader);
      if (leader !== NONE) led[leader] = (led[leader] ?? 0) + 1;
      const set = row.replicas.map((id) => brokers.indexOf(id));
      for (const b of set) copies[b] = (copies[b] ?? 0) + 1;
      zones = Math.min(zones, zonesAfter(view, set));
    }
    leaders[view.resourceKeys[r] ?? ''] = record(view, led);
    leaderSpread = Math.max(leaderSpread, spread(view, led));
    copySpread = Math.max(copySpread, spread(view, copies));
    for (let b = 0; b < brokers.count; b++) {
      total[b] = (total[b] ?? 0) + (led[b] ?? 0);
      held[b] = (held[b] ?? 0) + (copies[b] ?? 0);
    }
  }
  return {
    leaders,
    leadersTotal: record(view, total),
    copiesTotal: record(view, held),
    maxLeaderSpreadPerResource: leaderSpread,
    leaderSpreadTotal: spread(view, total),
    copySpreadTotal: spread(view, held),
    maxCopySpreadPerResource: copySpread,
    minZonesPerShard: zones === Infinity ? 0 : zones,
  };
}

function record(view: View, counts: Int32Array): Record<string, number> {
  return Object.fromEntries(view.brokers.ids.map((id, b) => [id, counts[b] ?? 0]));
}

function spread(view: View, counts: Int32Array): number {
  let most = -Infinity;
  let least = Infinity;
  for (const b of view.brokers.liveList) {
    most = Math.max(most, counts[b] ?? 0);
    least = Math.min(least, counts[b] ?? 0);
  }
  return most === -Infinity ? 0 : most - least;
}
