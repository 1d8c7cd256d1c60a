import type { CoreState } from './core-state.ts';
import type { Progress } from './progress.ts';
import { committedIndex } from './quorum.ts';
import type { Entry, MemberId, Message } from './types.ts';

type Of<T extends Message['type']> = Extract<Message, { type: T }>;

/** One run of entries, so that peers at the same place share it. */
interface SharedRun {
  from: number;
  entries: readonly Entry[];
  bytes: number;
}

/** Sends every peer what it lacks, as far as its window allows. */
export function sendAppends(core: CoreState): void {
  const shared: SharedRun = { from: 0, entries: [], bytes: 0 };
  for (const [peer, progress] of core.progress) sendTo(core, peer, progress, shared);
}

function sendTo(core: CoreState, peer: MemberId, progress: Progress, shared: SharedRun): void {
  const { log, limits } = core;
  while (!progress.isPaused(limits.maxInflightMessages, limits.maxInflightBytes)) {
    const hasNews = progress.next <= log.lastIndex || progress.sentCommit < log.commitIndex;
    if (progress.state === 'replicate' && !hasNews) return;
    if (progress.next < log.firstIndex) {
      sendSnapshot(core, peer, progress);
      return;
    }
    const run = runFrom(core, progress.next, shared);
    sendAppend(core, peer, progress, run.entries);
    if (progress.state === 'probe') {
      progress.probeSent = true;
    } else if (run.entries.length > 0) {
      progress.next += run.entries.length;
      progress.inflight.add(progress.next - 1, run.bytes);
    }
  }
}

function runFrom(core: CoreState, from: number, shared: SharedRun): SharedRun {
  const { log, limits } = core;
  if (shared.from === from) return shared;
  const budget = { maxEntries: limits.maxAppendEntries, maxBytes: limits.maxAppendBytes };
  shared.from = from;
  shared.entries = log.slice(from, log.lastIndex, budget);
  shared.bytes = 0;
  for (const entry of shared.entries) shared.bytes += entry.data.length;
  return shared;
}

function sendAppend(core: CoreState, peer: MemberId, progress: Progress, entries: readonly Entry[]): void {
  const prevIndex = progress.next - 1;
  const prevTerm = core.log.termAt(prevIndex) ?? 0;
  const commit = core.log.commitIndex;
  progress.sentCommit = commit;
  progress.sinceAppendMs = 0;
  core.send(peer, { type: 'append', prevIndex, prevTerm, commit, entries });
}

/** A follower behind the log's beginning gets the whole snapshot, once it is known to listen. */
function sendSnapshot(core: CoreState, peer: MemberId, progress: Progress): void {
  const { snapshot } = core.log;
  if (snapshot === null || !(progress.isActive(core.limits) || progress.lost)) {
    progress.probeSent = true;
    return;
  }
  progress.becomeSnapshot(snapshot.meta.index);
  core.send(peer, { type: 'snapshot', snapshot });
}

/** Begins a round of heartbeats: it shows who leads, carries the commit and confirms reads. */
export function sendHeartbeats(core: CoreState): void {
  const { log } = core;
  core.heartbeatElapsedMs = 0;
  const round = core.leaderReads.begin(ownTermCommitted(core) ? log.commitIndex : null);
  for (const [peer, progress] of core.progress) {
    core.send(peer, { type: 'heartbeat', commit: Math.min(progress.match, log.commitIndex), round });
  }
}

/** Until its no-op commits a new leader does not know what is committed (paper, section 8; hazard 2). */
export function ownTermCommitted(core: CoreState): boolean {
  return core.log.commitIndex >= core.termStartIndex;
}

export function handleAppendReply(core: CoreState, message: Of<'appendReply'>): void {
  const progress = core.progress.get(message.from);
  if (progress === undefined || message.index > core.log.lastIndex) return;
  const agreeing = core.log.lastIndexWithTermAtMost(message.hintIndex, message.hintTerm);
  if (message.lost) {
    handleLost(core, message, progress, agreeing);
    return;
  }
  if (!message.success) {
    if (progress.lost) return;
    progress.silentMs = 0;
    const backedOff = progress.backOff(message.index, agreeing);
    // An old refusal; or its log was never compared with this leader's, and it asks for that.
    if (!backedOff && progress.state === 'replicate') {
      progress.probeSent = true;
      compareEnd(core, message.from, progress);
    }
    return;
  }
  progress.lost = false;
  progress.silentMs = 0;
  const advanced = progress.acknowledge(message.index);
  const meets = progress.state === 'probe' && progress.match === message.index;
  const restored = progress.state === 'snapshot' && progress.match + 1 >= core.log.firstIndex;
  if (meets || restored) progress.becomeReplicate();
  if (advanced) core.commitMayAdvance = true;
}

