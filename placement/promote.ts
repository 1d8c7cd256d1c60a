import { NONE } from './broker-table.ts';
import { canCutOver, unconfirmedLeader } from './fence.ts';
import type { Why } from './plan-types.ts';
import type { Pass } from './pass.ts';
import { choosePromotions, type Candidate } from './promotion-matching.ts';
import type { Shares } from './share.ts';
import type { ShardMove } from './shard-move.ts';
import type { View } from './view.ts';

/** Shards whose leader does not serve, as a pass finds them. */
export interface Lost {
  /** Each with the copies that may lead it. */
  readonly promotable: readonly Candidate[];
  /** Only draining brokers hold what they acknowledged. */
  readonly lastChoice: readonly Candidate[];
  /** Ephemeral: any live broker may lead. */
  readonly ephemeral: readonly number[];
}

/**
 * Finds the shards whose leader does not serve. Nothing is taken from a broker that may still serve on its lease; a
 * durable shard none of whose copies in sync is on a serving broker waits, and says who holds how much.
 */
export function findLost(pass: Pass): Lost {
  const { view } = pass;
  const { brokers } = view;
  const promotable: Candidate[] = [];
  const lastChoice: Candidate[] = [];
  const ephemeral: number[] = [];
  for (let s = 0; s < view.shardCount; s++) {
    const leader = view.leader[s] ?? NONE;
    // One that has drained hands over though its broker is gone: its move finishes in this pass.
    if (leader === NONE || canCutOver(view, s)) continue;
    const serves = view.leaderServes(s);
    if (serves && !mayReplace(pass, s)) continue;
    if (mayStillServe(pass, s, leader)) continue;
    const group = view.resource(s);
    if (!view.resourceRow(group).durable) {
      if (!serves) ephemeral.push(s);
      continue;
    }
    const others = view.inSync(s).filter((b) => brokers.serving[b] === 1 && b !== leader);
    const serving = others.filter((b) => view.isHeard(b));
    const live = serving.filter((b) => brokers.live[b] === 1);
    if (live.length > 0) promotable.push({ shard: s, group, brokers: inOrder(pass, s, live) });
    else if (serving.length > 0) lastChoice.push({ shard: s, group, brokers: inOrder(pass, s, serving) });
    else if (serves) continue;
    else if (others.length > 0) pass.wait(s, 'copies_unheard', copiesUnheard(view, leader, others));
    else pass.refuse(s, 'only_copy_unavailable', onlyCopyUnavailable(view, s));
  }
  return { promotable, lastChoice, ephemeral };
}

/**
 * The leader is there but has not confirmed in time, a disk that hangs for instance. Where that process has not served the shard
 * at any epoch another copy in sync may lead at once. Else it may still serve at an earlier epoch, as long as it has a lease.
 */
function mayReplace(pass: Pass, s: number): boolean {
  const { view } = pass;
  const served = unconfirmedLeader(view, s);
  if (served === null) return false;
  const id = view.brokers.id(view.leader[s] ?? NONE);
  const until =
    served === 'leader'
      ? `until it confirms, or ends: it may still serve it as it did`
      : 'for a copy in sync that can';
  pass.wait(
    s,
    'leader_unconfirmed',
    `${id} leads it and has not confirmed it within fenceTimeoutMs; it waits ${until}`,
  );
  return served !== 'leader';
}

function inOrder(pass: Pass, s: number, brokers: readonly number[]): number[] {
  const ranking = pass.rankings.of(s);
  return [...brokers].sort((a, b) => ranking.compare(a, b));
}

/** The old leader's lease, expiry and margin have not passed, and it has not said that it stopped. */
function mayStillServe(pass: Pass, s: number, leader: number): boolean {
  const { view } = pass;
  const until = view.reports.leasedUntilMs.get(view.brokers.id(leader)) ?? 0;
  if (until <= view.nowMs) return false;
  if (view.move(s)?.step === 'fenced' && view.report(s)?.drained === true) return false;
  pass.wakeAt(until);
  const detail = `${view.brokers.id(leader)} led it and may serve on its lease until ${until} ms of cluster time`;
  pass.wait(s, 'leased', detail);
  return true;
}

function copiesUnheard({ brokers }: View, leader: number, copies: readonly number[]): string {
  const ids = copies.map((b) => brokers.id(b)).join(', ');
  return `${brokers.id(leader)} (${brokers.lifecycle(leader)}) led it; ${ids} could, but was not heard within its lease: it is heard again or declared down`;
}

function onlyCopyUnavailable(view: View, s: number): string {
  const describe = (b: number): string => `${view.brokers.id(b)} (${view.brokers.lifecycle(b)})`;
  const holders = view.inSync(s).filter((b) => view.brokers.serving[b] === 0);
  const behind = view.copies(s).filter((b) => !view.inSync(s).includes(b));
  const all =
    holders.length === 0
      ? 'no copy holds all of it'
      : `${holders.map(describe).join(', ')} ${holders.length === 1 ? 'holds' : 'hold'} all of it`;
  const rest = behind.length > 0 ? `; ${behind.map(describe).join(', ')} may be behind` : '';
  return `${all}${rest}; it waits for one that holds all, or for an operator to abandon the shard`;
}

