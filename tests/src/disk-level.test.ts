import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { access, readdir, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import type * as files from 'node:fs/promises';
import { join } from 'node:path';
import { Level } from 'level';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createLevelDisk } from '../../src/disk-level.ts';
import { temporaryDirectory } from '../support/data-directories.ts';

// Root may write to any directory: that one is refused has to be played.
vi.mock('node:fs/promises', async (importOriginal) => {
  const real = await importOriginal<typeof files>();
  return { ...real, access: vi.fn(real.access) };
});

const disk = createLevelDisk();
const bytes = (...values: number[]) => Uint8Array.from(values);
let directory: { path: string; remove: () => Promise<void> };
const at = (...names: string[]) => join(directory.path, ...names);
const children: ChildProcess[] = [];

beforeEach(async () => {
  directory = await temporaryDirectory();
});
afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  await directory.remove();
});

test('every batch of a store is written with a sync', async () => {
  const options: unknown[] = [];
  const original = Reflect.get(Level.prototype, 'batch') as (this: Level) => unknown;
  const spy = vi.spyOn(Level.prototype, 'batch').mockImplementation(function (this: Level) {
    const batch = original.call(this) as { write: (given: unknown) => Promise<void> };
    const write = batch.write.bind(batch);
    batch.write = async (given) => {
      options.push(given);
      await write(given);
    };
    return batch as never;
  });
  try {
    const store = await disk.openStore(at('store'), { createIfMissing: true });
    await store.write([{ type: 'put', key: bytes(1), value: bytes(1) }]);
    await store.write([{ type: 'delete', key: bytes(1) }]);
    await store.close();
  } finally {
    spy.mockRestore();
  }
  expect(options).toEqual([{ sync: true }, { sync: true }]);
});

test('a store keeps rows in byte order across openings', async () => {
  const store = await disk.openStore(at('store'), { createIfMissing: true });
  await store.write([
    { type: 'put', key: bytes(2), value: bytes(20) },
    { type: 'put', key: bytes(1, 255), value: bytes() },
    { type: 'put', key: bytes(1), value: bytes(10) },
    { type: 'put', key: bytes(200), value: bytes(1) },
    { type: 'delete', key: bytes(200) },
  ]);
  await store.close();
  const again = await disk.openStore(at('store'), { createIfMissing: false });
  expect(await again.get(bytes(2))).toEqual(bytes(20));
  expect(await again.get(bytes(200))).toBeNull();
  expect(await again.range({ gte: bytes(1), lt: bytes(3), limit: 10 })).toEqual([
    [bytes(1), bytes(10)],
    [bytes(1, 255), bytes()],
    [bytes(2), bytes(20)],
  ]);
  expect(await again.range({ gte: bytes(1), lt: bytes(2), limit: 1 })).toEqual([[bytes(1), bytes(10)]]);
  await again.close();
});

test('a store that is missing or damaged is corrupt, not made anew', async () => {
  for (const _ of [1, 2]) {
    await expect(disk.openStore(at('none'), { createIfMissing: false })).rejects.toMatchObject({
      code: 'corrupt',
    });
  }
  const store = await disk.openStore(at('store'), { createIfMissing: true });
  await store.close();
  const manifest = (await readdir(at('store'))).find((name) => name.startsWith('MANIFEST')) ?? '';
  await truncate(at('store', manifest), 3);
  await expect(disk.openStore(at('store'), { createIfMissing: false })).rejects.toMatchObject({
    code: 'corrupt',
  });
});

test('a replaced file is old or new, and a missing one is null', async () => {
  expect(await disk.readFile(at('file'))).toBeNull();
  await disk.replaceFile(at('file'), bytes(1, 2));
  await disk.replaceFile(at('file'), bytes(3));
  expect(await disk.readFile(at('file'))).toEqual(bytes(3));
  expect(await disk.list(directory.path)).toEqual(['file']);
  expect(await disk.list(at('nowhere'))).toEqual([]);
  await disk.makeDirectory(at('a', 'b'));
  await disk.makeDirectory(at('a', 'b'));
  expect(await disk.list(at('a'))).toEqual(['b']);
});

test('a fixed file is made of zeros and overwritten in place', async () => {
  const file = await disk.openFixedFile(at('cells'), 6);
  expect(await file.read()).toEqual(new Uint8Array(6));
  await file.writeAt(2, bytes(1, 2), { sync: false });
  await file.writeAt(3, bytes(9), { sync: true });
  await file.close();
  const again = await disk.openFixedFile(at('cells'), 6);
  expect(await again.read()).toEqual(bytes(0, 0, 1, 9, 0, 0));
  await again.close();
});

