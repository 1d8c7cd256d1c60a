import { NONE } from './broker-table.ts';
import { restoreDestination, surplusCopy } from './copies/index.ts';
import { startCopyMove, whyOf } from './copy-start.ts';
import type { Pass } from './pass.ts';

/** Copies that a pass has to look after, found in one walk over all shards. */
export interface CopyWork {
  /** Led by a draining broker. */
  readonly drainLeaders: readonly number[];
  /** A follower on a draining broker. */
  readonly drainCopies: readonly number[];
  /** A copy on a broker that does not answer, or fewer copies than the factor. */
  readonly restore: readonly number[];
  /** More copies than the factor. */
  readonly surplus: readonly number[];
  /** A shard that takes no step now, for it moves or has had one, will have to give up a copy afterwards. */
  readonly later: boolean;
}

/** Shards whose moves failed least come first; among equals, in their order. */
export function findCopyWork(pass: Pass): CopyWork {
  const { view } = pass;
  const { serving, draining } = view.brokers;
  const work = {
    drainLeaders: [] as number[],
    drainCopies: [] as number[],
    restore: [] as number[],
    surplus: [] as number[],
  };
  let later = false;
  for (let s = 0; s < view.shardCount; s++) {
    const copies = view.finished(s);
    const factor = view.resourceRow(view.resource(s)).replicationFactor;
    if (!view.free(s)) {
      const gives = copies.length > factor || copies.some((b) => draining[b] === 1);
      later ||= view.counts[s] === 1 && gives;
      continue;
    }
    if (copies.length > factor) work.surplus.push(s);
    if (copies.length < factor || copies.some((b) => serving[b] === 0)) work.restore.push(s);
    const leader = view.nextLeader(s);
    if (draining[leader] === 1) work.drainLeaders.push(s);
    if (copies.some((b) => draining[b] === 1 && b !== leader)) work.drainCopies.push(s);
  }
  const inTurn = (a: number, b: number): number => view.failedMoves(a) - view.failedMoves(b) || a - b;
  for (const list of Object.values(work)) list.sort(inTurn);
  return { ...work, later };
}

/** Step 3, the first half: a copy too many goes, one a pass. Answers whether a set will still be over its factor. */
export function dropSurplus(pass: Pass, shards: readonly number[]): boolean {
  const { view, builder } = pass;
  let pending = false;
  for (const s of shards) {
    if (!view.free(s)) continue;
    const { broker: goes, because, next } = surplusCopy(view, pass.copyTargets, s);
    if (view.rows[s]?.state !== 'active' || !view.mayDrop(s, goes)) {
      pending = true;
      continue;
    }
    const factor = view.resourceRow(view.resource(s)).replicationFactor;
    const detail = `${view.finished(s).length} copies for a replication factor of ${factor}; ${view.brokers.id(goes)} (${view.brokers.lifecycle(goes)}) goes: ${because}`;
    view.dropCopy(s, goes);
    pending ||= view.finished(s).length > factor;
    builder.add(s, {
      step: 'drop',
      role: 'follower',
      from: goes,
      to: NONE,
      drops: goes,
      reason: 'surplus',
      copies: false,
      opensEpoch: false,
      state: view.rows[s]?.state ?? 'active',
      failedMoves: view.failedMoves(s),
      needs: [],
      vector: null,
      why: {
        rule: 'which_copy_goes',
        detail,
        rejected: [],
        runnerUp: next === NONE ? null : view.brokers.id(next),
      },
    });
  }
  return pending;
}

/**
 * Step 3: a copy that is lost for good is made anew elsewhere, and so is one that a set lacks. Answers whether a
 * restore is pending: one is under way, waits for a slot, or will be due.
 */
export function restoreCopies(pass: Pass, shards: readonly number[]): boolean {
  const { view } = pass;
  let pending = false;
  for (const s of shards) {
    const lost = view.finished(s).filter((b) => view.brokers.serving[b] === 0);
    const due = lost.find((b) => isDue(pass, b));
    const short = view.finished(s).length < view.resourceRow(view.resource(s)).replicationFactor;
    if (due === undefined && !short) pending ||= lost.length > 0;
    if ((due === undefined && !short) || !view.free(s)) continue;
    const leaving = short ? NONE : (due ?? NONE);
    const found = restoreDestination(view, pass.copyTargets, s, leaving, pass.slotTest(s));
    if (found === null) pending = true;
    else if ('waiting' in found) pass.wait(s, found.waiting.reason, found.waiting.detail);
    else {
      pending = true;
      startCopyMove(pass, {
        shard: s,
        from: leaving,
        to: found.to,
        reason: 'restore',
        why: whyOf(found),
        optional: false,
      });
    }
  }
  return pending;
}

/** A lost copy waits `restoreAfterMs` for its broker; one whose broker has left only for its lease to pass. */
function isDue(pass: Pass, b: number): boolean {
  const { view } = pass;
  const row = view.brokers.rows[b];
  if (row?.lifecycle === 'left') {
    const until = view.reports.leasedUntilMs.get(row.id) ?? 0;
    pass.wakeAt(until);
    return until <= view.nowMs;
  }
  const at = (row?.downSinceMs ?? 0) + view.policy.restoreAfterMs;
  pass.wakeAt(at);
  return at <= view.nowMs;
}
