import { describe, expect, test } from 'vitest';
import type { Configuration } from '../../raft/index.ts';
import { CoreCluster } from './support/core-cluster.ts';

const FOUR = ['a', 'b', 'c', 'd'];
const THREE_AND_LEARNER: Partial<Configuration> = { voters: ['a', 'b', 'c'], learners: ['d'] };

/** a leads b and c; d is a member only as a change says so. */
function cluster4(configuration: Partial<Configuration> = { voters: ['a', 'b', 'c'] }): CoreCluster {
  const cluster = new CoreCluster(FOUR, { configuration });
  cluster.elect('a');
  return cluster;
}

function change(cluster: CoreCluster, type: 'addVoter' | 'addLearner' | 'remove', id: string): void {
  cluster.act('a', (core) => core.proposeConfiguration([{ type, id }]));
}

describe('hazards of membership', () => {
  test('hazard 27: no change before the no-op of the own term is committed', () => {
    const cluster = new CoreCluster(FOUR, { configuration: { voters: ['a', 'b', 'c'] } });
    cluster.timeout('a');
    cluster.settle((message) => message.type === 'append');
    expect(cluster.core('a').role).toBe('leader');
    expect(() => change(cluster, 'addLearner', 'd')).toThrow(/no-op of this term/);
    cluster.run(300);
    change(cluster, 'addLearner', 'd');
    cluster.run(300);
    expect(cluster.core('b').log.configuration.learners).toEqual(['d']);
  });

  test('hazard 27: one change at a time', () => {
    const cluster = cluster4();
    change(cluster, 'addLearner', 'd');
    expect(() => change(cluster, 'remove', 'c')).toThrow(/is not finished/);
    cluster.run(300);
    change(cluster, 'remove', 'c');
    cluster.run(300);
    expect(cluster.core('b').log.configuration).toEqual({
      voters: ['a', 'b'],
      outgoing: [],
      learners: ['d'],
      learnersNext: [],
    });
  });

  test('hazard 27: an uncommitted change that is truncated is undone, across a restart as well', () => {
    const cluster = cluster4();
    cluster.isolate('a');
    change(cluster, 'addLearner', 'd');
    expect(cluster.core('a').log.configuration.learners).toEqual(['d']);
    cluster.crash('a');
    cluster.restart('a');
    expect(cluster.core('a').log.configuration.learners).toEqual(['d']);
    cluster.run(6_000);
    cluster.heal();
    cluster.run(3_000);
    expect(cluster.core('a').log.configuration.learners).toEqual([]);
    cluster.crash('a');
    cluster.restart('a');
    expect(cluster.core('a').log.configuration.learners).toEqual([]);
  });

  test('hazard 28: the leadership goes to no learner and to nobody removed', () => {
    const cluster = cluster4(THREE_AND_LEARNER);
    expect(cluster.act('a', (core) => core.transfer('d'))).toMatch(/not a voter/);
    change(cluster, 'remove', 'c');
    cluster.run(300);
    expect(cluster.act('a', (core) => core.transfer('c'))).toMatch(/not a voter/);
    expect(cluster.act('a', (core) => core.transfer('b'))).toBeNull();
    expect(() => change(cluster, 'remove', 'b')).toThrow(/being handed|does not lead/);
  });

  test('hazard 28: a TimeoutNow that comes after the leader gave the transfer up deposes nobody', () => {
    for (const isBehind of [true, false]) {
      const cluster = new CoreCluster(['a', 'b', 'c']);
      cluster.elect('a');
      cluster.act('a', (core) => void core.transfer('b'));
      const [late] = cluster.take((message) => message.type === 'timeoutNow');
      if (isBehind) cluster.run(1_500);
      else cluster.act('a', (core) => core.abortTransfer());
      expect(cluster.core('a').transferringTo).toBeNull();
      cluster.propose('a', 'x');
      cluster.settle((message) => isBehind && message.to === 'b' && message.type === 'append');
      cluster.deliver(late!);
      cluster.run(300);
      expect(cluster.status('a')).toContain('a leader term=1');
      cluster.act('a', (core) => void core.transfer('b'));
      cluster.run(300);
      expect(cluster.status('b')).toContain('b leader term=2');
    }
  });

  test('hazard 29: a learner that does not answer is not promoted; one that has caught up is', () => {
    const cluster = cluster4();
    expect(() => change(cluster, 'addVoter', 'd')).toThrow(/must be a learner/);
    cluster.isolate('d');
    change(cluster, 'addLearner', 'd');
    cluster.run(2_000);
    expect(() => change(cluster, 'addVoter', 'd')).toThrow(/must catch up/);
    cluster.heal();
    cluster.run(1_000);
    change(cluster, 'addVoter', 'd');
    cluster.run(300);
    expect(cluster.core('d').log.configuration.voters).toEqual(FOUR);
  });

  test('hazard 29: a learner that had caught up and is silent now is not promoted', () => {
    const cluster = cluster4(THREE_AND_LEARNER);
    cluster.run(300);
    expect(cluster.core('a').progress()['d']).toMatchObject({ match: 2 });
    cluster.crash('d');
    cluster.run(1_000);
    expect(() => change(cluster, 'addVoter', 'd')).toThrow(/d does not answer/);
    cluster.restart('d');
    cluster.run(500);
    cluster.act('a', (core) => core.peerDown('d'));
    expect(() => change(cluster, 'addVoter', 'd')).toThrow(/must catch up/);
    cluster.act('a', (core) => core.peerUp('d', 'boot 2'));
    cluster.run(500);
    change(cluster, 'addVoter', 'd');
  });

  test('hazard 29: no change to voters of whom too few answer', () => {
    const cluster = cluster4();
    cluster.crash('c');
    cluster.run(1_000);
    expect(() => change(cluster, 'remove', 'a')).toThrow(/c would vote and cannot be reached/);
    change(cluster, 'remove', 'c');
    cluster.run(300);
    expect(cluster.core('b').log.configuration.voters).toEqual(['a', 'b']);
  });

  test('a learner has the whole log, no vote and no candidacy', () => {
    const cluster = cluster4(THREE_AND_LEARNER);
    cluster.propose('a', 'x');
    cluster.run(300);
    expect(cluster.of('d').items).toEqual(cluster.of('a').items);
    cluster.crash('b');
    cluster.crash('c');
    const before = cluster.core('a').log.commitIndex;
    cluster.propose('a', 'y');
    cluster.run(500);
    expect(cluster.core('a').log.commitIndex).toBe(before);
    cluster.crash('a');
    cluster.run(6_000);
    expect(cluster.core('d').role).toBe('follower');
  });

  test('paper, section 6: a change of several voters goes through a joint configuration and leaves it by itself', () => {
    const cluster = cluster4(THREE_AND_LEARNER);
    cluster.run(300);
    cluster.act('a', (core) =>
      core.proposeConfiguration([
        { type: 'addVoter', id: 'd' },
        { type: 'remove', id: 'c' },
      ]),
    );
    expect(cluster.core('a').log.configuration.outgoing).toEqual(['a', 'b', 'c']);
    cluster.run(500);
    for (const id of ['a', 'b', 'd']) {
      expect(cluster.core(id).log.configuration).toEqual({
        voters: ['a', 'b', 'd'],
        outgoing: [],
        learners: [],
        learnersNext: [],
      });
    }
  });

  test('paper, section 6: while it is joint nothing commits without a majority of both halves', () => {
    const cluster = new CoreCluster(['a', 'b', 'c', 'd', 'e'], {
      configuration: { voters: ['a', 'b', 'c'], learners: ['d', 'e'] },
    });
    cluster.elect('a');
    cluster.run(300);
    cluster.isolate('b');
    cluster.isolate('c');
    cluster.act('a', (core) =>
      core.proposeConfiguration([
        { type: 'remove', id: 'b' },
        { type: 'remove', id: 'c' },
        { type: 'addVoter', id: 'd' },
        { type: 'addVoter', id: 'e' },
      ]),
    );
    const before = cluster.core('a').log.commitIndex;
    cluster.run(500);
    expect(cluster.core('a').log.commitIndex).toBe(before);
    cluster.heal();
    cluster.run(500);
    expect(cluster.core('a').log.configuration).toMatchObject({ voters: ['a', 'd', 'e'], outgoing: [] });
  });

  test('a leader that removes itself steps down once that is committed, and the others go on', () => {
    const cluster = cluster4();
    change(cluster, 'remove', 'a');
    expect(cluster.core('a').role).toBe('leader');
    cluster.run(500);
    expect(cluster.core('a').role).toBe('follower');
    cluster.run(6_000);
    expect(['b', 'c'].filter((id) => cluster.core(id).role === 'leader')).toHaveLength(1);
    expect(cluster.core('a').role).toBe('follower');
  });

  test('hazard 27: a leader cut off while it removed itself is elected again, and its removal ends', () => {
    const cluster = new CoreCluster(['a', 'b']);
    cluster.elect('a');
    cluster.cut('a', 'b');
    change(cluster, 'remove', 'a');
    cluster.run(3_000);
    expect(cluster.core('a').role).not.toBe('leader');
    cluster.heal();
    cluster.run(8_000);
    expect(cluster.core('b').role).toBe('leader');
    expect(cluster.core('b').log.configuration.voters).toEqual(['b']);
    expect(cluster.core('a').role).toBe('follower');
  });

  test('hazard 27: the same across a restart, once enough of the new voters are there', () => {
    const cluster = new CoreCluster(['a', 'b', 'c']);
    cluster.elect('a');
    cluster.isolate('a');
    change(cluster, 'remove', 'a');
    cluster.crash('a');
    cluster.crash('c');
    cluster.heal();
    cluster.restart('a');
    cluster.run(5_000);
    // The log of b is behind that of a, and a needs both b and c.
    expect(['a', 'b'].map((id) => cluster.core(id).role)).not.toContain('leader');
    cluster.restart('c');
    cluster.run(8_000);
    const leaders = ['a', 'b', 'c'].filter((id) => cluster.core(id).role === 'leader');
    expect(leaders).toHaveLength(1);
  });

  test('hazard 27: a leader cut off as it left a joint configuration that removes it is elected again', () => {
    const cluster = new CoreCluster(['a', 'b'], { configuration: { voters: ['a'], learners: ['b'] } });
    cluster.elect('a');
    cluster.run(300);
    cluster.of('a').held = true;
    cluster.act('a', (core) =>
      core.proposeConfiguration([
        { type: 'addVoter', id: 'b' },
        { type: 'addLearner', id: 'a' },
      ]),
    );
    cluster.settle();
    expect(cluster.core('b').log.configuration).toMatchObject({ voters: ['b'], outgoing: ['a'] });
    cluster.cut('a', 'b');
    cluster.of('a').held = false;
    cluster.finishWrite('a');
    expect(cluster.core('a').log.configuration).toMatchObject({ voters: ['b'], learners: ['a'] });
    cluster.run(5_000);
    cluster.heal();
    cluster.run(8_000);
    expect(cluster.core('b').role).toBe('leader');
    expect(cluster.core('b').log.configuration).toMatchObject({
      voters: ['b'],
      outgoing: [],
      learners: ['a'],
    });
  });

  test('hazard 9, its part in the core: one removed while cut off disturbs no leader when it is back', () => {
    const cluster = cluster4();
    cluster.isolate('c');
    change(cluster, 'remove', 'c');
    cluster.run(8_000);
    expect(cluster.core('c').role).not.toBe('leader');
    cluster.heal();
    cluster.deliver({
      type: 'vote',
      from: 'c',
      to: 'b',
      term: 101,
      lastIndex: 99,
      lastTerm: 99,
      transfer: false,
    });
    cluster.run(5_000);
    expect(cluster.status('a')).toContain('a leader term=1');
    expect(cluster.core('b').term).toBe(1);
  });

  test('the first configuration is in the log from the first term on', () => {
    const cluster = cluster4();
    expect(cluster.of('b').items.slice(0, 2)).toEqual(['1@1 noop', '2@1 config']);
  });
});
