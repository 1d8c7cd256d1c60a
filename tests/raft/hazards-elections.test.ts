import { describe, expect, test } from 'vitest';
import type { Message, StoredState } from '../../raft/index.ts';
import { CoreCluster, diskOf } from './support/core-cluster.ts';

const THREE = ['a', 'b', 'c'];

function disks(logs: Record<string, [terms: number[], term: number]>): {
  disks: Record<string, StoredState>;
} {
  return {
    disks: Object.fromEntries(Object.entries(logs).map(([id, [terms, term]]) => [id, diskOf(terms, term)])),
  };
}

function leaderOf(cluster: CoreCluster, among = [...cluster.members.keys()]): string | null {
  return among.find((id) => cluster.core(id).role === 'leader') ?? null;
}

function granted(cluster: CoreCluster, from: string, to: string, term: number): boolean {
  return cluster.sent.some(
    (each) =>
      each.type === 'voteReply' && each.granted && each.from === from && each.to === to && each.term === term,
  );
}

function voteRequest(
  from: string,
  to: string,
  term: number,
  last: [index: number, term: number],
  transfer = false,
): Message {
  return { type: 'vote', from, to, term, lastIndex: last[0], lastTerm: last[1], transfer };
}

/** An empty log behind a snapshot at i100@t5. */
function snapshotDisk(): StoredState {
  const configuration = { voters: THREE, outgoing: [], learners: [], learnersNext: [] };
  const snapshot = { meta: { index: 100, term: 5, configuration }, data: new TextEncoder().encode('[]') };
  return { hardState: { term: 5, votedFor: null, commit: 100 }, snapshot, entries: [] };
}