/** Promotes everything promotable, all together; `extra` counts by resource what else this pass gives a leader. */
export function promoteLost(pass: Pass, lost: Lost, extra: Int32Array): void {
  const { view, book } = pass;
  const { tally } = view;
  const gained = extra.slice();
  for (const { shard, group } of [...lost.promotable, ...lost.lastChoice]) {
    if (view.counts[shard] === 0) gained[group] = (gained[group] ?? 0) + 1;
  }
  const all = gained.reduce((sum, n) => sum + n, 0);
  const shares = (r: number): Shares => book.ofTotal((tally.shards[r] ?? 0) + (gained[r] ?? 0));
  const chosen = choosePromotions({
    candidates: lost.promotable,
    led: (r, b) => tally.leadersOf(r, b),
    floor: (r, b) => shares(r).floor[b] ?? 0,
    ceiling: (r, b) => shares(r).ceiling[b] ?? 0,
    share: (r, b) => shares(r).exact[b] ?? 0,
    total: tally.leaders,
    totalShare: book.ofTotal(tally.shardsTotal + all).exact,
  });
  lost.promotable.forEach((candidate, i) => promote(pass, candidate, chosen[i] ?? NONE, 'in_sync_copy'));
  for (const candidate of lost.lastChoice) {
    const least = candidate.brokers.reduce((a, b) => (leads(view, b) < leads(view, a) ? b : a));
    promote(pass, candidate, least, 'draining_last_choice');
  }
}

function leads(view: View, b: number): number {
  return view.tally.leaders[b] ?? 0;
}

function promote(pass: Pass, { shard: s, brokers }: Candidate, leader: number, rule: string): void {
  const { view, builder } = pass;
  const old = view.leader[s] ?? NONE;
  const why = promotionWhy(view, s, { brokers, leader, old, rule });
  const kept = keptThrough(pass, s, leader);
  view.promote(s, leader, kept);
  builder.add(s, {
    step: 'promote',
    role: 'leader',
    from: old,
    to: leader,
    drops: kept.dropped,
    reason: 'failover',
    copies: false,
    opensEpoch: true,
    state: 'assigning',
    failedMoves: view.failedMoves(s),
    needs: rule === 'draining_last_choice' ? [] : [leader],
    drainingToo: rule === 'draining_last_choice' ? [leader] : [],
    vector: null,
    why,
  });
}

/**
 * What stays of a shard's set and move under a new leader. A join goes on if it concerns neither the old leader nor
 * the new one; a leader move ends with the leader that began it, and a half-made copy with it.
 */
export function keptThrough(
  pass: Pass,
  s: number,
  leader: number,
): { copies: readonly number[]; inSync: readonly number[]; move: ShardMove | null; dropped: number } {
  const { view } = pass;
  const { serving, live } = view.brokers;
  const move = view.move(s);
  // The new leader may acknowledge without those that do not serve.
  const inSync = view.inSync(s).filter((b) => serving[b] === 1);
  if (move === null) return { copies: view.copies(s), inSync, move, dropped: NONE };
  const goesOn =
    move.role === 'follower' && live[move.to] === 1 && ![move.to, move.from, move.drops].includes(leader);
  if (goesOn) return { copies: view.copies(s), inSync, move, dropped: NONE };
  pass.freeSlot(move.copied, move.from, move.to);
  if (!move.copied || move.to === leader || view.isInSync(s, move.to)) {
    return { copies: view.copies(s), inSync, move: null, dropped: NONE };
  }
  const stays = (b: number): boolean => b !== move.to;
  return { copies: view.copies(s).filter(stays), inSync: inSync.filter(stays), move: null, dropped: move.to };
}

function promotionWhy(
  view: View,
  s: number,
  { brokers, leader, old, rule }: { brokers: readonly number[]; leader: number; old: number; rule: string },
): Why {
  const r = view.resource(s);
  const id = (b: number): string => view.brokers.id(b);
  const rejected = view
    .copies(s)
    .filter((b) => b !== leader)
    .map((b) => ({ broker: id(b), by: rejection(view, s, b) }));
  const lead = `${id(leader)} holds all of it and leads ${view.tally.leadersOf(r, leader)} of ${view.resourceKeys[r]}`;
  return {
    rule,
    detail: `${id(old)} (${view.brokers.lifecycle(old)}) does not serve it; ${lead}, ${leads(view, leader)} in all`,
    rejected,
    runnerUp: brokers.filter((b) => b !== leader).map(id)[0] ?? null,
  };
}

function rejection(view: View, s: number, b: number): string {
  if (view.brokers.serving[b] === 0) return view.brokers.lifecycle(b);
  if (!view.isInSync(s, b)) return 'out_of_sync';
  return view.brokers.draining[b] === 1 ? 'draining' : 'keeps_less_level';
}
