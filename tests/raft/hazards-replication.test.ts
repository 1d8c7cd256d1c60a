import { describe, expect, test } from 'vitest';
import type { Entry, Message, StoredState } from '../../raft/index.ts';
import { CoreCluster, diskOf, type CoreClusterOptions } from './support/core-cluster.ts';
import { EMPTY_DISK } from './support/disk.ts';

const THREE = ['a', 'b', 'c'];
type Append = Extract<Message, { type: 'append' }>;

function entries(from: number, terms: readonly number[]): Entry[] {
  return terms.map((term, at) => {
    return {
      index: from + at,
      term,
      kind: 'command',
      data: new TextEncoder().encode(`e${from + at}@${term}`),
    };
  });
}

function append(
  from: string,
  to: string,
  term: number,
  prev: [number, number],
  list: readonly Entry[],
  commit = 0,
): Append {
  return { type: 'append', from, to, term, prevIndex: prev[0], prevTerm: prev[1], commit, entries: list };
}

function acks(cluster: CoreCluster, from: string, to: string): number[] {
  return cluster.sent.flatMap((each) =>
    each.type === 'appendReply' && each.success && !each.lost && each.from === from && each.to === to
      ? [each.index]
      : [],
  );
}

function behind(options: CoreClusterOptions = {}): CoreCluster {
  const cluster = new CoreCluster(THREE, options);
  cluster.elect('a');
  return cluster;
}

