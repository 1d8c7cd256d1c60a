import type { CoreState } from './core-state.ts';
import { RaftInvariantError } from './errors.ts';
import { becomeFollower, failReads } from './roles.ts';
import type { Entry, MemberId, Message } from './types.ts';

type Of<T extends Message['type']> = Extract<Message, { type: T }>;

/** The leader of this term speaks. */
function hear(core: CoreState, leader: MemberId): void {
  if (core.role === 'leader')
    throw new RaftInvariantError(`${leader} leads term ${core.term} as well as ${core.id}`);
  if (core.role === 'follower' && core.leaderId === leader) core.electionElapsedMs = 0;
  else becomeFollower(core, core.term, leader);
}

export function handleAppend(core: CoreState, message: Of<'append'>): void {
  hear(core, message.from);
  const { log } = core;
  core.leaderCommit = Math.max(core.leaderCommit, message.commit);
  const rest = withoutCommitted(core, message);
  if (rest !== null) {
    if (log.termAt(rest.prevIndex) !== rest.prevTerm) {
      if (message.prevIndex <= core.heardMatch)
        core.lostThrough = Math.max(core.lostThrough, core.heardMatch);
      reject(core, message.from, message.prevIndex, message.prevTerm);
      return;
    }
    appendNew(core, rest.entries);
  }
  const lastNew = message.prevIndex + message.entries.length;
  core.matchedIndex = Math.max(core.matchedIndex, lastNew, rest === null ? log.commitIndex : 0);
  log.commitTo(Math.min(message.commit, lastNew));
  core.ackOwed = true;
}

/** The part of an append past the commit; what is committed here is equal at every leader (hazard 21). `null`: nothing is left. */
function withoutCommitted(
  core: CoreState,
  message: Of<'append'>,
): Pick<Of<'append'>, 'prevIndex' | 'prevTerm' | 'entries'> | null {
  const { log } = core;
  const { prevIndex, prevTerm, entries } = message;
  if (prevIndex >= log.commitIndex) return message;
  mustAgree(core, prevIndex, prevTerm);
  const last = entries[log.commitIndex - prevIndex - 1];
  if (last === undefined) return null;
  mustAgree(core, last.index, last.term);
  return {
    prevIndex: last.index,
    prevTerm: last.term,
    entries: entries.slice(log.commitIndex - prevIndex),
  };
}

function mustAgree(core: CoreState, index: number, term: number): void {
  const own = core.log.termAt(index);
  if (own !== null && own !== term) {
    throw new RaftInvariantError(
      `entry ${index} is committed with term ${own} here and has term ${term} at the leader`,
    );
  }
}

/** Appends what is missing. Only a true conflict truncates: a late append leaves what follows it (hazard 15). */
function appendNew(core: CoreState, entries: readonly Entry[]): void {
  const { log } = core;
  let known = 0;
  for (const entry of entries) {
    if (log.termAt(entry.index) !== entry.term) break;
    known += 1;
  }
  const first = entries[known];
  if (first === undefined) return;
  if (first.index <= log.lastIndex) {
    if (first.index <= core.matchedIndex)
      throw new RaftInvariantError(`the leader of term ${core.term} changed its entry ${first.index}`);
    log.truncateFrom(first.index);
  }
  log.append(known === 0 ? entries : entries.slice(known));
}

/** Says where the logs may still agree: at the last entry of the refused term or an earlier one (paper, end of 5.3). */
function reject(core: CoreState, to: MemberId, index: number, prevTerm: number): void {
  const { log } = core;
  const hintIndex = Math.max(
    log.commitIndex,
    log.lastIndexWithTermAtMost(Math.min(index, log.lastIndex), prevTerm),
  );
  const hintTerm = log.termAt(hintIndex) ?? 0;
  core.send(to, {
    type: 'appendReply',
    success: false,
    index,
    hintIndex,
    hintTerm,
    lost: core.lostThrough > 0,
  });
}

/** A member that lost entries says what it has: after an append as far as that made it equal, otherwise where its log ends. */
function askAgain(core: CoreState, leader: MemberId, appended: boolean): void {
  const { log } = core;
  const hintIndex = appended ? core.matchedIndex : Math.min(log.lastIndex, log.durableIndex);
  core.send(leader, {
    type: 'appendReply',
    success: appended,
    index: hintIndex,
    hintIndex,
    hintTerm: log.termAt(hintIndex) ?? 0,
    lost: true,
  });
}

