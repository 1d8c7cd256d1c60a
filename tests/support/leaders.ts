import { type Cluster, rpc, until } from './cluster.ts';

export interface RaftStatus {
  readonly role: string;
  readonly term: number;
  readonly commitIndex: number;
  readonly appliedIndex: number;
  readonly lastIndex: number;
}

/** As one node sees it; asked of that node alone, so that a stopped one does not hold the answer up. */
export function raftStatus(cluster: Cluster, node: number): Promise<RaftStatus> {
  return rpc<RaftStatus>(cluster.address(node), 'raft.status', { consistency: 'local' }, 2_000);
}

/** Which of these nodes says that it leads, in the highest term. */
export async function leaderOf(cluster: Cluster, nodes: readonly number[]): Promise<number> {
  const found = await until('a leader', async () => {
    const asked = nodes.map(async (node) => {
      const { role, term } = await raftStatus(cluster, node);
      return role === 'leader' ? [{ node, term }] : [];
    });
    const leaders = (await Promise.all(asked.map((answer) => answer.catch(() => [])))).flat();
    return leaders.sort((a, b) => b.term - a.term)[0];
  });
  return found.node;
}
