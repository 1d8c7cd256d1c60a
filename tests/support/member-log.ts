import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import type { Entry } from '../../raft/index.ts';
import { createLevelDisk } from '../../src/disk-level.ts';
import { openDataDirectory } from '../../src/log/index.ts';
import { createSystemRandom } from '../../src/random.ts';
import type { Cluster } from './cluster.ts';

/** The log of one stopped member, as its disk has it: whole, since no test writes enough for a snapshot. */
export async function memberLog(cluster: Cluster, member: string): Promise<readonly Entry[]> {
  const directory = join(cluster.directory, `${member}-copy`);
  await cp(join(cluster.directory, member), directory, { recursive: true });
  const opened = await openDataDirectory({
    disk: createLevelDisk(),
    random: createSystemRandom(),
    directory,
    clusterId: cluster.clusterId,
    memberId: member,
  });
  const { snapshot, entries } = await opened.storage.load();
  await opened.storage.close();
  if (snapshot !== null) throw new Error(`${member} has a snapshot: its log begins after it`);
  return entries;
}
