import { NONE } from '../broker-table.ts';
import type { View } from '../view.ts';
import { compareAbove, compareTotals, zoneFault } from './measure.ts';
import type { CopyTargets } from './targets.ts';
import { zonesAfter } from './zones.ts';

/**
 * Which copy goes when the shard's set, with `newLeader`, is over its factor; NONE when it is not. Never the new
 * leader; by class first, then what leaves the least over zone limits, the most zones, whose broker is the most
 * above `t_b`, then above its total share, then not the old leader, then the lowest score.
 */
export function copyThatGoes(
  view: View,
  targets: CopyTargets,
  shard: number,
  newLeader: number,
  oldLeader: number,
): number {
  const copies = view.copies(shard);
  const set = copies.includes(newLeader) ? copies : [...copies, newLeader];
  if (set.length <= view.resourceRow(view.resource(shard)).replicationFactor) return NONE;
  return firstToGo(view, targets, shard, { set, keep: newLeader, oldLeader });
}

/** Which copy of a set over its factor goes, with no move in flight; never the leader. */
export function surplusCopy(view: View, targets: CopyTargets, shard: number): number {
  const keep = view.leader[shard] ?? NONE;
  return firstToGo(view, targets, shard, { set: view.copies(shard), keep, oldLeader: NONE });
}

interface Choice {
  readonly set: readonly number[];
  readonly keep: number;
  readonly oldLeader: number;
}

function firstToGo(view: View, targets: CopyTargets, shard: number, choice: Choice): number {
  const r = view.resource(shard);
  const ranking = targets.ranking(shard);
  const { set, keep, oldLeader } = choice;
  const rows = set
    .filter((b) => b !== keep)
    .map((broker) => {
      const rest = set.filter((b) => b !== broker);
      return {
        broker,
        stands: standing(view, shard, broker),
        fault: zoneFault(view, targets, r, rest),
        zones: zonesAfter(view, rest),
        old: broker === oldLeader ? 1 : 0,
      };
    });
  rows.sort(
    (a, b) =>
      a.stands - b.stands ||
      a.fault - b.fault ||
      b.zones - a.zones ||
      compareAbove(view, targets, r, a.broker, b.broker) ||
      compareTotals(view, targets, a.broker, b.broker) ||
      a.old - b.old ||
      ranking.compare(b.broker, a.broker),
  );
  return rows[0]?.broker ?? NONE;
}

/** The class of a copy: those of the lowest go first. */
function standing(view: View, shard: number, b: number): number {
  if (view.brokers.serving[b] === 0) return 0;
  if (view.brokers.live[b] === 0) return 1;
  return view.isInSync(shard, b) ? 3 : 2;
}
