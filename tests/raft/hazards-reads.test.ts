import { describe, expect, test } from 'vitest';
import { CoreCluster } from './support/core-cluster.ts';

const THREE = ['a', 'b', 'c'];

/** b leads the next term although a, cut off, still believes in its own. */
function replaceA(cluster: CoreCluster): void {
  cluster.isolate('a');
  cluster.tick('c', cluster.limits.electionTimeoutMs);
  cluster.timeout('b');
  cluster.settle();
  cluster.propose('b', 'newer');
  cluster.settle();
  expect(cluster.core('b').role).toBe('leader');
  expect(cluster.core('a').role).toBe('leader');
}

describe('hazards of reads', () => {
  test('hazard 1: acknowledgements of an earlier attempt do not answer the read made after them', () => {
    const cluster = new CoreCluster(THREE);
    cluster.elect('a');
    cluster.act('a', (core) => core.readIndex(1));
    cluster.settle((message) => message.type === 'heartbeatReply');
    const late = cluster.sent.filter((each) => each.type === 'heartbeatReply').slice(-2);
    expect(late).toHaveLength(2);
    replaceA(cluster);
    cluster.act('a', (core) => core.readIndex(2));
    for (const message of late) cluster.deliver(message);
    expect(cluster.of('a').reads.map((each) => each.key)).not.toContain(2);
    cluster.heal();
    cluster.run(300);
    expect(cluster.of('a').reads).toContainEqual({ key: 2, index: null });
  });

  test("hazard 1: a reply to an earlier life's token, or to an earlier token, answers nothing", () => {
    const cluster = new CoreCluster(THREE);
    cluster.elect('a');
    cluster.act('b', (core) => core.readIndex(1));
    cluster.settle((message) => message.type === 'readIndexReply');
    const late = cluster.sent.findLast((each) => each.type === 'readIndexReply')!;
    cluster.run(600, (message) => message.type === 'readIndexReply');
    expect(cluster.of('b').reads.splice(0)).toEqual([{ key: 1, index: null }]);
    cluster.act('b', (core) => core.readIndex(2));
    cluster.deliver(late);
    expect(cluster.of('b').reads).toEqual([]);
    cluster.crash('b');
    cluster.restart('b');
    cluster.run(100);
    cluster.act('b', (core) => core.readIndex(3));
    cluster.deliver(late);
    expect(cluster.of('b').reads).toEqual([]);
    cluster.settle();
    expect(cluster.of('b').reads).toEqual([{ key: 3, index: 2 }]);
  });

  test('hazard 2: a new leader answers no read before its no-op commits', () => {
    const cluster = new CoreCluster(THREE);
    cluster.timeout('a');
    cluster.settle((message) => message.type === 'append');
    expect(cluster.core('a').role).toBe('leader');
    cluster.act('a', (core) => core.readIndex(1));
    cluster.run(500, (message) => message.type === 'append');
    expect(cluster.of('a').reads).toEqual([]);
    cluster.run(500);
    expect(cluster.of('a').reads).toEqual([{ key: 1, index: cluster.core('a').log.commitIndex }]);
  });

  test('hazard 3: a cut-off leader answers no read, for as long as it believes to lead', () => {
    const cluster = new CoreCluster(THREE);
    cluster.elect('a');
    replaceA(cluster);
    for (let key = 1; key <= 30; key++) {
      cluster.act('a', (core) => core.readIndex(key));
      cluster.run(100);
    }
    expect(cluster.of('a').reads.filter((each) => each.index !== null)).toEqual([]);
  });

  test('hazard 3: a member that lost its leader holds reads back until it hears one again', () => {
    const cluster = new CoreCluster(THREE);
    cluster.elect('a');
    cluster.isolate('c');
    cluster.run(3_000);
    cluster.act('c', (core) => core.readIndex(1));
    cluster.propose('a', 'x');
    cluster.run(1_000);
    expect(cluster.of('c').reads).toEqual([]);
    cluster.heal();
    cluster.run(1_000);
    expect(cluster.of('c').reads).toEqual([{ key: 1, index: cluster.core('a').log.commitIndex }]);
  });

  test('one heartbeat round answers all reads that wait, here and at other members', () => {
    const cluster = new CoreCluster(THREE);
    cluster.elect('a');
    cluster.sent = [];
    cluster.members.get('a')!.core.readIndex(1);
    cluster.members.get('a')!.core.readIndex(2);
    cluster.act('a', (core) => core.readIndex(3));
    cluster.settle();
    expect(cluster.of('a').reads.map((each) => each.key)).toEqual([1, 2, 3]);
    expect(cluster.sent.filter((each) => each.type === 'heartbeat')).toHaveLength(2);
  });

  test('a read on a group of one needs nobody else', () => {
    const cluster = new CoreCluster(['a']);
    cluster.timeout('a');
    cluster.act('a', (core) => core.readIndex(1));
    expect(cluster.of('a').reads).toEqual([{ key: 1, index: cluster.core('a').log.commitIndex }]);
  });
});
