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
});
