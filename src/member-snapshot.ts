import type { RaftNode } from '../raft/index.ts';
import { fromRaft } from './command/index.ts';
import type { ControlPlane } from './control-plane.ts';

/** Serves `raft.snapshot` on every member: `{id, index}` once a snapshot of what it had applied is on its disk. */
export function serveSnapshot(plane: ControlPlane, raft: Pick<RaftNode, 'snapshotNow'>): void {
  plane.serve('raft.snapshot', async () => {
    try {
      return { id: plane.nodeId, index: await raft.snapshotNow() };
    } catch (error) {
      throw fromRaft(error);
    }
  });
}
