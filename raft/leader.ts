import { isVoter } from './configuration.ts';
import type { CoreState } from './core-state.ts';
import { isQuorum } from './quorum.ts';
import { sendHeartbeats } from './replication.ts';
import { becomeFollower } from './roles.ts';
import type { MemberId } from './types.ts';

export function tickLeader(core: CoreState, elapsedMs: number): void {
  const { limits } = core;
  core.heartbeatElapsedMs += elapsedMs;
  for (const progress of core.progress.values()) progress.silentMs += elapsedMs;
  core.cutOffMs = hasQuorumOfSockets(core) ? 0 : core.cutOffMs + elapsedMs;
  if (core.cutOffMs >= limits.electionTimeoutMs / 2) {
    // The others may still follow it: it asks them again as soon as they are reached.
    core.leaderGone = true;
    becomeFollower(core, core.term, null);
    return;
  }
  if (!hearsQuorum(core)) {
    becomeFollower(core, core.term, null);
    return;
  }
  tickTransfer(core, elapsedMs);
  for (const progress of core.progress.values()) {
    progress.sinceAppendMs += elapsedMs;
    if (progress.state !== 'snapshot') continue;
    progress.snapshotElapsedMs += elapsedMs;
    if (progress.snapshotElapsedMs >= limits.snapshotRetryMs) progress.becomeProbe();
  }
  if (core.heartbeatElapsedMs >= limits.heartbeatMs) sendHeartbeats(core);
}

/** A leader that hears no quorum for an election timeout steps down (thesis, section 6.2). */
function hearsQuorum(core: CoreState): boolean {
  return isQuorum(
    core.log.configuration,
    (id) => id === core.id || core.progress.get(id)?.isActive(core.limits) === true,
  );
}

/** A socket counts as open until one reconnect has failed. */
export function hasQuorumOfSockets(core: CoreState): boolean {
  return isQuorum(core.log.configuration, (id) => id === core.id || !core.downPeers.has(id));
}

/** Begins to hand the leadership over (thesis, section 3.10). Answers why not, or `null`. */
export function startTransfer(core: CoreState, to: MemberId): string | null {
  if (to === core.id) return `${to} leads already`;
  if (!isVoter(core.log.configuration, to)) return `${to} is not a voter`;
  if (core.transfer !== null) return `a transfer to ${core.transfer.to} is under way`;
  if (core.downPeers.has(to)) return `${to} is not connected`;
  core.transfer = { to, elapsedMs: 0, asked: false };
  return null;
}

/** Once the target holds the whole log it is told to stand. */
export function advanceTransfer(core: CoreState): void {
  const { transfer } = core;
  if (transfer === null || transfer.asked) return;
  if (core.progress.get(transfer.to)?.match !== core.log.lastIndex) return;
  transfer.asked = true;
  const { lastIndex } = core.log;
  core.send(transfer.to, { type: 'timeoutNow', lastIndex, round: core.leaderReads.round });
}

/** A transfer that takes an election time-out has failed: writes resume (hazard 28). */
function tickTransfer(core: CoreState, elapsedMs: number): void {
  if (core.transfer === null) return;
  core.transfer.elapsedMs += elapsedMs;
  if (core.transfer.elapsedMs >= core.limits.electionTimeoutMs) core.transfer = null;
}
