import type { Configuration, MemberId } from './types.ts';

export type VoteResult = 'won' | 'lost' | 'pending';

type Voters = Pick<Configuration, 'voters' | 'outgoing'>;

/** The highest index that a majority has reached; `Infinity` for no voters, so that an empty half decides nothing. */
function majorityIndex(voters: readonly MemberId[], indexOf: (id: MemberId) => number): number {
  if (voters.length === 0) return Infinity;
  const indexes = voters.map(indexOf).sort((a, b) => b - a);
  return indexes[voters.length >> 1] ?? 0;
}

function majorityVote(voters: readonly MemberId[], votes: ReadonlyMap<MemberId, boolean>): VoteResult {
  const needed = (voters.length >> 1) + 1;
  let granted = 0;
  let refused = 0;
  for (const id of voters) {
    const vote = votes.get(id);
    if (vote === true) granted += 1;
    else if (vote === false) refused += 1;
  }
  if (voters.length === 0 || granted >= needed) return 'won';
  return voters.length - refused < needed ? 'lost' : 'pending';
}

/** What is reached by a majority of both halves of a (possibly joint) configuration (paper, section 6). */
export function committedIndex(configuration: Voters, indexOf: (id: MemberId) => number): number {
  return Math.min(
    majorityIndex(configuration.voters, indexOf),
    majorityIndex(configuration.outgoing, indexOf),
  );
}

/** Whether an election is decided; a joint one needs both halves. */
export function voteResult(configuration: Voters, votes: ReadonlyMap<MemberId, boolean>): VoteResult {
  const incoming = majorityVote(configuration.voters, votes);
  const outgoing = majorityVote(configuration.outgoing, votes);
  if (incoming === 'lost' || outgoing === 'lost') return 'lost';
  return incoming === 'won' && outgoing === 'won' ? 'won' : 'pending';
}

/** Whether those for whom `holds` is true are a quorum. */
export function isQuorum(configuration: Voters, holds: (id: MemberId) => boolean): boolean {
  return committedIndex(configuration, (id) => (holds(id) ? 1 : 0)) >= 1;
}