describe('hazards of replication', () => {
  test('hazard 14: figure 8: an entry of an older term on a majority is not committed by counting', () => {
    const ids = ['a', 'b', 'c', 'd', 'e'];
    const old: StoredState = diskOf([1], 2);
    const cluster = new CoreCluster(ids, {
      limits: { maxAppendEntries: 1 },
      disks: { a: diskOf([1, 2], 3), b: old, c: old, d: old, e: diskOf([1, 3], 3) },
    });
    cluster.isolate('d');
    cluster.isolate('e');
    cluster.timeout('a');
    // The no-op of term 4 reaches nobody: entry 2 of term 2 alone is on a majority.
    cluster.run(400, (each) => {
      const carriesNoop = each.type === 'append' && each.entries.some((entry) => entry.term === 4);
      return carriesNoop && cluster.core(each.to).log.lastIndex >= 2;
    });
    expect(cluster.core('a').role).toBe('leader');
    expect(cluster.core('a').progress()).toMatchObject({ b: { match: 2 }, c: { match: 2 } });
    expect(cluster.core('a').log.commitIndex).toBe(0);
    cluster.crash('a');
    cluster.heal();
    for (const id of ['b', 'c', 'd']) cluster.tick(id, cluster.limits.electionTimeoutMs);
    cluster.run(6_000);
    const leader = ids.find((id) => id !== 'a' && cluster.core(id).role === 'leader');
    expect(leader).toBeDefined();
    cluster.restart('a');
    cluster.run(3_000);
    for (const id of ids) expect(cluster.of(id).items).toEqual(cluster.of('a').items);
  });

  test('hazard 14: figure 8 (e): once an entry of the own term commits, what is before it is safe', () => {
    const old: StoredState = diskOf([1], 2);
    const cluster = new CoreCluster(['a', 'b', 'c', 'd', 'e'], {
      disks: { a: diskOf([1, 2], 3), b: diskOf([1, 2], 2), c: old, d: old, e: diskOf([1, 3], 3) },
    });
    cluster.isolate('e');
    cluster.timeout('a');
    cluster.settle();
    expect(cluster.core('a').log.commitIndex).toBeGreaterThanOrEqual(3);
    cluster.crash('a');
    cluster.heal();
    cluster.run(8_000);
    expect(cluster.core('e').role).not.toBe('leader');
    expect(cluster.terms('e').slice(0, 2)).toEqual([1, 2]);
  });

  test('hazard 15: a late append that matches leaves what follows it', () => {
    const cluster = new CoreCluster(THREE, { disks: { b: diskOf([1, 1, 1, 1, 1, 1, 1, 1, 1, 1], 1) } });
    cluster.deliver(append('a', 'b', 1, [3, 1], entries(4, [1, 1])));
    expect(cluster.terms('b')).toHaveLength(10);
    expect(acks(cluster, 'b', 'a')).toEqual([5]);
    expect(cluster.of('b').disk.entries).toHaveLength(10);
  });

  test('hazard 15: only a conflict truncates, and from there on', () => {
    const cluster = new CoreCluster(THREE, { disks: { b: diskOf([1, 1, 1, 1, 1, 1], 1) } });
    cluster.deliver(append('a', 'b', 2, [2, 1], entries(3, [1, 2])));
    expect(cluster.terms('b')).toEqual([1, 1, 1, 2]);
    expect(cluster.of('b').disk.entries.map((each) => each.term)).toEqual([1, 1, 1, 2]);
  });

  test('hazard 16: an acknowledgement that waits behind a truncation is never sent', () => {
    const cluster = new CoreCluster(THREE, { disks: { b: diskOf([1, 1, 1, 1, 1, 1, 1, 1], 1) } });
    cluster.of('b').held = true;
    cluster.deliver(append('a', 'b', 2, [8, 1], entries(9, [2])));
    cluster.finishWrite('b');
    cluster.sent = [];
    cluster.deliver(append('a', 'b', 2, [9, 2], entries(10, [2])));
    cluster.deliver(append('c', 'b', 3, [8, 1], entries(9, [3])));
    cluster.finishWrite('b');
    cluster.finishWrite('b');
    expect(acks(cluster, 'b', 'a')).toEqual([]);
    expect(acks(cluster, 'b', 'c').at(-1)).toBe(9);
    expect(cluster.of('b').disk.entries.map((each) => each.term)).toEqual([1, 1, 1, 1, 1, 1, 1, 1, 3]);
  });

  test.each([1, 8])(
    'hazard 17: back-off takes at most one round a term, and one more (terms of %i entries)',
    (length) => {
      const long = (...terms: number[]) =>
        diskOf(
          terms.flatMap((term) => Array.from({ length }, () => term)),
          4,
        );
      const disks = {
        a: long(1, 2, 4, 4, 4, 4),
        b: long(1, 2, 2, 3, 3, 3, 3, 3, 3),
        c: long(1, 2, 4, 4, 4, 4),
      };
      const cluster = new CoreCluster(THREE, { disks });
      cluster.isolate('b');
      cluster.timeout('a');
      cluster.settle();
      cluster.heal();
      cluster.sent = [];
      cluster.run(1_000);
      const refusals = cluster.sent.filter((each) => each.type === 'appendReply' && !each.success);
      expect(refusals.length).toBeGreaterThan(0);
      expect(refusals.length).toBeLessThanOrEqual(4);
      expect(cluster.terms('b')).toEqual(cluster.terms('a'));
    },
  );

  test('hazard 17: every refusal ten times and late: next stays above match', () => {
    const cluster = new CoreCluster(THREE, {
      disks: {
        a: diskOf([1, 2, 4, 4, 4, 4], 4),
        b: diskOf([1, 2, 2, 3, 3, 3, 3, 3, 3], 4),
        c: diskOf([1, 2, 4, 4, 4, 4], 4),
      },
    });
    cluster.isolate('b');
    cluster.timeout('a');
    cluster.settle();
    cluster.heal();
    cluster.run(400);
    const refusals = cluster.sent.filter(
      (each) => each.type === 'appendReply' && !each.success && each.from === 'b',
    );
    for (const refusal of refusals.flatMap((each) => Array.from({ length: 10 }, () => each))) {
      cluster.deliver(refusal);
      const progress = cluster.core('a').progress()['b']!;
      expect(progress.next).toBeGreaterThan(progress.match);
      expect(progress.match).toBe(cluster.core('a').log.lastIndex);
    }
  });

  test('hazard 17: a refusal older than the install of a snapshot is harmless', () => {
    const cluster = behind({ limits: { trailingEntries: 1, snapshotEveryEntries: 10 } });
    cluster.isolate('b');
    cluster.propose('a', ...Array.from({ length: 20 }, (_, at) => `x${at}`));
    cluster.run(300);
    cluster.compact('a');
    cluster.heal();
    cluster.run(600);
    const refusal = cluster.sent.find(
      (each) => each.type === 'appendReply' && !each.success && each.from === 'b',
    )!;
    expect(cluster.trace.some((line) => line.startsWith('b restores'))).toBe(true);
    const before = cluster.core('a').progress()['b']!;
    cluster.deliver(refusal);
    expect(cluster.core('a').progress()['b']).toMatchObject({
      state: 'replicate',
      match: before.match,
      next: before.next,
    });
  });

  test('hazard 18: a follower that lost what it acknowledged neither crashes, votes nor acknowledges, and asks again', () => {
    const cluster = behind();
    cluster.propose('a', 'x', 'y', 'z');
    cluster.run(200);
    const { disk } = cluster.of('b');
    cluster.crash('b');
    cluster.restart('b', {
      ...disk,
      hardState: { ...disk.hardState, commit: 0 },
      entries: disk.entries.slice(0, 2),
    });
    cluster.of('b').held = true;
    cluster.sent = [];
    cluster.run(100);
    expect(cluster.core('b').hasLostEntries).toBe(true);
    cluster.deliver({
      type: 'vote',
      from: 'c',
      to: 'b',
      term: 1,
      lastIndex: 99,
      lastTerm: 9,
      transfer: true,
    });
    cluster.deliver({ type: 'preVote', from: 'c', to: 'b', term: 9, lastIndex: 99, lastTerm: 9 });
    expect(cluster.sent.some((each) => 'granted' in each && each.granted)).toBe(false);
    expect(acks(cluster, 'b', 'a')).toEqual([]);
    expect(cluster.core('a').progress()['b']).toMatchObject({ lost: true, match: 0 });
    cluster.of('b').held = false;
    cluster.finishWrite('b');
    cluster.run(400);
    expect(cluster.core('b').hasLostEntries).toBe(false);
    expect(cluster.core('a').progress()['b']).toMatchObject({
      lost: false,
      match: cluster.core('a').log.lastIndex,
    });
    expect(cluster.of('b').items).toEqual(cluster.of('a').items);
  });

  test('hazard 18: part of what it lost is not enough: no acknowledgement before it holds all of it', () => {
    const cluster = behind({ limits: { maxAppendEntries: 1 } });
    const last = cluster.propose('a', 'x', 'y', 'z') + 2;
    cluster.run(200);
    const { disk } = cluster.of('b');
    const entriesLeft = disk.entries.slice(0, last - 3);
    cluster.restart('b', { ...disk, hardState: { ...disk.hardState, commit: 0 }, entries: entriesLeft });
    cluster.sent = [];
    cluster.run(500, (each) => each.type === 'append' && each.to === 'b' && each.entries[0]?.index === last);
    expect(cluster.of('b').disk.entries).toHaveLength(last - 1);
    expect(acks(cluster, 'b', 'a')).toEqual([]);
    cluster.run(2_500);
    expect(acks(cluster, 'b', 'a').at(-1)).toBe(last);
  });

  test('hazard 18: it gives no vote and no pre-vote until it holds the entries again', () => {
    const cluster = new CoreCluster(THREE, { disks: { b: diskOf([1, 1], 1) } });
    cluster.deliver({ type: 'heartbeat', from: 'a', to: 'b', term: 1, commit: 5, round: 1 });
    expect(cluster.core('b').hasLostEntries).toBe(true);
    cluster.tick('b', 900);
    cluster.tick('b', 900);
    cluster.deliver({ type: 'preVote', from: 'c', to: 'b', term: 9, lastIndex: 99, lastTerm: 9 });
    cluster.deliver({
      type: 'vote',
      from: 'c',
      to: 'b',
      term: 9,
      lastIndex: 99,
      lastTerm: 9,
      transfer: true,
    });
    const answers = cluster.sent.flatMap((each) =>
      'granted' in each ? [`${each.type} ${each.granted}`] : [],
    );
    expect(answers).toEqual(['preVoteReply false', 'voteReply false']);
    expect(cluster.sent.some((each) => each.type === 'heartbeatReply')).toBe(false);
  });

  test('hazard 18: while it is counted for nothing, nothing commits by it', () => {
    const cluster = behind();
    cluster.propose('a', 'x', 'y', 'z');
    cluster.run(200);
    const { disk } = cluster.of('b');
    cluster.restart('b', {
      ...disk,
      hardState: { ...disk.hardState, commit: 0 },
      entries: disk.entries.slice(0, 2),
    });
    cluster.of('b').held = true;
    cluster.isolate('c');
    const before = cluster.core('a').log.commitIndex;
    cluster.run(200);
    cluster.propose('a', 'more');
    cluster.run(400);
    expect(cluster.core('a').log.commitIndex).toBe(before);
  });

  test('hazard 18: a log shorter than the commit stored with it has lost entries: known at start', () => {
    const cluster = new CoreCluster(THREE, { disks: { a: diskOf([1, 1], 1), b: diskOf([1, 1], 1, 5) } });
    expect(cluster.core('b').hasLostEntries).toBe(true);
    cluster.timeout('b');
    expect(cluster.core('b').role).toBe('follower');
  });

  test('hazard 18: an older disk that is as long as the log: nothing commits before it was compared', () => {
    const cluster = new CoreCluster(['a', 'b', 'c', 'd', 'e']);
    cluster.elect('a');
    for (const id of ['b', 'd', 'e']) for (const other of ['a', 'c']) cluster.cut(id, other);
    cluster.propose('a', 'on a and c alone');
    cluster.settle();
    const older = cluster.of('c').disk;
    cluster.crash('a');
    cluster.run(4_000);
    cluster.heal();
    cluster.run(500);
    const leader = ['b', 'd', 'e'].find((id) => cluster.core(id).role === 'leader')!;
    expect(older.entries).toHaveLength(cluster.core(leader).log.lastIndex);
    cluster.restart('c', older);
    cluster.tick(leader, 100);
    cluster.settle();
    expect(cluster.of('c').items).toEqual(cluster.of(leader).items);
  });

  test('hazard 18: a disk that lost entries which nothing had committed is given them again', () => {
    const cluster = new CoreCluster(['a', 'b', 'c', 'd', 'e']);
    cluster.elect('a');
    const older = cluster.of('b').disk;
    for (const id of ['c', 'd', 'e']) cluster.cut('a', id);
    const lost = cluster.propose('a', 'on a and b alone');
    cluster.settle();
    expect(cluster.core('a').progress()['b']?.match).toBe(lost);
    cluster.restart('b', older);
    cluster.run(300);
    cluster.propose('a', 'after it');
    cluster.run(300);
    expect(cluster.core('a').log.commitIndex).toBeLessThan(lost);
    expect(cluster.terms('b')).toEqual(cluster.terms('a'));
    expect(cluster.core('a').progress()['b']).toMatchObject({ state: 'replicate', match: lost + 1 });
  });

  test('hazard 19: entries replaced by another term and put back: the first write does not count for them', () => {
    const cluster = new CoreCluster(THREE, { disks: { b: diskOf([1, 1, 1, 1], 1) } });
    const b = cluster.of('b');
    b.held = true;
    cluster.deliver(append('a', 'b', 1, [4, 1], entries(5, [1])));
    cluster.deliver(append('c', 'b', 2, [4, 1], entries(5, [2])));
    cluster.deliver(append('a', 'b', 3, [4, 1], entries(5, [1])));
    cluster.finishWrite('b');
    expect(b.core.log.durableIndex).toBe(4);
    expect(acks(cluster, 'b', 'a')).not.toContain(5);
    cluster.finishWrite('b');
    expect(b.core.log.durableIndex).toBe(5);
    expect(acks(cluster, 'b', 'a').at(-1)).toBe(5);
  });

  test('hazard 19: a leader counts its own entries only once they are on its disk', () => {
    const cluster = behind();
    cluster.crash('c');
    cluster.of('a').held = true;
    const index = cluster.propose('a', 'x');
    cluster.run(300);
    expect(cluster.core('a').progress()['b']?.match).toBe(index);
    expect(cluster.core('a').log.commitIndex).toBe(index - 1);
    cluster.finishWrite('a');
    expect(cluster.core('a').log.commitIndex).toBe(index);
  });

  test('hazard 20: a single voter with its write held applies and answers nothing', () => {
    const cluster = new CoreCluster(['a']);
    cluster.timeout('a');
    cluster.of('a').held = true;
    const index = cluster.propose('a', 'x');
    cluster.act('a', (core) => core.readIndex(1));
    expect(cluster.core('a').log.commitIndex).toBe(index - 1);
    expect(cluster.of('a').applied).toBe(index - 1);
    cluster.finishWrite('a');
    expect(cluster.of('a').items.at(-1)).toBe(`${index}@1 x`);
  });

  test.each([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])(
    'hazard 20: a crash around write %i under load loses nothing acknowledged',
    (at) => {
      for (const synced of [true, false]) {
        const cluster = behind({ limits: { maxWriteEntries: 2, maxAppendEntries: 2 } });
        const victim = at % 2 === 0 ? 'b' : 'a';
        cluster.of(victim).held = true;
        for (let round = 0; round < at; round++) {
          if (cluster.core('a').role === 'leader')
            cluster.propose('a', `x${round}`, `y${round}`, `z${round}`);
          cluster.run(50);
          if (round < at - 1 || synced) cluster.finishWrite(victim);
        }
        const before = cluster.of(victim).items.slice();
        cluster.of(victim).held = false;
        cluster.crash(victim);
        cluster.run(3_000);
        cluster.restart(victim);
        cluster.run(3_000);
        const all = THREE.map((id) => cluster.of(id).items);
        expect(all[0]!.slice(0, before.length)).toEqual(before);
        expect(all[1]).toEqual(all[0]);
        expect(all[2]).toEqual(all[0]);
      }
    },
  );

  test('hazard 21: a follower purged to i50 takes 51…60 of (prev 40, 41…60)', () => {
    const items = Array.from({ length: 50 }, (_, at) => `${at + 1}@1 e${at + 1}`);
    const configuration = { voters: THREE, outgoing: [], learners: [], learnersNext: [] };
    const data = new TextEncoder().encode(JSON.stringify(items));
    const snapshot = { meta: { index: 50, term: 1, configuration }, data };
    const disk: StoredState = { ...EMPTY_DISK, hardState: { term: 1, votedFor: null, commit: 50 }, snapshot };
    const cluster = new CoreCluster(THREE, { disks: { b: disk } });
    cluster.deliver(
      append(
        'a',
        'b',
        1,
        [40, 1],
        entries(
          41,
          Array.from({ length: 20 }, () => 1),
        ),
      ),
    );
    expect(cluster.core('b').log.lastIndex).toBe(60);
    expect(acks(cluster, 'b', 'a').at(-1)).toBe(60);
    expect(cluster.of('b').disk.entries.map((each) => each.index)).toEqual([
      51, 52, 53, 54, 55, 56, 57, 58, 59, 60,
    ]);
  });

  test('hazard 26: no compaction past what is committed, nor twice at one place', () => {
    const cluster = behind();
    cluster.propose('a', 'x', 'y');
    cluster.settle();
    cluster.isolate('a');
    cluster.propose('a', 'not committed');
    const { core } = cluster.of('a');
    expect(core.log.lastIndex).toBe(core.log.commitIndex + 1);
    expect(() => core.compact(core.log.commitIndex + 1, new Uint8Array(0))).toThrow(/not of this log/);
    expect(() => core.compact(core.log.commitIndex + 2, new Uint8Array(0))).toThrow(
      /no snapshot can be taken/,
    );
    core.compact(core.log.commitIndex, new Uint8Array(0));
    expect(() => core.compact(core.log.commitIndex, new Uint8Array(0))).toThrow(/no snapshot can be taken/);
  });

  test('a follower behind the log gets the whole snapshot and goes on from there', () => {
    const cluster = behind({ limits: { trailingEntries: 2, snapshotEveryEntries: 10 } });
    cluster.isolate('c');
    cluster.propose('a', ...Array.from({ length: 30 }, (_, at) => `x${at}`));
    cluster.run(300);
    cluster.compact('a');
    expect(cluster.core('a').log.firstIndex).toBe(cluster.of('a').applied - 1);
    cluster.heal();
    cluster.run(500);
    cluster.propose('a', 'after');
    cluster.run(200);
    expect(cluster.of('c').items).toEqual(cluster.of('a').items);
    expect(cluster.of('c').disk.snapshot?.meta.index).toBe(cluster.core('a').log.snapshotIndex);
  });

  test('the window bounds what is unanswered, in messages and in bytes', () => {
    const limits = {
      maxAppendEntries: 1,
      maxInflightMessages: 4,
      maxAppendBytes: 100,
      maxInflightBytes: 250,
      maxEntryBytes: 200,
    };
    const cluster = behind({ limits });
    cluster.propose('a', ...Array.from({ length: 20 }, (_, at) => `${at}`));
    expect(cluster.core('a').progress()['b']?.inflightMessages).toBe(4);
    cluster.run(500);
    cluster.propose('a', ...Array.from({ length: 20 }, () => 'x'.repeat(90)));
    expect(cluster.core('a').progress()['b']).toMatchObject({ inflightMessages: 3, inflightBytes: 270 });
    cluster.run(1_000);
    expect(cluster.of('b').items).toEqual(cluster.of('a').items);
  });

  test('peers at the same place share one run of entries, and the bytes are those proposed', () => {
    const cluster = behind();
    const data = new TextEncoder().encode('shared');
    cluster.act('a', (core) => core.propose([data]));
    const [first, second] = cluster.wire.filter((each) => each.type === 'append');
    expect(first?.entries).toBe(second?.entries);
    expect(first?.entries[0]?.data).toBe(data);
    expect(cluster.of('a').disk.entries.at(-1)?.data).toBe(data);
  });

  test('lost appends are sent again after a heartbeat', () => {
    const cluster = behind();
    cluster.propose('a', 'x');
    cluster.settle((each) => each.type === 'append');
    cluster.run(300);
    expect(cluster.of('b').items.at(-1)).toMatch(/ x$/);
    expect(cluster.of('c').items.at(-1)).toMatch(/ x$/);
  });

  test('a follower whose whole window was lost, and compacted away before it was known, gets the snapshot', () => {
    const limits = {
      maxAppendEntries: 1,
      maxInflightMessages: 4,
      trailingEntries: 2,
      snapshotEveryEntries: 10,
    };
    const cluster = behind({ limits });
    cluster.propose('a', ...Array.from({ length: 30 }, (_, at) => `x${at}`));
    cluster.settle((message) => message.type === 'append' && message.to === 'c');
    cluster.compact('a');
    const { state, next, inflightMessages } = cluster.core('a').progress()['c'] ?? {};
    expect({ state, inflightMessages }).toEqual({ state: 'replicate', inflightMessages: 4 });
    expect(next).toBeLessThan(cluster.core('a').log.firstIndex);
    cluster.run(500);
    expect(cluster.of('c').items).toEqual(cluster.of('a').items);
  });

  test('a heartbeat never carries a commit past what its receiver acknowledged', () => {
    const cluster = behind();
    cluster.isolate('c');
    cluster.propose('a', 'x', 'y');
    cluster.run(300);
    const match = cluster.core('a').progress()['c']?.match ?? 0;
    expect(match).toBeLessThan(cluster.core('a').log.commitIndex);
    const toC = cluster.sent.filter((each) => each.type === 'heartbeat' && each.to === 'c');
    expect(toC.at(-1)).toMatchObject({ commit: match });
  });
});