export function handleHeartbeatReply(core: CoreState, message: Of<'heartbeatReply'>): void {
  const progress = core.progress.get(message.from);
  if (progress === undefined || progress.lost) return;
  progress.silentMs = 0;
  progress.ackedRound = Math.max(progress.ackedRound, Math.min(message.round, core.leaderReads.round));
  if (progress.state === 'replicate') progress.probeSent = false;
  if (progress.sinceAppendMs < core.limits.heartbeatMs) return;
  // What was sent may be lost.
  if (progress.state === 'probe') repeatProbe(core, message.from, progress);
  else if (progress.state === 'replicate' && progress.match < core.log.lastIndex)
    compareEnd(core, message.from, progress);
}

/** It counts for nothing until it holds again what it lost, and is sent that all the same (hazard 18). */
function handleLost(core: CoreState, message: Of<'appendReply'>, progress: Progress, agreeing: number): void {
  if (!progress.lost) progress.startOver(agreeing);
  else if (message.success) progress.follows(message.index);
  else if (agreeing < message.index) progress.backOff(message.index, agreeing);
  else if (progress.state === 'probe' && progress.sinceAppendMs >= core.limits.electionTimeoutMs)
    repeatProbe(core, message.from, progress);
}

/** The probe may be lost. Its repetition carries no entries: on a slow link the first one is still on its way. */
function repeatProbe(core: CoreState, peer: MemberId, progress: Progress): void {
  // Nothing was sent, or the log begins after it by now: the snapshot may go.
  if (!progress.probeSent || progress.next < core.log.firstIndex) progress.probeSent = false;
  else {
    progress.repeatsProbe();
    sendAppend(core, peer, progress, []);
  }
}

/** Finds out whether the peer holds what was sent to it: an append without entries at the end of that. */
function compareEnd(core: CoreState, peer: MemberId, progress: Progress): void {
  if (progress.next >= core.log.firstIndex) sendAppend(core, peer, progress, []);
  // The log begins after it by now: from its match on it is given the snapshot.
  else progress.becomeProbe();
}

/** Only an entry of the leader's own term commits by counting; those before it commit with it (paper, 5.4.2; hazard 14). */
export function advanceCommit(core: CoreState): void {
  if (!core.commitMayAdvance) return;
  core.commitMayAdvance = false;
  const { log } = core;
  const before = log.commitIndex;
  const reached = committedIndex(log.configuration, (id) => matchOf(core, id));
  if (reached <= before || log.termAt(reached) !== core.term) return;
  log.commitTo(reached);
  core.uncommittedBytes -= log.bytesBetween(before, reached);
  core.leaderCommit = Math.max(core.leaderCommit, reached);
}

/** A leader's own entries count once they are on its disk. */
function matchOf(core: CoreState, id: MemberId): number {
  if (id === core.id) return core.log.durableIndex;
  return core.progress.get(id)?.match ?? 0;
}

/** Answers what a quorum has confirmed, and begins the round that the others wait for. */
export function confirmReads(core: CoreState): void {
  answerConfirmed(core);
  if (!core.leaderReads.wantsRound() || !ownTermCommitted(core)) return;
  sendHeartbeats(core);
  // A leader that is a quorum by itself confirms its own round.
  answerConfirmed(core);
}

function answerConfirmed(core: CoreState): void {
  const ackedRound = (id: MemberId): number =>
    id === core.id ? core.leaderReads.round : (core.progress.get(id)?.ackedRound ?? 0);
  for (const { origin, index } of core.leaderReads.confirm(core.log.configuration, ackedRound)) {
    if ('key' in origin) core.readAnswers.push({ key: origin.key, index });
    else core.send(origin.from, { type: 'readIndexReply', token: origin.token, index });
  }
}

export function handleReadIndex(core: CoreState, message: Of<'readIndex'>): void {
  const { from, token } = message;
  if (core.role === 'leader' && core.leaderReads.size < core.limits.maxPendingReads)
    core.leaderReads.ask({ from, token });
  else core.send(from, { type: 'readIndexReply', token, index: null });
}
