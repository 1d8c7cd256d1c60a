import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createLevelDisk } from '../../../src/disk-level.ts';
import { openDataDirectory } from '../../../src/log/index.ts';
import { createSystemRandom } from '../../../src/random.ts';
import { openTestDirectory, temporaryDirectory } from '../../support/data-directories.ts';

let directory: { path: string; remove: () => Promise<void> };
beforeEach(async () => {
  directory = await temporaryDirectory();
});
afterEach(() => directory.remove());

const open = (clusterId: string, memberId: string) =>
  openDataDirectory({
    disk: createLevelDisk(),
    random: createSystemRandom(),
    directory: directory.path,
    clusterId,
    memberId,
  });

test('the first boot makes the identity, later ones keep it and count boots', async () => {
  const first = await openTestDirectory(directory.path);
  expect(first.identity).toMatchObject({ clusterId: 'test', memberId: 'n1' });
  expect(first.identity.directoryId).toMatch(/^[0-9a-f]{32}$/);
  expect([first.bootCount, first.hasState]).toEqual([1, false]);
  await first.storage.load();
  await first.storage.close();
  const second = await openTestDirectory(directory.path);
  expect(second.identity).toEqual(first.identity);
  expect([second.bootCount, second.hasState]).toEqual([2, false]);
  await second.storage.load();
  await second.storage.write({
    hardState: null,
    entries: [{ index: 1, term: 1, kind: 'noop', data: new Uint8Array(0) }],
    snapshot: null,
    compactTo: 0,
  });
  await second.storage.close();
  const third = await openTestDirectory(directory.path);
  expect(third.hasState).toBe(true);
  await third.storage.close();
});

test('two directories never have the same id', async () => {
  const other = await temporaryDirectory();
  const a = await openTestDirectory(directory.path);
  const b = await openTestDirectory(other.path);
  expect(a.identity.directoryId).not.toBe(b.identity.directoryId);
  await a.storage.close();
  await b.storage.close();
  await other.remove();
});

test('another cluster, another member and a newer format are refused, and the lock is given back', async () => {
  await (await openTestDirectory(directory.path)).storage.close();
  await expect(open('other', 'n1')).rejects.toMatchObject({
    code: 'wrong_directory',
    message: expect.stringMatching(/belongs to cluster test, not to other/),
  });
  await expect(open('test', 'n2')).rejects.toMatchObject({
    code: 'wrong_directory',
    message: expect.stringMatching(/belongs to member n1, not to n2/),
  });
  const path = join(directory.path, 'identity.json');
  const text = await readFile(path, 'utf8');
  await writeFile(path, text.replace('"formatVersion": 1', '"formatVersion": 2'));
  await expect(open('test', 'n1')).rejects.toMatchObject({
    code: 'wrong_directory',
    message: expect.stringMatching(/format 2/),
  });
  await writeFile(path, text);
  await (await openTestDirectory(directory.path)).storage.close();
});

test('a second opening while the first is open is refused and leaves the first alone', async () => {
  const first = await openTestDirectory(directory.path);
  await first.storage.load();
  await expect(openTestDirectory(directory.path)).rejects.toMatchObject({ code: 'directory_in_use' });
  await first.storage.write({
    hardState: { term: 1, votedFor: null, commit: 0 },
    entries: [],
    snapshot: null,
    compactTo: 0,
  });
  await first.storage.close();
  await (await openTestDirectory(directory.path)).storage.close();
});

test('a store that is gone is noticed and not made anew', async () => {
  await (await openTestDirectory(directory.path)).storage.close();
  await rm(join(directory.path, 'store'), { recursive: true });
  await expect(openTestDirectory(directory.path)).rejects.toMatchObject({ code: 'corrupt' });
  await expect(openTestDirectory(directory.path)).rejects.toMatchObject({ code: 'corrupt' });
});

test('a log without its identity is refused', async () => {
  const first = await openTestDirectory(directory.path);
  await first.storage.load();
  await first.storage.write({
    hardState: { term: 1, votedFor: 'n1', commit: 0 },
    entries: [],
    snapshot: null,
    compactTo: 0,
  });
  await first.storage.close();
  await rm(join(directory.path, 'identity.json'));
  await expect(openTestDirectory(directory.path)).rejects.toMatchObject({ code: 'corrupt' });
});
