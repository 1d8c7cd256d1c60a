import { describe, expect, test } from 'vitest';
import {
  ConfigurationRefusal,
  decodeConfiguration,
  encodeConfiguration,
  enterJoint,
  leaveJoint,
  nextConfiguration,
  simpleChange,
  type ConfigurationChange,
} from '../../raft/configuration.ts';
import type { Configuration } from '../../raft/index.ts';
import { hasPeerData, peerCases, type PeerCase } from './support/peer-data.ts';

const EMPTY: Configuration = { voters: [], outgoing: [], learners: [], learnersNext: [] };
const THREE: Configuration = { ...EMPTY, voters: ['a', 'b', 'c'] };

describe('changes of membership', () => {
  test('one voter changes in one step, more need a joint configuration', () => {
    expect(nextConfiguration(THREE, [{ type: 'remove', id: 'c' }])).toEqual({ ...EMPTY, voters: ['a', 'b'] });
    expect(
      nextConfiguration(THREE, [
        { type: 'addVoter', id: 'd' },
        { type: 'remove', id: 'c' },
      ]),
    ).toEqual({ ...EMPTY, voters: ['a', 'b', 'd'], outgoing: ['a', 'b', 'c'] });
  });

  test('a configuration survives its encoding, and nonsense is a fault', () => {
    const joint = enterJoint(THREE, [{ type: 'addLearner', id: 'c' }]);
    expect(decodeConfiguration(encodeConfiguration(joint))).toEqual(joint);
    expect(() => decodeConfiguration(new TextEncoder().encode('{"voters":[1]}'))).toThrow(
      /no list of ids in voters/,
    );
  });
});

const TYPES: Record<string, ConfigurationChange['type']> = { v: 'addVoter', l: 'addLearner', r: 'remove' };

/** `u` (update) carries a blob past Raft and changes nothing; id 0 means nobody. */
function changesOf(body: string): ConfigurationChange[] {
  return body
    .split(/\s+/)
    .map((word) => ({ type: TYPES[word.slice(0, 1)], id: word.slice(1) }))
    .flatMap(({ type, id }) => (type === undefined || id === '0' ? [] : [{ type, id }]));
}

const numeric = (ids: readonly string[]) => [...ids].sort((a, b) => Number(a) - Number(b)).join(' ');

function described(configuration: Configuration): string {
  const { voters, outgoing, learners, learnersNext } = configuration;
  let text = `voters=(${numeric(voters)})`;
  if (outgoing.length > 0) text += `&&(${numeric(outgoing)})`;
  if (learners.length > 0) text += ` learners=(${numeric(learners)})`;
  if (learnersNext.length > 0) text += ` learners_next=(${numeric(learnersNext)})`;
  return text;
}

function next(before: Configuration, each: PeerCase): Configuration {
  const changes = changesOf(each.body);
  if (each.command === 'leave-joint') return leaveJoint(before);
  return each.command === 'enter-joint' ? enterJoint(before, changes) : simpleChange(before, changes);
}

const REFUSALS: Record<string, RegExp> = {
  'config is already joint': /joint already/,
  "can't leave a non-joint config": /not joint/,
  "can't make a zero-voter config joint": /without voters/,
  "can't apply simple config change in joint config": /must be left/,
  'removed all voters': /remove all voters/,
  'more than one voter changed without entering joint config': /more than one voter/,
};

describe.skipIf(!hasPeerData('confchange'))(
  "etcd's configuration cases (skipped where the peers' data are not beside the project)",
  () => {
    const cases = hasPeerData('confchange') ? peerCases('confchange') : [];

    test('all 58 are there', () => expect(cases).toHaveLength(58));

    test.each([...new Set(cases.map((each) => each.file))])('%s', (file) => {
      let configuration = EMPTY;
      for (const each of cases.filter((one) => one.file === file)) {
        const [head = ''] = each.expected.split('\n');
        const refusal = REFUSALS[head];
        if (refusal !== undefined) {
          expect(() => next(configuration, each), `line ${each.line}`).toThrow(ConfigurationRefusal);
          expect(() => next(configuration, each), `line ${each.line}`).toThrow(refusal);
          continue;
        }
        configuration = next(configuration, each);
        expect(described(configuration), `line ${each.line}`).toBe(head.replace(' autoleave', ''));
      }
    });
  },
);
