import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openDataDirectory, type DataDirectory } from '../../src/log/index.ts';
import type { Disk } from '../../src/disk.ts';
import { createLevelDisk } from '../../src/disk-level.ts';
import { createSystemRandom } from '../../src/random.ts';

const TEST_CLUSTER = 'test';
const TEST_MEMBER = 'n1';

/** A new empty directory of the system's temporary folder, and its removal. */
export async function temporaryDirectory(): Promise<{ path: string; remove: () => Promise<void> }> {
  const path = await mkdtemp(join(tmpdir(), 'evenkeel-'));
  return { path, remove: () => rm(path, { recursive: true, force: true }) };
}

export function openTestDirectory(directory: string, disk: Disk = createLevelDisk()): Promise<DataDirectory> {
  return openDataDirectory({
    disk,
    random: createSystemRandom(),
    directory,
    clusterId: TEST_CLUSTER,
    memberId: TEST_MEMBER,
  });
}