test('files that cannot be written are disk_failed and name themselves', async () => {
  await writeFile(at('plain'), '');
  const inside = at('plain', 'file');
  const failed = { code: 'disk_failed', message: expect.stringContaining(at('plain')) };
  await expect(disk.replaceFile(inside, bytes())).rejects.toMatchObject(failed);
  await expect(disk.openFixedFile(inside, 1)).rejects.toMatchObject(failed);
  await expect(disk.list(at('plain'))).rejects.toMatchObject(failed);
  await expect(disk.openStore(inside, { createIfMissing: true })).rejects.toMatchObject(failed);
});

test('a directory that cannot be made or written in is a slip of usage, and says why', async () => {
  await writeFile(at('plain'), '');
  const refused = (why: string) => ({ code: 'invalid_argument', message: expect.stringContaining(why) });
  await expect(disk.makeDirectory(at('plain'))).rejects.toMatchObject(refused('it is a file'));
  const inside = at('plain', 'file');
  await expect(disk.makeDirectory(inside)).rejects.toMatchObject(refused('a part of its path is a file'));
});

test.each([
  ['EROFS', 'the file system is read-only'],
  ['EACCES', 'this user may not write there'],
  ['EPERM', 'this user may not write there'],
])(
  'a directory that exists and refuses writes with %s is a slip of usage, and says why',
  async (code, why) => {
    vi.mocked(access).mockRejectedValueOnce(Object.assign(new Error('refused'), { code }));
    await expect(disk.makeDirectory(directory.path)).rejects.toMatchObject({
      code: 'invalid_argument',
      message: expect.stringContaining(why),
    });
    await disk.makeDirectory(directory.path);
  },
);

test.skipIf(!existsSync('/sys/kernel'))('a directory cannot be made where nothing can be', async () => {
  await expect(disk.makeDirectory('/sys/kernel/evenkeel')).rejects.toMatchObject({
    code: 'invalid_argument',
    message: expect.stringMatching(/this user may not write there|the file system is read-only/),
  });
});

test.skipIf(!existsSync('/dev/full'))('a full disk says what to do', async () => {
  await symlink('/dev/full', at('full'));
  const file = await disk.openFixedFile(at('full'), 1);
  await expect(file.writeAt(0, bytes(1), { sync: true })).rejects.toMatchObject({
    code: 'disk_failed',
    message: expect.stringMatching(/no space.*free some room/),
  });
  await file.close();
});

/** A process that takes the lock and holds it until it is killed. */
async function holder(path: string): Promise<ChildProcess> {
  const source = `
    import { createLevelDisk } from ${JSON.stringify(new URL('../../src/disk-level.ts', import.meta.url).href)};
    try {
      await createLevelDisk().lock(${JSON.stringify(path)});
      console.log('locked');
      setInterval(() => {}, 1000);
    } catch (error) {
      console.log(error.code);
    }`;
  const child = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', source], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.push(child);
  const said = await new Promise<string>((resolve) =>
    child.stdout?.once('data', (data) => resolve(String(data))),
  );
  return Object.assign(child, { said: said.trim() });
}

test('a lock keeps other processes out and ends with its process, even by kill -9', async () => {
  const child = await holder(at('lock'));
  expect(child).toHaveProperty('said', 'locked');
  await expect(disk.lock(at('lock'))).rejects.toMatchObject({
    code: 'directory_in_use',
    message: expect.stringContaining(at('lock')),
  });
  const gone = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGKILL');
  await gone;
  const unlock = await disk.lock(at('lock'));
  await unlock();
});

test('a second taking in the same process fails and does not drop the first', async () => {
  const unlock = await disk.lock(at('lock'));
  await expect(disk.lock(at('lock'))).rejects.toMatchObject({ code: 'directory_in_use' });
  await expect(disk.openStore(at('lock'), { createIfMissing: false })).rejects.toMatchObject({
    code: 'directory_in_use',
  });
  expect(await holder(at('lock'))).toHaveProperty('said', 'directory_in_use');
  await unlock();
  await (
    await disk.lock(at('lock'))
  )();
});

test('a damaged lock is made anew', async () => {
  await (
    await disk.lock(at('lock'))
  )();
  for (const name of await readdir(at('lock'))) {
    if (name.startsWith('MANIFEST')) await writeFile(at('lock', name), 'garbage');
  }
  await (
    await disk.lock(at('lock'))
  )();
  await rm(at('lock', 'CURRENT'));
  await (
    await disk.lock(at('lock'))
  )();
});
