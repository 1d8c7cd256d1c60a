import { RaftInvariantError } from './errors.ts';
import type { Configuration, MemberId } from './types.ts';

/** One step of a change of membership. */
export interface ConfigurationChange {
  readonly type: 'addVoter' | 'addLearner' | 'remove';
  readonly id: MemberId;
}

/** Why a change of membership cannot be made; the text is for the operator. */
export class ConfigurationRefusal extends Error {}

function byId(ids: Iterable<MemberId>): MemberId[] {
  return [...new Set(ids)].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
}

export function isJoint(configuration: Configuration): boolean {
  return configuration.outgoing.length > 0;
}

export function isVoter(configuration: Configuration, id: MemberId): boolean {
  return configuration.voters.includes(id) || configuration.outgoing.includes(id);
}

/** Everyone the leader replicates to, sorted. */
export function membersOf(configuration: Configuration): MemberId[] {
  const { voters, outgoing, learners, learnersNext } = configuration;
  return byId([...voters, ...outgoing, ...learners, ...learnersNext]);
}

interface Draft {
  readonly voters: Set<MemberId>;
  readonly outgoing: ReadonlySet<MemberId>;
  readonly learners: Set<MemberId>;
  readonly learnersNext: Set<MemberId>;
}

function draftOf(configuration: Configuration, outgoing: readonly MemberId[]): Draft {
  return {
    voters: new Set(configuration.voters),
    outgoing: new Set(outgoing),
    learners: new Set(configuration.learners),
    learnersNext: new Set(configuration.learnersNext),
  };
}

function applyChange(draft: Draft, { type, id }: ConfigurationChange): void {
  draft.voters.delete(id);
  draft.learners.delete(id);
  draft.learnersNext.delete(id);
  if (type === 'addVoter') draft.voters.add(id);
  // A voter of the outgoing half stays one until the joint configuration is left: it cannot be a learner as well.
  if (type === 'addLearner') (draft.outgoing.has(id) ? draft.learnersNext : draft.learners).add(id);
}

function finish(draft: Draft): Configuration {
  if (draft.voters.size === 0) throw new ConfigurationRefusal('the change would remove all voters');
  const next = {
    voters: byId(draft.voters),
    outgoing: byId(draft.outgoing),
    learners: byId(draft.learners),
    learnersNext: byId(draft.learnersNext),
  };
  for (const id of [...next.learners, ...next.learnersNext]) {
    if (next.voters.includes(id)) throw new RaftInvariantError(`${id} is both voter and learner`);
  }
  for (const id of next.learners) {
    if (next.outgoing.includes(id)) throw new RaftInvariantError(`${id} is learner and outgoing voter`);
  }
  return next;
}

/** A change of at most one voter, which needs no joint step: old and new majorities overlap (thesis, section 4.1). */
export function simpleChange(
  configuration: Configuration,
  changes: readonly ConfigurationChange[],
): Configuration {
  if (isJoint(configuration))
    throw new ConfigurationRefusal('a joint configuration must be left before another change');
  const draft = draftOf(configuration, []);
  for (const change of changes) applyChange(draft, change);
  const next = finish(draft);
  const changed =
    next.voters.filter((id) => !configuration.voters.includes(id)).length +
    configuration.voters.filter((id) => !next.voters.includes(id)).length;
  if (changed > 1)
    throw new ConfigurationRefusal('more than one voter changes: a joint configuration is needed');
  return next;
}

/** The first half of a change of any size: both majorities decide from here on (paper, section 6). */
export function enterJoint(
  configuration: Configuration,
  changes: readonly ConfigurationChange[],
): Configuration {
  if (isJoint(configuration)) throw new ConfigurationRefusal('the configuration is joint already');
  if (configuration.voters.length === 0)
    throw new ConfigurationRefusal('a configuration without voters cannot become joint');
  const draft = draftOf(configuration, configuration.voters);
  for (const change of changes) applyChange(draft, change);
  return finish(draft);
}

/** The second half: the outgoing voters go, and those demoted become learners. */
export function leaveJoint(configuration: Configuration): Configuration {
  if (!isJoint(configuration)) throw new ConfigurationRefusal('the configuration is not joint');
  return {
    voters: configuration.voters,
    outgoing: [],
    learners: byId([...configuration.learners, ...configuration.learnersNext]),
    learnersNext: [],
  };
}

/** The simple change where that is enough, the joint one otherwise. */
export function nextConfiguration(
  configuration: Configuration,
  changes: readonly ConfigurationChange[],
): Configuration {
  const target = leaveJoint(enterJoint(configuration, changes));
  const moved = [...target.voters, ...configuration.voters].filter(
    (id) => target.voters.includes(id) !== configuration.voters.includes(id),
  );
  return moved.length > 1 ? enterJoint(configuration, changes) : simpleChange(configuration, changes);
}

/** A configuration entry's data: JSON with sorted ids. */
export function encodeConfiguration(configuration: Configuration): Uint8Array {
  const { voters, outgoing, learners, learnersNext } = configuration;
  return new TextEncoder().encode(JSON.stringify({ voters, outgoing, learners, learnersNext }));
}

export function decodeConfiguration(data: Uint8Array): Configuration {
  const parsed: unknown = JSON.parse(new TextDecoder().decode(data));
  const ids = (key: keyof Configuration): MemberId[] => {
    const list: unknown =
      typeof parsed === 'object' && parsed !== null ? Reflect.get(parsed, key) : undefined;
    if (!Array.isArray(list) || !list.every((id): id is MemberId => typeof id === 'string')) {
      throw new RaftInvariantError(`a configuration entry has no list of ids in ${key}`);
    }
    return list;
  };
  return {
    voters: ids('voters'),
    outgoing: ids('outgoing'),
    learners: ids('learners'),
    learnersNext: ids('learnersNext'),
  };
}
