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
import { ownTermCommitted } from './replication.ts';
import { appendAsLeader, becomeFollower, syncProgress } from './roles.ts';
import type { Configuration } from './types.ts';

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
  return appendConfiguration(core, nextConfiguration(log.configuration, changes));
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
