import {
  ConfigurationRefusal,
  encodeConfiguration,
  isJoint,
  isVoter,
  leaveJoint,
  nextConfiguration,
  type ConfigurationChange,
} from './configuration.ts';
import type { CoreState } from './core-state.ts';
import { isQuorum } from './quorum.ts';
import { ownTermCommitted } from './replication.ts';
import { appendAsLeader, becomeFollower, syncProgress } from './roles.ts';
import type { Configuration, MemberId } from './types.ts';

/**
 * Appends a change of membership, in force from its append on (paper, section 6). One at a time, and none
 * before the own term's no-op is committed (hazard 27). Answers the entry's index; throws `ConfigurationRefusal`.
 */
export function proposeChange(core: CoreState, changes: readonly ConfigurationChange[]): number {
  const { log } = core;
  if (core.role !== 'leader') throw new ConfigurationRefusal('this member does not lead');
  if (!ownTermCommitted(core)) throw new ConfigurationRefusal('the no-op of this term is not committed yet');
  if (log.configurationIndex > log.commitIndex || isJoint(log.configuration)) {
    throw new ConfigurationRefusal(`the change at entry ${log.configurationIndex} is not finished`);
  }
  if (core.transfer !== null)
    throw new ConfigurationRefusal(`the leadership is being handed to ${core.transfer.to}`);
  for (const change of changes) mayChange(core, change);
  const next = nextConfiguration(log.configuration, changes);
  mayCommit(core, next);
  return appendConfiguration(core, next);
}

/** Learner first: a voter that lacks the log could stall every commit (thesis, section 4.2.1; hazard 29). */
function mayChange(core: CoreState, { type, id }: ConfigurationChange): void {
  const { configuration, commitIndex } = core.log;
  if (type !== 'addVoter' || isVoter(configuration, id)) return;
  if (!configuration.learners.includes(id))
    throw new ConfigurationRefusal(`${id} must be a learner before it votes`);
  const progress = core.progress.get(id);
  const match = progress?.state === 'replicate' ? progress.match : 0;
  if (match < commitIndex)
    throw new ConfigurationRefusal(
      `${id} has ${match} of ${commitIndex} committed entries: it must catch up first`,
    );
  if (!isReached(core, id))
    throw new ConfigurationRefusal(`${id} does not answer: start it again, or check its network`);
}

/** A leader cannot take a change back: without a quorum of the new voters nothing would commit any more. */
function mayCommit(core: CoreState, next: Configuration): void {
  if (isQuorum(next, (id) => isReached(core, id))) return;
  const silent = next.voters.filter((id) => !isReached(core, id));
  throw new ConfigurationRefusal(
    `${silent.join(' and ')} would vote and cannot be reached: without them nothing would commit`,
  );
}

function isReached(core: CoreState, id: MemberId): boolean {
  if (id === core.id) return true;
  return core.progress.get(id)?.isActive(core.limits) === true && !core.downPeers.has(id);
}

export function appendConfiguration(core: CoreState, configuration: Configuration): number {
  const index = appendAsLeader(core, 'config', [encodeConfiguration(configuration)]);
  syncProgress(core);
  core.commitMayAdvance = true;
  return index;
}

/** A committed joint configuration is left at once. */
export function finishChange(core: CoreState): void {
  const { log } = core;
  if (log.configurationIndex <= log.commitIndex && isJoint(log.configuration)) {
    appendConfiguration(core, leaveJoint(log.configuration));
  }
}

/** A leader that a committed change removed steps down, after its peers were told of the commit (paper, section 6). */
export function leaveIfRemoved(core: CoreState): void {
  const { log } = core;
  if (core.role !== 'leader' || log.configurationIndex > log.commitIndex) return;
  if (!isVoter(log.configuration, core.id)) becomeFollower(core, core.term, null);
}
