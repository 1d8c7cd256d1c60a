import { NONE } from './broker-table.ts';
import { copyThatGoes, zonesAfter } from './copies/index.ts';
import { leastFailed, timesFailed } from './failures.ts';
import type { Reason } from './model.ts';
import { lowers } from './objective.ts';
import type { Pass } from './pass.ts';
import type { Vector, Why } from './plan-types.ts';

export interface LeaderStart {
  readonly shard: number;
  readonly to: number;
  readonly reason: Reason;
  readonly why: Why;
  /** An optional step: it must lower the vector, and carries it. */
  readonly optional: boolean;
}

/** A copy must be made: the destination holds none, and there is a log to copy. */
export function mustCopy(pass: Pass, s: number, to: number): boolean {
  const { view } = pass;
  return view.resourceRow(view.resource(s)).durable && !view.isInSync(s, to);
}

/** The destination holds a copy, or has room for one. */
export function canTake(pass: Pass, s: number, to: number): boolean {
  return pass.view.holds(s, to) || pass.view.room(to) > 0;
}

/** Stages a leadership move. Answers false, and changes nothing, if it is optional and the vector would not fall. */
export function startLeaderMove(pass: Pass, { shard: s, to, reason, why, optional }: LeaderStart): boolean {
  const { view, builder } = pass;
  const r = view.resource(s);
  const from = view.leader[s] ?? NONE;
  const copied = mustCopy(pass, s, to);
  const before = optional ? pass.objective.vector() : null;
  const drops = dropAtCutOver(pass, s, to);
  view.setMove(s, {
    role: 'leader',
    step: 'staged',
    reason,
    from,
    to,
    drops,
    copied,
    startedAtMs: view.nowMs,
    progressAtMs: view.nowMs,
  });
  pass.leadersChanged(r);
  let vector: { before: Vector; after: Vector } | null = null;
  if (before !== null) {
    vector = { before, after: pass.objective.vector() };
    if (!lowers(vector.before, vector.after)) {
      view.cancelMove(s);
      pass.leadersChanged(r);
      return false;
    }
  }
  pass.takeSlot(copied, from, to);
  builder.add(s, {
    step: 'stage',
    role: 'leader',
    from,
    to,
    drops: NONE,
    reason,
    copies: copied,
    opensEpoch: false,
    state: view.rows[s]?.state ?? 'active',
    failedMoves: view.failedMoves(s),
    needs: [to],
    vector,
    why,
  });
  return true;
}

/** The copy that goes when `to` takes over; NONE where the set stays within its factor. */
export function dropAtCutOver(pass: Pass, s: number, to: number): number {
  const { view } = pass;
  return copyThatGoes(view, pass.copyTargets, s, to, view.leader[s] ?? NONE);
}

/** The set of copies once `to` has taken over. */
export function setAfter(pass: Pass, s: number, to: number): readonly number[] {
  const { view } = pass;
  const goes = dropAtCutOver(pass, s, to);
  const copies = view.holds(s, to) ? view.copies(s) : [...view.copies(s), to];
  return goes === NONE ? copies : copies.filter((b) => b !== goes);
}

/** Steps 4 and 5 never lower the number of zones of a shard. */
export function keepsZones(pass: Pass, s: number, to: number): boolean {
  const { view } = pass;
  return zonesAfter(view, setAfter(pass, s, to)) >= zonesAfter(view, view.finished(s));
}

/**
 * Some time, if not now, `to` could take the shard over: its copy is in sync or there is no log, or it holds none and has room for one
 * without costing the shard a zone (which a drain may).
 */
export function couldLead(pass: Pass, s: number, to: number): boolean {
  const { view } = pass;
  if (view.holds(s, to)) return !mustCopy(pass, s, to);
  if (view.room(to) <= 0) return false;
  return view.brokers.live[view.nextLeader(s)] === 0 || keepsZones(pass, s, to);
}

/** Between whom a leadership goes by copying: the takers are all that lack leaderships of the resource. */
export interface CopyEnds {
  readonly from: number;
  readonly to: number;
  readonly takers: readonly number[];
  readonly taken: ReadonlySet<number>;
  readonly optional: boolean;
}

/**
 * The shard that `from` hands to `to` by copying: of those it leads that `to` holds no copy of, the one whose moves
 * failed least, then that leaves zones and copies better, then by score. NONE: there is none.
 */
export function shardToCopy(pass: Pass, r: number, { from, to, takers, taken, optional }: CopyEnds): number {
  const { view } = pass;
  // One that must go is not bound to the takers: others may have it before one to which its move failed is tried again.
  const mayTry = (s: number): boolean =>
    optional
      ? leastFailed(
          view,
          s,
          takers.filter((b) => !view.holds(s, b) && view.room(b) > 0),
        ).includes(to)
      : timesFailed(view, s, to) === 0;
  if (view.room(to) <= 0) return NONE;
  let best: { s: number; failed: number; vector: Vector; score: number } | null = null;
  const end = view.firstShard[r + 1] ?? 0;
  for (let s = view.firstShard[r] ?? 0; s < end; s++) {
    if (view.nextLeader(s) !== from || !view.mayStart(s, 'leader') || taken.has(s) || view.holds(s, to))
      continue;
    if (view.rows[s]?.failures !== undefined && !mayTry(s)) continue;
    if (optional && !couldLead(pass, s, to)) continue;
    const vector = pass.objective.vectorAfter(s, setAfter(pass, s, to));
    const ranking = pass.rankings.of(s);
    // The higher it scores there than here: the shard that came this way is the last to be sent back.
    const score = ranking.high(to) - ranking.high(from);
    const entry = { s, failed: view.failedMoves(s), vector, score };
    if (best === null || better(entry, best)) best = entry;
  }
  return best?.s ?? NONE;
}

function better(
  a: { failed: number; vector: Vector; score: number },
  b: { failed: number; vector: Vector; score: number },
): boolean {
  if (a.failed !== b.failed) return a.failed < b.failed;
  if (lowers(b.vector, a.vector)) return true;
  return !lowers(a.vector, b.vector) && a.score > b.score;
}
