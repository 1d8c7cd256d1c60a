import { NONE } from './broker-table.ts';
import type { FollowerMove } from './copies/index.ts';
import type { Reason } from './model.ts';
import { lowers } from './objective.ts';
import type { Pass } from './pass.ts';
import type { Vector, Why } from './plan-types.ts';

export interface CopyStart {
  readonly shard: number;
  /** The copy that goes with the seat; NONE: none does. */
  readonly from: number;
  readonly to: number;
  readonly reason: Reason;
  readonly why: Why;
  /** An optional step: it must lower the vector, and carries it. */
  readonly optional: boolean;
}

/** The reasons of a decision about copies, without the decision. */
export function whyOf({ rule, detail, rejected, runnerUp }: Why): Why {
  return { rule, detail, rejected, runnerUp };
}

/** Starts a copy. Answers false, and changes nothing, if no slot is free, or it is optional and the vector would not fall. */
export function startCopyMove(pass: Pass, { shard: s, from, to, reason, why, optional }: CopyStart): boolean {
  const { view, builder } = pass;
  const copied = view.resourceRow(view.resource(s)).durable;
  if (!pass.hasSlot(copied, from, to)) return false;
  let vector: { before: Vector; after: Vector } | null = null;
  if (optional) {
    const after = [...view.finished(s).filter((b) => b !== from), to];
    vector = { before: pass.objective.vector(), after: pass.objective.vectorAfter(s, after) };
    if (!lowers(vector.before, vector.after)) return false;
  }
  view.setMove(s, {
    role: 'follower',
    step: 'joining',
    reason,
    from,
    to,
    drops: from,
    copied,
    startedAtMs: view.nowMs,
    progressAtMs: view.nowMs,
  });
  pass.takeSlot(copied, from, to);
  builder.add(s, {
    step: 'join',
    role: 'follower',
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

/** Starts a follower's optional move. */
export function startFollower(pass: Pass, move: FollowerMove): boolean {
  const { shard, from, to, reason } = move;
  return startCopyMove(pass, { shard, from, to, reason, why: whyOf(move), optional: true });
}
