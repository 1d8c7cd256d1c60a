import { afterEach, describe, expect, test } from 'vitest';
import { RaftError, type RaftLimits } from '../../raft/index.ts';
import { bytes, NodeCluster } from './support/node-cluster.ts';

let cluster: NodeCluster;

async function three(limits: Partial<RaftLimits> = {}): Promise<{ leader: string; others: string[] }> {
  cluster = await NodeCluster.start(['a', 'b', 'c'], limits);
  const leader = await cluster.leader();
  return { leader, others: ['a', 'b', 'c'].filter((id) => id !== leader) };
}

afterEach(() => cluster.stop());

describe('a group of nodes', () => {
  test('a proposal resolves with the result of its own apply, and every member applies the same', async () => {
    const { leader, others } = await three();
    const applied = Promise.all(
      ['x', 'y', 'z'].map((text) => cluster.node(leader).propose(bytes(text), cluster.clock.now() + 1_000)),
    );
    await cluster.clock.advance(50);
    expect((await applied).map((each) => each.result)).toEqual(['applied x', 'applied y', 'applied z']);
    await cluster.clock.advance(200);
    for (const id of others) expect(cluster.of(id).machine.items).toEqual(cluster.of(leader).machine.items);
  });

  test('a follower refuses a proposal and names the leader', async () => {
    const { leader, others } = await three();
    const refused = cluster.node(others[0]!).propose(bytes('x'), cluster.clock.now() + 1_000);
    await expect(refused).rejects.toMatchObject({ code: 'notLeader', leaderId: leader });
    await expect(refused).rejects.toBeInstanceOf(RaftError);
  });

  test('a read barrier on any member sees what was acknowledged before it', async () => {
    const { leader, others } = await three();
    const write = cluster.node(leader).propose(bytes('x'), cluster.clock.now() + 1_000);
    await cluster.clock.advance(50);
    const { index } = await write;
    for (const id of [leader, ...others]) {
      const read = cluster.node(id).readBarrier(cluster.clock.now() + 1_000);
      await cluster.clock.advance(50);
      expect(await read).toBeGreaterThanOrEqual(index);
      expect(cluster.of(id).machine.items.at(-1)).toContain(' x');
    }
  });

  test('a killed leader whose sockets close is replaced in a fraction of the election time-out, every time', async () => {
    await three();
    for (let time = 0; time < 12; time++) {
      const leader = await cluster.leader();
      const others = ['a', 'b', 'c'].filter((id) => id !== leader);
      const storage = await cluster.kill(leader);
      const diedAtMs = cluster.clock.now();
      await cluster.leader(others);
      expect(cluster.clock.now() - diedAtMs).toBeLessThanOrEqual(300);
      await cluster.boot(leader, storage);
      await cluster.clock.advance(500);
    }
  });

  test('listeners hear the present state at once and each change of it', async () => {
    const { leader, others } = await three();
    const heard: string[] = [];
    const stop = cluster
      .node(leader)
      .onState(({ role, noopApplied }) => heard.push(`${role} ${noopApplied}`));
    for (const id of others) cluster.cut(leader, id, true);
    await cluster.clock.advance(600);
    stop();
    expect(heard.slice(0, 2)).toEqual(['leader true', 'follower false']);
  });

  test('a stopped node answers nothing, and stopping twice is one stop', async () => {
    const { leader } = await three();
    const node = cluster.node(leader);
    const open = node.propose(bytes('x'), cluster.clock.now() + 1_000);
    await Promise.all([node.stop(), node.stop(), expect(open).rejects.toMatchObject({ code: 'stopped' })]);
    await expect(node.propose(bytes('y'), cluster.clock.now() + 1_000)).rejects.toMatchObject({
      code: 'stopped',
    });
    await expect(node.readBarrier(cluster.clock.now() + 1_000)).rejects.toMatchObject({ code: 'stopped' });
    await expect(node.snapshotNow()).rejects.toMatchObject({ code: 'stopped' });
  });

  test('a change of membership resolves with the configuration it reached', async () => {
    const { leader } = await three();
    const change = cluster
      .node(leader)
      .changeConfiguration([{ type: 'addLearner', id: 'd' }], cluster.clock.now() + 1_000);
    await cluster.clock.advance(50);
    expect((await change).learners).toEqual(['d']);
    const refused = cluster
      .node(leader)
      .changeConfiguration([{ type: 'addVoter', id: 'd' }], cluster.clock.now() + 1_000);
    await expect(refused).rejects.toMatchObject({ code: 'refused' });
  });
});