/**
 * Acknowledges what is equal to the leader's log *and* on disk. The answer is made from the log as it stands
 * when it leaves, so no earlier entry that was replaced since is ever acknowledged (hazards 16 and 19).
 */
export function answerLeader(core: CoreState): void {
  const { log, leaderId } = core;
  if (core.role !== 'follower' || leaderId === null || !core.hardStateIsDurable) return;
  const index = Math.min(core.matchedIndex, log.durableIndex);
  const whole = core.matchedIndex <= log.durableIndex;
  if (core.lostThrough > 0 && index >= core.lostThrough) core.lostThrough = 0;
  if (core.lostThrough > 0) {
    if (core.ackOwed && whole) {
      core.ackOwed = false;
      askAgain(core, leaderId, true);
    }
    return;
  }
  // An append is answered once all of it is on disk; a long one also as each write of it ends.
  const gained = core.durableAdvanced && index > core.ackedIndex;
  core.durableAdvanced = false;
  if (!gained && !(core.ackOwed && whole)) return;
  core.send(leaderId, {
    type: 'appendReply',
    success: true,
    index,
    hintIndex: 0,
    hintTerm: 0,
    lost: false,
  });
  core.ackedIndex = Math.max(core.ackedIndex, index);
  if (whole) core.ackOwed = false;
}

/**
 * A heartbeat's commit is never past what this member acknowledged in this term: where the log is shorter, the
 * disk has lost something. It does not crash on it; it counts for nothing until it holds the entries again
 * (hazard 18). A log that is long enough may still differ, after a restart from an older disk: nothing commits
 * before it was compared with this leader's.
 */
export function handleHeartbeat(core: CoreState, message: Of<'heartbeat'>): void {
  hear(core, message.from);
  core.leaderCommit = Math.max(core.leaderCommit, message.commit);
  core.heardRound = Math.max(core.heardRound, message.round);
  core.heardMatch = Math.max(core.heardMatch, message.commit);
  if (message.commit > core.log.lastIndex) core.lostThrough = Math.max(core.lostThrough, message.commit);
  if (core.lostThrough > 0) {
    askAgain(core, message.from, false);
    return;
  }
  core.log.commitTo(Math.min(message.commit, core.matchedIndex));
  if (message.commit > core.log.commitIndex) reject(core, message.from, message.commit, core.term);
  core.sendAfter(core.hardStateWriteId, message.from, {
    type: 'heartbeatReply',
    round: message.round,
  });
}

export function handleSnapshot(core: CoreState, message: Of<'snapshot'>): void {
  hear(core, message.from);
  const { log } = core;
  const { index, term } = message.snapshot.meta;
  core.leaderCommit = Math.max(core.leaderCommit, index);
  core.ackOwed = true;
  if (index <= log.commitIndex) {
    core.matchedIndex = Math.max(core.matchedIndex, log.commitIndex);
    return;
  }
  core.matchedIndex = Math.max(core.matchedIndex, index);
  if (log.termAt(index) === term) {
    log.commitTo(index);
    return;
  }
  log.install(message.snapshot);
  core.snapshotToWrite = message.snapshot;
  core.snapshotToRestore = message.snapshot;
}

export function handleReadIndexReply(core: CoreState, message: Of<'readIndexReply'>): void {
  if (core.role !== 'follower' || message.from !== core.leaderId) return;
  if (message.index !== null) core.leaderCommit = Math.max(core.leaderCommit, message.index);
  for (const key of core.forwardedReads.settle(message.token))
    core.readAnswers.push({ key, index: message.index });
}

/** Asks the leader for the reads that wait here. */
export function askForReads(core: CoreState): void {
  if (core.role !== 'follower' || core.leaderId === null) return;
  const token = core.forwardedReads.begin();
  if (token !== null) core.send(core.leaderId, { type: 'readIndex', token });
}

export function tickForwardedReads(core: CoreState, elapsedMs: number): void {
  failReads(core, core.forwardedReads.expire(elapsedMs, core.limits.electionTimeoutMs / 2));
}
