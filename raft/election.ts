import { isVoter } from './configuration.ts';
import type { CoreState } from './core-state.ts';
import { voteResult } from './quorum.ts';
import {
  becomeCandidate,
  becomeFollower,
  becomeLeader,
  becomePreCandidate,
  resetElectionTimer,
} from './roles.ts';
import type { MemberId, Message } from './types.ts';

type Of<T extends Message['type']> = Extract<Message, { type: T }>;

export function tickElection(core: CoreState, elapsedMs: number): void {
  core.electionElapsedMs += elapsedMs;
  if (core.electionElapsedMs < core.electionDeadlineMs) return;
  if (mayStand(core)) standForPreVote(core);
  else resetElectionTimer(core);
}

/**
 * A voter that holds all it ever acknowledged. One whose removal is in its log and not known to be committed
 * still stands: it may be the only member that can commit the removal (thesis, section 4.2.2). Its vote for
 * itself does not count then.
 */
export function mayStand(core: CoreState): boolean {
  const { log, id, lostThrough } = core;
  const votes = isVoter(log.configuration, id) || isVoter(log.configurationAt(log.commitIndex), id);
  return votes && lostThrough === 0;
}

function peersToAsk(core: CoreState): MemberId[] {
  const { voters, outgoing } = core.log.configuration;
  return [...new Set([...voters, ...outgoing])]
    .filter((id) => id !== core.id)
    .sort((a, b) => (a < b ? -1 : 1));
}

function standForPreVote(core: CoreState): void {
  becomePreCandidate(core);
  core.votes.set(core.id, true);
  const { lastIndex, lastTerm } = core.log;
  for (const peer of peersToAsk(core))
    core.send(peer, { type: 'preVote', lastIndex, lastTerm }, core.term + 1);
  decide(core);
}

/** Starts a real election. The requests leave once term, vote and the log they speak for are on disk. */
export function stand(core: CoreState, transfer: boolean): void {
  becomeCandidate(core);
  const { lastIndex, lastTerm } = core.log;
  for (const peer of peersToAsk(core)) {
    core.sendAfter(core.candidacyWriteId, peer, { type: 'vote', lastIndex, lastTerm, transfer });
  }
}

/** The write with the own vote is durable. */
export function ownVoteWritten(core: CoreState): void {
  if (core.role !== 'candidate' || core.candidacyWriteId === 0 || core.candidacyWriteId > core.writtenId)
    return;
  core.candidacyWriteId = 0;
  core.votes.set(core.id, true);
  decide(core);
}

function decide(core: CoreState): void {
  const result = voteResult(core.log.configuration, core.votes);
  if (result === 'lost') becomeFollower(core, core.term, null);
  if (result !== 'won') return;
  if (core.role === 'preCandidate') stand(core, false);
  else becomeLeader(core);
}

/**
 * Whether this member still hears a leader and so refuses to help replace it (thesis, section 4.2.3). The
 * leader itself may always ask (hazard 8).
 */
function isSticky(core: CoreState, candidate: MemberId): boolean {
  if (core.role === 'leader') return true;
  if (core.leaderId === null || core.leaderId === candidate) return false;
  return core.electionElapsedMs < core.limits.electionTimeoutMs;
}

export function handlePreVote(core: CoreState, message: Of<'preVote'>): void {
  const { from, lastIndex, lastTerm } = message;
  const refused =
    message.term <= core.term ||
    core.lostThrough > 0 ||
    isSticky(core, from) ||
    !core.log.isUpToDate(lastIndex, lastTerm);
  if (refused) {
    core.send(from, { type: 'preVoteReply', granted: false });
    return;
  }
  core.send(from, { type: 'preVoteReply', granted: true }, message.term);
  yieldTo(core, message);
}

/**
 * Of two that ask at once, the one with the lesser claim waits, so that they do not split the vote. Once a term:
 * the other may be one that cannot reach a quorum and asks for ever.
 */
function yieldTo(core: CoreState, { from, lastIndex, lastTerm }: Of<'preVote'>): void {
  if (core.role !== 'preCandidate' || core.yieldedInTerm === core.term) return;
  const same = lastIndex === core.log.lastIndex && lastTerm === core.log.lastTerm;
  if (same && from > core.id) return;
  core.yieldedInTerm = core.term;
  becomeFollower(core, core.term, null);
}

/** Refuses without taking on the candidate's term (thesis, section 4.2.3). */
export function refusesToHear(core: CoreState, message: Of<'vote'>): boolean {
  if (message.transfer || !isSticky(core, message.from)) return false;
  core.send(message.from, { type: 'voteReply', granted: false });
  return true;
}

/** One vote a term, durable before it is given; a repeated request gets the same answer (paper, figure 2). */
export function handleVote(core: CoreState, message: Of<'vote'>): void {
  const { from, lastIndex, lastTerm } = message;
  const free = core.votedFor === from || (core.votedFor === null && core.leaderId === null);
  if (!free || core.lostThrough > 0 || !core.log.isUpToDate(lastIndex, lastTerm)) {
    core.send(from, { type: 'voteReply', granted: false });
    return;
  }
  core.setHardState(core.term, from);
  resetElectionTimer(core);
  core.sendAfter(core.hardStateWriteId, from, { type: 'voteReply', granted: true });
}

export function handlePreVoteReply(core: CoreState, message: Of<'preVoteReply'>): void {
  if (!message.granted && message.term > core.term) {
    becomeFollower(core, message.term, null);
    return;
  }
  if (core.role !== 'preCandidate' || (message.granted && message.term !== core.term + 1)) return;
  if (!core.votes.has(message.from)) core.votes.set(message.from, message.granted);
  decide(core);
}

export function handleVoteReply(core: CoreState, message: Of<'voteReply'>): void {
  if (core.role !== 'candidate') return;
  if (!core.votes.has(message.from)) core.votes.set(message.from, message.granted);
  decide(core);
}

/**
 * The leader hands over: stand at once, no pre-vote (thesis, section 3.10). A request that comes late is void:
 * the leader has appended or sent heartbeats since, so it may have given the transfer up.
 */
export function handleTimeoutNow(core: CoreState, message: Of<'timeoutNow'>): void {
  const { lastIndex, round } = message;
  const isLate = core.log.lastIndex !== lastIndex || core.heardRound > round;
  const follows = core.role === 'follower' && core.leaderId === message.from;
  if (follows && !isLate && mayStand(core)) stand(core, true);
}

/** The leader's process is gone: its socket closed and did not open again, or it is a new process. */
export function leaderIsGone(core: CoreState): void {
  core.leaderGone = true;
  core.leaderId = null;
  core.electionDeadlineMs = core.electionElapsedMs + core.draw(1, core.limits.failoverJitterMs);
}
