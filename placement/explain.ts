import { NONE } from './broker-table.ts';
import { plan } from './plan.ts';
import type { Plan, Reports, Snapshot, Step, WaitingRow } from './plan-types.ts';
import { ShareBook } from './share-book.ts';
import { View } from './view.ts';

/** Why a shard is where it is, and what the next pass would do with it. */
export interface Explanation {
  readonly shard: string;
  /** Of the current place, for people: the leader's numbers, then a line a copy. */
  readonly place: readonly string[];
  /** What the next pass would write for it. */
  readonly next: readonly Step[];
  /** What it waits for: of the plan's waiting, unplaceable and unspread rows. */
  readonly waiting: readonly WaitingRow[];
}

/** Shown wherever a pause explains why nothing moves. */
export const PAUSED =
  'placement is paused: no drain, rebalance or restore starts until `evenkeel placement resume`';

/** `null`: the cluster has no such shard. `made`: the plan of this very snapshot, where there is one already. */
export function explainShard(
  snapshot: Snapshot,
  reports: Reports,
  shard: string,
  made: Plan = plan(snapshot, reports),
): Explanation | null {
  const view = new View(snapshot, reports);
  const s = view.indexOf(shard);
  if (s === NONE) return null;
  const named = (row: { readonly shard: string }): boolean => row.shard === shard;
  return {
    shard,
    place: view.leader[s] === NONE ? ['it is not placed'] : [leaderLine(view, s), ...copyLines(view, s)],
    next: made.steps.filter(named),
    waiting: [
      ...(snapshot.policy.paused ? [{ shard, reason: 'paused', detail: PAUSED }] : []),
      ...[...made.waiting, ...made.unplaceable, ...made.unspread].filter(named),
    ],
  };
}

function leaderLine(view: View, s: number): string {
  const { brokers, tally } = view;
  const book = new ShareBook(view);
  const r = view.resource(s);
  const b = view.leader[s] ?? NONE;
  const share = book.of(r);
  const total = book.cluster();
  return (
    `${brokers.id(b)} leads and ${serviceOf(view, s, b)}: it leads ${tally.leadersOf(r, b)} of ${view.resourceKeys[r]} ` +
    `(floor ${share.floor[b]}, ceiling ${share.ceiling[b]}) and ${tally.leaders[b]} in all ` +
    `(${total.floor[b]} to ${total.ceiling[b]})`
  );
}

const UNSERVED = {
  assigning: 'does not serve it yet (it has not confirmed that it opened the shard)',
  draining: 'takes no writes (it is fenced for a hand-over and has not drained)',
};

/** What a client of the shard meets. */
function serviceOf(view: View, s: number, b: number): string {
  if (view.brokers.serving[b] !== 1) return `does not serve it (${view.brokers.lifecycle(b)})`;
  if (!view.isInSync(s, b)) return 'does not serve it (its copy is not in sync)';
  const state = view.rows[s]?.state ?? 'active';
  return state === 'active' ? 'serves it' : UNSERVED[state];
}

function copyLines(view: View, s: number): string[] {
  const { brokers, tally } = view;
  return view.copies(s).map((b) => {
    const sync = view.isInSync(s, b) ? 'in sync' : 'out of sync';
    const zone = brokers.zoneNames[brokers.zone[b] ?? 0] ?? '';
    const cap = brokers.rows[b]?.maxShards ?? null;
    const room = cap === null ? '' : ` of ${cap}`;
    return `${brokers.id(b)} (${view.brokers.lifecycle(b)}, zone ${zone}) holds a copy ${sync}, ${tally.held[b]}${room} copies in all`;
  });
}