describe('peers on slow or busy links', () => {
  const compacting = { limits: { trailingEntries: 2, snapshotEveryEntries: 10 } };

  test('a member that lost what it acknowledged, behind a compacted leader, gets the snapshot', () => {
    const cluster = behind(compacting);
    const old = cluster.of('c').disk;
    for (let at = 0; at < 20; at += 1) cluster.propose('a', `x${at}`);
    cluster.settle();
    cluster.run(300);
    cluster.compact('a');
    cluster.crash('c');
    cluster.restart('c', old);
    cluster.act('a', (core) => core.peerUp('c', 'boot2'));
    cluster.run(3_000);
    expect(cluster.core('c').log.commitIndex).toBe(cluster.core('a').log.commitIndex);
    expect(cluster.core('c').hasLostEntries).toBe(false);
    expect(cluster.sent.filter((each) => each.type === 'snapshot').length).toBeLessThanOrEqual(2);
  });

  test('a follower that a new leader has not heard is asked what it has before it is sent the snapshot', () => {
    const cluster = behind({ limits: { trailingEntries: 10, snapshotEveryEntries: 10 } });
    for (let at = 0; at < 20; at += 1) cluster.propose('a', `x${at}`);
    cluster.settle();
    cluster.run(300);
    for (const id of THREE) cluster.compact(id);
    cluster.crash('a');
    cluster.run(4_000);
    const leader = cluster.core('b').role === 'leader' ? 'b' : 'c';
    cluster.restart('a');
    cluster.act(leader, (core) => core.peerUp('a', 'boot2'));
    cluster.run(500);
    expect(cluster.core('a').log.lastIndex).toBe(cluster.core(leader).log.lastIndex);
    expect(cluster.sent.filter((each) => each.type === 'snapshot')).toHaveLength(0);
  });

  test('rounds of reads do not repeat the entries of a probe that is on its way', () => {
    const cluster = behind();
    cluster.act('a', (core) => core.peerDown('c'));
    cluster.propose('a', 'x', 'y', 'z');
    cluster.settle((each) => each.to === 'c');
    cluster.act('a', (core) => core.peerUp('c', 'boot2'));
    const appends = cluster.take((each) => each.type === 'append' && each.to === 'c');
    expect(appends).toHaveLength(1);
    for (let key = 1; key <= 20; key += 1) {
      cluster.act('a', (core) => core.readIndex(key));
      cluster.settle();
    }
    const since = cluster.sent.slice(cluster.sent.indexOf(appends[0]!) + 1);
    expect(since.filter((each) => each.type === 'append' && each.to === 'c')).toEqual([]);
    cluster.run(300);
    expect(cluster.core('c').log.lastIndex).toBe(cluster.core('a').log.lastIndex);
  });
});
