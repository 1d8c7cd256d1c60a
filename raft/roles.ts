import { membersOf } from './configuration.ts';
import type { CoreState } from './core-state.ts';
import { RaftInvariantError } from './errors.ts';
import { Progress } from './progress.ts';
import type { EntryKind, MemberId } from './types.ts';

/** Election time starts anew, with a new draw (paper, section 5.2). */
export function resetElectionTimer(core: CoreState): void {
  const { electionTimeoutMs } = core.limits;
  core.electionElapsedMs = 0;
  core.electionDeadlineMs = core.leaderGone
    ? core.draw(Math.ceil(electionTimeoutMs / 8), electionTimeoutMs)
    : core.draw(electionTimeoutMs, electionTimeoutMs);
}

/** Follows `leaderId`, or waits for a leader of this term to show itself. A new term forgets the vote of the old one. */
export function becomeFollower(core: CoreState, term: number, leaderId: MemberId | null): void {
  if (term < core.term) throw new RaftInvariantError(`term ${term} after ${core.term}`);
  const wasLeader = core.role === 'leader';
  const sameLeader = core.role === 'follower' && core.term === term && core.leaderId === leaderId;
  if (term > core.term) core.setHardState(term, null);
  core.role = 'follower';
  core.leaderId = leaderId;
  core.votes.clear();
  core.candidacyWriteId = 0;
  core.transfer = null;
  if (leaderId !== null) core.leaderGone = false;
  if (!sameLeader) {
    forgetLeader(core);
    failReads(core, core.forwardedReads.giveUp());
  }
  if (wasLeader) leaveLeadership(core);
  resetElectionTimer(core);
}

/** What a follower knows of one leader's term says nothing of the next. */
function forgetLeader(core: CoreState): void {
  core.matchedIndex = 0;
  core.ackedIndex = 0;
  core.ackOwed = false;
  core.heardRound = 0;
  core.heardMatch = 0;
}

function leaveLeadership(core: CoreState): void {
  core.progress.clear();
  core.uncommittedBytes = 0;
  core.termStartIndex = 0;
  for (const origin of core.leaderReads.clear()) {
    if ('key' in origin) core.readAnswers.push({ key: origin.key, index: null });
    else core.send(origin.from, { type: 'readIndexReply', token: origin.token, index: null });
  }
}

export function failReads(core: CoreState, keys: readonly number[]): void {
  for (const key of keys) core.readAnswers.push({ key, index: null });
}

/** Asks whether an election could be won, without a new term (thesis, section 9.6). */
export function becomePreCandidate(core: CoreState): void {
  const { heartbeatMs } = core.limits;
  core.role = 'preCandidate';
  core.leaderId = null;
  core.votes.clear();
  failReads(core, core.forwardedReads.giveUp());
  resetElectionTimer(core);
  // The others may notice a little later that the leader is gone; asking again disturbs nobody.
  if (core.leaderGone) core.electionDeadlineMs = core.draw(Math.ceil(heartbeatMs / 2), heartbeatMs);
}

/** A new term with a vote for itself, which counts once it is on disk. */
export function becomeCandidate(core: CoreState): void {
  core.setHardState(core.term + 1, core.id);
  core.role = 'candidate';
  core.leaderId = null;
  core.votes.clear();
  core.candidacyWriteId = core.nextWriteId;
  forgetLeader(core);
  failReads(core, core.forwardedReads.giveUp());
  resetElectionTimer(core);
}

/** Leads: its no-op is what lets entries of earlier terms commit (paper, sections 5.4.2 and 8). */
export function becomeLeader(core: CoreState): void {
  if (core.role !== 'candidate') throw new RaftInvariantError(`a ${core.role} cannot become leader`);
  const { log } = core;
  core.role = 'leader';
  core.leaderId = core.id;
  core.leaderGone = false;
  core.candidacyWriteId = 0;
  core.heartbeatElapsedMs = core.limits.heartbeatMs;
  core.cutOffMs = 0;
  core.transfer = null;
  core.progress.clear();
  core.uncommittedBytes = log.bytesBetween(log.commitIndex, log.lastIndex);
  core.termStartIndex = log.lastIndex + 1;
  appendAsLeader(core, 'noop', [new Uint8Array(0)]);
  syncProgress(core);
  // Those that have just granted their vote are alive.
  for (const [id, progress] of core.progress) {
    if (core.votes.get(id) === true) progress.silentMs = 0;
  }
  for (const key of core.forwardedReads.clear()) core.leaderReads.ask({ key });
}

/** Appends to the leader's own log; answers the first index. */
export function appendAsLeader(core: CoreState, kind: EntryKind, data: readonly Uint8Array[]): number {
  const first = core.log.lastIndex + 1;
  const entries = data.map((bytes, at) => ({ index: first + at, term: core.term, kind, data: bytes }));
  for (const bytes of data) core.uncommittedBytes += bytes.length;
  core.log.append(entries);
  return first;
}

/** One progress for each peer of the newest configuration, in sorted order. */
export function syncProgress(core: CoreState): void {
  const before = core.progress;
  core.progress = new Map();
  for (const id of membersOf(core.log.configuration)) {
    if (id !== core.id) core.progress.set(id, before.get(id) ?? new Progress(core.log.lastIndex));
  }
}