describe('hazards of elections', () => {
  test('hazard 6: two pre-candidates at once, the third cut off: one is elected', () => {
    const cluster = new CoreCluster(THREE);
    cluster.isolate('a');
    cluster.timeout('b');
    cluster.timeout('c');
    expect([cluster.core('b').role, cluster.core('c').role]).toEqual(['preCandidate', 'preCandidate']);
    cluster.settle();
    expect(leaderOf(cluster)).toBe('b');
  });

  test('hazard 6: the longest log at a lower term against the highest term with a shorter log: still elected', () => {
    const cluster = new CoreCluster(THREE, disks({ a: [[1], 1], b: [[1, 1, 1, 1, 1], 1], c: [[1, 1], 8] }));
    cluster.isolate('a');
    cluster.run(12_000);
    expect(leaderOf(cluster)).toBe('b');
    expect(cluster.core('b').term).toBeGreaterThan(8);
  });

  test('hazard 6: a cut-off member raises no term while it is alone and disturbs nobody when it is back', () => {
    const cluster = new CoreCluster(THREE);
    cluster.elect('a');
    cluster.isolate('c');
    cluster.run(10_000);
    expect(cluster.core('c').term).toBe(1);
    cluster.heal();
    cluster.run(3_000);
    expect(cluster.status('a')).toContain('a leader term=1');
    expect(cluster.core('c').leaderId).toBe('a');
  });

  test('hazard 7: a and c hear only b: the leader b hears stays', () => {
    const cluster = new CoreCluster(THREE);
    cluster.elect('a');
    cluster.cut('a', 'c');
    cluster.run(10_000);
    expect(cluster.status('a')).toContain('a leader term=1');
    cluster.propose('a', 'x');
    cluster.run(200);
    expect(cluster.of('b').items.at(-1)).toMatch(/ x$/);
  });

  test('hazard 8: a leader that stepped down by itself is granted the vote by a member that remembers it', () => {
    const cluster = new CoreCluster(THREE);
    cluster.elect('a');
    cluster.crash('c');
    cluster.act('a', (core) => core.stepDown());
    expect(cluster.core('b').leaderId).toBe('a');
    cluster.timeout('a');
    cluster.settle();
    expect(cluster.status('a')).toContain('a leader term=2');
  });

  test('hazard 10: no vote is given before it is on disk, and a crash before that has given none', () => {
    const cluster = new CoreCluster(THREE);
    cluster.of('b').held = true;
    cluster.deliver(voteRequest('a', 'b', 5, [0, 0]));
    expect(granted(cluster, 'b', 'a', 5)).toBe(false);
    cluster.crash('b');
    cluster.restart('b');
    cluster.deliver(voteRequest('c', 'b', 5, [0, 0]));
    cluster.finishWrite('b');
    cluster.deliver(voteRequest('a', 'b', 5, [0, 0]));
    cluster.finishWrite('b');
    expect(granted(cluster, 'b', 'c', 5)).toBe(true);
    expect(granted(cluster, 'b', 'a', 5)).toBe(false);
  });

  test('hazard 10: a vote on disk stands after a crash; requests doubled and late get the same answer', () => {
    const cluster = new CoreCluster(THREE);
    cluster.deliver(voteRequest('a', 'b', 5, [0, 0]));
    cluster.crash('b');
    cluster.restart('b');
    for (let time = 0; time < 3; time++) {
      cluster.deliver(voteRequest('c', 'b', 5, [0, 0]));
      cluster.deliver(voteRequest('a', 'b', 5, [0, 0]));
    }
    const answers = cluster.sent.flatMap((each) =>
      each.type === 'voteReply' ? [`${each.to} ${each.granted}`] : [],
    );
    expect(answers).toEqual(['a true', 'c false', 'a true', 'c false', 'a true', 'c false', 'a true']);
  });

  test('hazard 10: a candidate asks for votes only once its own is on disk', () => {
    const cluster = new CoreCluster(THREE);
    cluster.of('a').held = true;
    cluster.timeout('a');
    cluster.settle();
    expect(cluster.core('a').role).toBe('candidate');
    expect(cluster.sent.some((each) => each.type === 'vote')).toBe(false);
    cluster.finishWrite('a');
    expect(cluster.wire.filter((each) => each.type === 'vote')).toHaveLength(2);
  });

  test('hazard 11: a leader that comes back never leads the same term again', () => {
    const cluster = new CoreCluster(THREE);
    cluster.elect('a');
    cluster.crash('a');
    cluster.restart('a');
    expect(cluster.status('a')).toContain('a follower term=1 vote=a');
    for (const voter of ['b', 'c']) {
      cluster.deliver({ type: 'voteReply', from: voter, to: 'a', term: 1, granted: true });
    }
    expect(cluster.core('a').role).toBe('follower');
    cluster.crash('b');
    cluster.run(6_000);
    expect(leaderOf(cluster, ['a', 'c'])).not.toBeNull();
    expect(cluster.core('a').term).toBeGreaterThan(1);
  });

  test('hazard 12: last logs compare by term first: (t3, i5) beats (t2, i9)', () => {
    const cluster = new CoreCluster(
      THREE,
      disks({ a: [[1, 1, 1, 1, 3], 3], b: [[1, 1, 1, 1, 2, 2, 2, 2, 2], 2], c: [[1], 1] }),
    );
    cluster.crash('c');
    cluster.timeout('a');
    cluster.settle();
    expect(leaderOf(cluster)).toBe('a');
    expect(granted(cluster, 'b', 'a', 4)).toBe(true);
    expect(cluster.terms('b').slice(0, 6)).toEqual([1, 1, 1, 1, 3, 4]);
  });

  test('hazard 12: (t2, i9) does not get the vote of (t3, i5)', () => {
    const cluster = new CoreCluster(
      THREE,
      disks({ a: [[1, 1, 1, 1, 3], 3], b: [[1, 1, 1, 1, 2, 2, 2, 2, 2], 2] }),
    );
    cluster.deliver(voteRequest('b', 'a', 9, [9, 2]));
    expect(cluster.sent.at(-1)).toMatchObject({ type: 'voteReply', to: 'b', term: 9, granted: false });
  });

  test('hazard 13: with an empty log behind a snapshot at i100@t5, that is the last log, in votes and in appends', () => {
    const disk = snapshotDisk();
    const cluster = new CoreCluster(THREE, { disks: { a: disk, b: disk } });
    cluster.timeout('a');
    cluster.settle();
    expect(cluster.sent.find((each) => each.type === 'vote')).toMatchObject({ lastIndex: 100, lastTerm: 5 });
    expect(cluster.sent.find((each) => each.type === 'append')).toMatchObject({
      prevIndex: 100,
      prevTerm: 5,
    });
    expect(leaderOf(cluster)).toBe('a');
    expect(cluster.core('b').log.commitIndex).toBe(101);
  });

  test('hazard 13: a voter with an empty log behind a snapshot refuses a log that ends before it', () => {
    const cluster = new CoreCluster(THREE, { disks: { b: snapshotDisk() } });
    cluster.deliver(voteRequest('c', 'b', 6, [99, 5]));
    expect(cluster.sent.at(-1)).toMatchObject({ type: 'voteReply', to: 'c', granted: false });
    cluster.deliver(voteRequest('a', 'b', 6, [100, 5]));
    expect(cluster.sent.at(-1)).toMatchObject({ type: 'voteReply', to: 'a', granted: true });
  });

  test('a voter that hears its leader refuses a vote without taking the term, unless the leader itself asked', () => {
    const cluster = new CoreCluster(THREE);
    cluster.elect('a');
    cluster.deliver(voteRequest('c', 'b', 9, [99, 9]));
    expect(cluster.core('b').term).toBe(1);
    cluster.deliver(voteRequest('c', 'b', 9, [99, 9], true));
    expect(cluster.core('b').term).toBe(9);
  });

  test('a leader that hears no quorum for an election time-out steps down', () => {
    const cluster = new CoreCluster(THREE);
    cluster.elect('a');
    cluster.isolate('a');
    for (let passed = 0; passed < 2_000; passed += 100) cluster.tick('a', 100);
    expect(cluster.core('a').role).toBe('follower');
  });

  test("failover: a closed socket to the leader ends a member's own loyalty within milliseconds, and no other's", () => {
    const cluster = new CoreCluster(THREE);
    cluster.elect('a');
    cluster.act('b', (core) => core.peerDown('a'));
    expect(cluster.core('b').nextTimeoutMs()).toBeLessThanOrEqual(cluster.limits.failoverJitterMs);
    cluster.timeout('b');
    cluster.settle();
    expect(cluster.core('b').role).not.toBe('leader');
    expect(cluster.core('a').role).toBe('leader');
    cluster.crash('a');
    cluster.act('c', (core) => core.peerDown('a'));
    cluster.timeout('c');
    cluster.settle();
    expect(leaderOf(cluster, ['b', 'c'])).toBe('c');
  });

  test('failover: a new boot id of the leader counts as a closed socket', () => {
    const cluster = new CoreCluster(THREE);
    cluster.elect('a');
    cluster.act('b', (core) => core.peerUp('a', 'boot 1'));
    expect(cluster.core('b').leaderId).toBe('a');
    cluster.act('b', (core) => core.peerUp('a', 'boot 2'));
    expect(cluster.core('b').leaderId).toBeNull();
  });

  test('failover: a leader without open sockets to a quorum answers nothing, and steps down if they stay closed', () => {
    for (const opens of [true, false]) {
      const cluster = new CoreCluster(THREE);
      cluster.elect('a');
      cluster.act('a', (core) => core.peerDown('b'));
      cluster.act('a', (core) => core.peerDown('c'));
      const commit = cluster.core('a').log.commitIndex;
      cluster.propose('a', 'x');
      cluster.act('a', (core) => core.readIndex(1));
      cluster.run(400);
      expect(cluster.core('a').role).toBe('leader');
      expect(cluster.core('a').log.commitIndex).toBe(commit);
      expect(cluster.of('a').reads).toEqual([]);
      if (opens) cluster.act('a', (core) => core.peerUp('b', 'boot 1'));
      cluster.run(100);
      expect(cluster.status('a')).toContain(opens ? 'a leader term=1' : 'a follower');
      expect(cluster.of('a').reads).toEqual([{ key: 1, index: opens ? commit : null }]);
    }
  });
});
