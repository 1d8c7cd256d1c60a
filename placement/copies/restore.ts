import { NONE } from '../broker-table.ts';
import { barredText, leastFailed } from '../failures.ts';
import type { View } from '../view.ts';
import { compareAbove, compareTotals, replaced, squaredChange, zoneFault } from './measure.ts';
import { capText, rejectedFor, type Rejected, type SlotCheck } from './step.ts';
import type { CopyTargets } from './targets.ts';
import { zonesAfter } from './zones.ts';

/** Where a missing or leaving copy is made anew. */
export interface Destination {
  readonly to: number;
  readonly rule: 'own_zone' | 'widest_spread' | 'fewest_copies';
  readonly detail: string;
  readonly rejected: readonly Rejected[];
  readonly runnerUp: string | null;
}

/** Nowhere: a stable code, and what is missing. */
export interface NoDestination {
  readonly waiting: {
    readonly reason: 'no_destination' | 'no_room' | 'destination_failed';
    readonly detail: string;
  };
}

interface Candidate {
  readonly broker: number;
  /** Zone fault, unevenness where the set is short, zones lost, not in the lost copy's zone; smaller first. */
  readonly key: readonly [number, number, number, number];
}

/**
 * The broker for a new copy of the shard. `leaving` is the copy that goes when it is seated (lost, or on a draining
 * broker); NONE: the set is short. The set as it will be keeps within zone limits. One that replaces a copy spans as
 * many zones as live brokers offer, a lost one in its own zone if that has room, and then goes towards `t_b`; one that
 * a raised factor adds goes towards `t_b` first, as first placement deals. `null`: only the slots are in the way.
 */
export function restoreDestination(
  view: View,
  targets: CopyTargets,
  shard: number,
  leaving: number,
  ok: SlotCheck,
): Destination | NoDestination | null {
  const r = view.resource(shard);
  const { brokers } = view;
  const set = view.finished(shard);
  const outsiders = [...brokers.liveList].filter((b) => !view.holds(shard, b) && !set.includes(b));
  const roomy = outsiders.filter((b) => view.room(b) > 0);
  if (roomy.length === 0) return nowhere(view, outsiders);
  const fit = leastFailed(view, shard, roomy);
  if (fit.length === 0) {
    return { waiting: { reason: 'destination_failed', detail: barredText(view, shard, roomy) } };
  }
  const { share } = targets.of(r);
  const short = leaving === NONE;
  const ownZone = !short && brokers.serving[leaving] === 0 ? brokers.zone[leaving] : NONE;
  const candidates: Candidate[] = fit
    .filter((b) => ok(leaving, b))
    .map((b) => {
      const after = replaced(set, leaving, b);
      const key = [
        zoneFault(view, targets, r, after),
        short ? squaredChange(view.tally.copiesOf(r, b), 1, share.floor(b), share.ceiling(b)) : 0,
        -zonesAfter(view, after),
        brokers.zone[b] === ownZone ? 0 : 1,
      ] as const;
      return { broker: b, key };
    });
  const ranking = targets.ranking(shard);
  const order = (x: Candidate, y: Candidate): number =>
    x.key[0] - y.key[0] ||
    x.key[1] - y.key[1] ||
    x.key[2] - y.key[2] ||
    x.key[3] - y.key[3] ||
    compareAbove(view, targets, r, y.broker, x.broker) ||
    compareTotals(view, targets, y.broker, x.broker) ||
    ranking.compare(x.broker, y.broker);
  candidates.sort(order);
  const [best, second] = candidates;
  if (best === undefined) return null;
  return {
    to: best.broker,
    ...why(view, targets, r, best, candidates),
    rejected: rejectedFor(view, targets, { shard, from: leaving, to: best.broker }),
    runnerUp: second === undefined ? null : brokers.id(second.broker),
  };
}

function why(
  view: View,
  targets: CopyTargets,
  r: number,
  best: Candidate,
  all: readonly Candidate[],
): { rule: Destination['rule']; detail: string } {
  const { brokers } = view;
  const id = brokers.id(best.broker);
  const zone = brokers.zoneNames[brokers.zone[best.broker] ?? 0] ?? '';
  const zones = -best.key[2];
  if (best.key[3] === 0)
    return { rule: 'own_zone', detail: `${id} is in zone ${zone}, as the lost copy was` };
  if (all.some((other) => other.key[0] > best.key[0] || other.key[2] > best.key[2])) {
    return { rule: 'widest_spread', detail: `with ${id} of zone ${zone} the copies span ${zones} zones` };
  }
  const held = view.tally.copiesOf(r, best.broker);
  const part = targets.ceiling(r, best.broker);
  return {
    rule: 'fewest_copies',
    detail: `${id} holds ${held} copies of ${view.resourceKeys[r]} where up to ${part} are its part`,
  };
}

function nowhere(view: View, outsiders: readonly number[]): NoDestination {
  const { brokers } = view;
  if (outsiders.length === 0) {
    const live = brokers.liveList.length;
    return {
      waiting: {
        reason: 'no_destination',
        detail: `no live broker outside the set: ${live === 1 ? 'the only live broker holds' : `all ${live} live brokers hold`} a copy already`,
      },
    };
  }
  const caps = outsiders.map((b) => `${brokers.id(b)} ${capText(view, b)}`).join(', ');
  const missing = 'room for 1 copy is missing';
  return {
    waiting: { reason: 'no_room', detail: `every live broker outside the set is full: ${caps}; ${missing}` },
  };
}
