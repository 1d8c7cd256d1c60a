import { describe, expect, test } from 'vitest';
import { committedIndex, isQuorum, voteResult } from '../../raft/quorum.ts';
import { hasPeerData, peerCases, type PeerCase } from './support/peer-data.ts';

const voters = (...ids: string[]) => ({ voters: ids, outgoing: [] as string[] });

describe('quorum arithmetic', () => {
  test('a majority of an even group is more than half', () => {
    const match: Record<string, number> = { a: 4, b: 4, c: 3, d: 3 };
    expect(committedIndex(voters('a', 'b', 'c', 'd'), (id) => match[id] ?? 0)).toBe(3);
    expect(isQuorum(voters('a', 'b', 'c', 'd'), (id) => id < 'c')).toBe(false);
    expect(isQuorum(voters('a', 'b', 'c', 'd'), (id) => id < 'd')).toBe(true);
  });

  test('a joint configuration needs a majority of both halves (paper, section 6)', () => {
    const joint = { voters: ['a', 'b', 'c'], outgoing: ['c', 'd', 'e'] };
    const match: Record<string, number> = { a: 9, b: 9, c: 9, d: 1, e: 2 };
    expect(committedIndex(joint, (id) => match[id] ?? 0)).toBe(2);
    const votes = new Map([
      ['a', true],
      ['b', true],
      ['d', false],
      ['e', false],
    ] as const);
    expect(voteResult(joint, votes)).toBe('lost');
    expect(
      voteResult(
        joint,
        new Map([
          ['a', true],
          ['c', true],
          ['d', true],
        ] as const),
      ),
    ).toBe('won');
  });
});

const ids = (text: string | undefined): string[] =>
  text === undefined || text === 'zero' ? [] : text.split(/[\s,]+/).filter((id) => id !== '');

/** etcd gives one value to each id, in order of first mention: of the first half, then of the second. */
function assigned(
  each: PeerCase,
  key: string,
): { voters: string[]; outgoing: string[]; values: Map<string, string> } {
  const own = ids(each.args.get('cfg'));
  const outgoing = ids(each.args.get('cfgj'));
  const values = ids(each.args.get(key));
  const named = [...new Set([...own, ...outgoing])];
  return { voters: own, outgoing, values: new Map(named.map((id, at) => [id, values[at] ?? '_'])) };
}

function answer(each: PeerCase): string {
  if (each.command === 'committed') {
    const { values, ...configuration } = assigned(each, 'idx');
    const reached = committedIndex(configuration, (id) =>
      Number(values.get(id) === '_' ? 0 : values.get(id)),
    );
    return reached === Infinity ? '∞' : String(reached);
  }
  const { values, ...configuration } = assigned(each, 'votes');
  const votes = new Map(
    [...values].filter(([, vote]) => vote !== '_').map(([id, vote]) => [id, vote === 'y']),
  );
  return { won: 'VoteWon', lost: 'VoteLost', pending: 'VotePending' }[voteResult(configuration, votes)];
}

describe.skipIf(!hasPeerData('quorum'))(
  "etcd's quorum cases (skipped where the peers' data are not beside the project)",
  () => {
    const cases = hasPeerData('quorum') ? peerCases('quorum') : [];

    test('all 127 are there', () => expect(cases).toHaveLength(127));

    test.each(cases.map((each) => [`${each.file}:${each.line}`, each] as const))('%s', (_name, each) => {
      const last = each.expected.split('\n').at(-1) ?? '';
      expect(answer(each)).toBe(last.endsWith('∞') ? '∞' : last);
    });
  },
);
