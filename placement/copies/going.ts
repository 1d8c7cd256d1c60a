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
  return inOrderToGo(view, targets, shard, { set, keep: newLeader, oldLeader })[0]?.broker ?? NONE;
}

/** Which copy of a set over its factor goes, with no move in flight; never the leader. */
export interface Goes {
  readonly broker: number;
  /** What sets it apart from the one that would go next. */
  readonly because: string;
  /** NONE: there is no other. */
  readonly next: number;
}

export function surplusCopy(view: View, targets: CopyTargets, shard: number): Goes {
  const keep = view.leader[shard] ?? NONE;
  const set = view.copies(shard);
  const [first, second] = inOrderToGo(view, targets, shard, { set, keep, oldLeader: NONE });
  if (first === undefined) throw new Error(`${view.shardKey(shard)} has no copy but its leader's`);
  if (second === undefined) return { broker: first.broker, because: 'no other may', next: NONE };
  return { broker: first.broker, because: apart(view, targets, shard, first, second), next: second.broker };
}

interface Choice {
  readonly set: readonly number[];
  readonly keep: number;
  readonly oldLeader: number;
}

interface Row {
  readonly broker: number;
  readonly stands: number;
  /** Over zone limits, and zones, of what stays. */
  readonly fault: number;
  readonly zones: number;
  readonly old: number;
}

function inOrderToGo(view: View, targets: CopyTargets, shard: number, choice: Choice): Row[] {
  const r = view.resource(shard);
  const ranking = targets.ranking(shard);
  const { set, keep, oldLeader } = choice;
  const rows = set
    .filter((b) => b !== keep)
    .map((broker): Row => {
      const rest = set.filter((b) => b !== broker);
      return {
        broker,
        stands: standing(view, shard, broker),
        fault: zoneFault(view, targets, r, rest),
        zones: zonesAfter(view, rest),
        old: broker === oldLeader ? 1 : 0,
      };
    });
  return rows.sort(
    (a, b) =>
      a.stands - b.stands ||
      a.fault - b.fault ||
      b.zones - a.zones ||
      compareAbove(view, targets, r, a.broker, b.broker) ||
      compareTotals(view, targets, a.broker, b.broker) ||
      a.old - b.old ||
      ranking.compare(b.broker, a.broker),
  );
}

/** The first rule by which `a` goes before `b`, with its numbers. */
function apart(view: View, targets: CopyTargets, shard: number, a: Row, b: Row): string {
  const r = view.resource(shard);
  if (a.stands !== b.stands)
    return `it is ${STANDINGS[a.stands]}, ${view.brokers.id(b.broker)} ${STANDINGS[b.stands]}`;
  if (a.fault !== b.fault) return `without it ${a.fault} copies are over zone limits, not ${b.fault}`;
  if (a.zones !== b.zones) return `without it the shard spans ${a.zones} zones, not ${b.zones}`;
  if (compareAbove(view, targets, r, a.broker, b.broker) !== 0) {
    const held = (row: Row): string =>
      `${view.tally.copiesOf(r, row.broker)} (part ${targets.floor(r, row.broker)} to ${targets.ceiling(r, row.broker)})`;
    return `it is further above its part of ${view.resourceKeys[r]}: ${held(a)} against ${held(b)}`;
  }
  if (compareTotals(view, targets, a.broker, b.broker) !== 0) {
    return `it holds ${view.tally.copies[a.broker]} copies in all against ${view.tally.copies[b.broker]}`;
  }
  return 'it scores lower';
}

const STANDINGS = ['lost', 'on a broker that is leaving', 'out of sync', 'live and in sync'] as const;

/** The class of a copy, an index of STANDINGS: those of the lowest go first. */
function standing(view: View, shard: number, b: number): number {
  if (view.brokers.serving[b] === 0) return 0;
  if (view.brokers.live[b] === 0) return 1;
  return view.isInSync(shard, b) ? 3 : 2;
}
