import { Admission } from './admission.ts';
import { NO_CAP, NONE } from './broker-table.ts';
import { dealFollowers } from './copies/index.ts';
import type { Pass } from './pass.ts';
import { Placer } from './place.ts';
import type { Why } from './plan-types.ts';
import type { View } from './view.ts';
import { keptThrough } from './promote.ts';

/** The shards that were never placed and can be now, rising. The others are listed with what they wait for. */
export function admitNew(pass: Pass): number[] {
  const { view } = pass;
  const admission = new Admission(view);
  const admitted: number[] = [];
  const window = settleWindow(view);
  for (let r = 0; r < view.resourceCount; r++) {
    const factor = view.factor(r);
    const end = view.firstShard[r + 1] ?? 0;
    for (let s = view.firstShard[r] ?? 0; s < end; s++) {
      if (view.leader[s] !== NONE) continue;
      if (window !== null && waitsToSettle(pass, s, window)) continue;
      if (admission.admit(factor)) admitted.push(s);
      else if (factor === 0) pass.refuse(s, 'no_live_broker', noLiveBroker(pass));
      else pass.refuse(s, 'no_room', noRoom(pass, factor));
    }
  }
  return admitted;
}

/** The part of `settleMs` in which no broker has registered any more once a starting cluster's brokers are all there. */
const CALM_PART = 0.2;

interface SettleWindow {
  readonly endMs: number;
  /** No broker has registered for a while; at the latest, the end. */
  readonly calmMs: number;
}

/** While the first registration is younger than `settleMs`; `null`: it is older, or there is none. */
function settleWindow({ brokers, firstRegisteredAtMs, policy, nowMs }: View): SettleWindow | null {
  if (firstRegisteredAtMs === null) return null;
  const endMs = firstRegisteredAtMs + policy.settleMs;
  if (nowMs >= endMs) return null;
  const lastMs = brokers.liveList.reduce(
    (last, b) => Math.max(last, brokers.rows[b]?.registeredAtMs ?? 0),
    0,
  );
  return { endMs, calmMs: Math.min(endMs, lastMs + Math.ceil(policy.settleMs * CALM_PART)) };
}

/**
 * In a cluster that starts a shard waits for as many live brokers as its factor, and for those that still come: what the
 * first broker got would be moved again. It waits no longer than the window.
 */
function waitsToSettle(pass: Pass, s: number, { endMs, calmMs }: SettleWindow): boolean {
  const { view } = pass;
  const factor = view.resourceRow(view.resource(s)).replicationFactor;
  const live = view.brokers.liveList.length;
  const until = live < factor ? endMs : calmMs;
  if (view.nowMs >= until) return false;
  pass.wakeAt(until);
  const why = live < factor ? `${live} of ${factor} brokers are live` : 'brokers are still registering';
  pass.wait(s, 'settling', `${why}; it waits for them until ${until} ms of cluster time`);
  return true;
}

function noLiveBroker(pass: Pass): string {
  const rows = pass.view.brokers.rows;
  if (rows.length === 0) return 'no broker has registered';
  return `no broker is live: ${rows.map((row) => `${row.id} ${row.drain ? 'draining' : row.lifecycle}`).join(', ')}`;
}

function noRoom(pass: Pass, factor: number): string {
  const { brokers, tally } = pass.view;
  const full = [...brokers.liveList].filter((b) => brokers.cap[b] !== NO_CAP);
  const rooms = full.map((b) => `${brokers.id(b)} holds ${tally.held[b]} of maxShards ${brokers.cap[b]}`);
  return `its ${factor} copies need ${factor} brokers with room besides the shards before it: ${rooms.join(', ')}`;
}

const NOT_HEARD =
  'no broker with room was heard within its lease; each is heard again or declared down within seconds';

/** Step 0, the new and the ephemeral: all leaders first, then the followers of the new. */
export function placeAll(pass: Pass, fresh: readonly number[], ephemeral: readonly number[]): void {
  const { view, targets, rankings } = pass;
  const placer = new Placer(view, targets);
  const placed: number[] = [];
  const whys: Why[] = [];
  for (const s of ephemeral) replaceEphemeral(pass, placer, s);
  for (const s of fresh) {
    const r = view.resource(s);
    const seat = placer.seat(r, rankings.of(s), []);
    if (seat === null) {
      if (view.brokers.liveList.some((b) => !view.isHeard(b))) pass.wait(s, 'brokers_unheard', NOT_HEARD);
      else pass.refuse(s, 'no_room', noRoom(pass, view.factor(r)));
      continue;
    }
    view.place(s, seat.broker);
    placed.push(s);
    whys.push(seat.why);
  }
  pass.placed = placed.length;
  if (placed.length === 0) return;
  dealFollowers(view, pass.copyTargets, placed);
  placed.forEach((s, i) => {
    const why = whys[i];
    if (why !== undefined) writeNew(pass, s, why);
  });
}

function writeNew(pass: Pass, s: number, why: Why): void {
  const { view, builder } = pass;
  builder.add(s, {
    step: 'place',
    role: 'leader',
    from: NONE,
    to: view.leader[s] ?? NONE,
    drops: NONE,
    reason: 'new',
    copies: false,
    opensEpoch: true,
    state: 'assigning',
    failedMoves: 0,
    needs: view.copies(s),
    vector: null,
    why,
  });
}

/** There is no log to hand over: any live broker takes the shard, in the place of the lost leader. */
function replaceEphemeral(pass: Pass, placer: Placer, s: number): void {
  const { view, builder } = pass;
  const old = view.leader[s] ?? NONE;
  const kept = keptThrough(pass, s, NONE);
  const holders = kept.copies.filter((b) => view.brokers.live[b] === 1);
  const seat = placer.seat(view.resource(s), pass.rankings.of(s), holders);
  if (seat === null) {
    const lost = `${view.brokers.id(old)} led it and does not serve; no live broker has room`;
    pass.refuse(s, view.brokers.liveList.length === 0 ? 'no_live_broker' : 'no_room', lost);
    return;
  }
  const to = seat.broker;
  const stays = kept.copies.includes(to) ? kept.copies : [to, ...kept.copies.filter((b) => b !== old)];
  const inSync = [to, ...kept.inSync.filter((b) => b !== to && stays.includes(b))];
  const move = kept.move !== null && kept.move.to !== to && kept.move.drops !== to ? kept.move : null;
  view.promote(s, to, { copies: stays, inSync, move });
  builder.add(s, {
    step: 'promote',
    role: 'leader',
    from: old,
    to,
    drops: kept.copies.includes(to) ? NONE : old,
    reason: 'failover',
    copies: false,
    opensEpoch: true,
    state: 'assigning',
    failedMoves: view.failedMoves(s),
    needs: [to],
    vector: null,
    why: seat.why,
  });
}
