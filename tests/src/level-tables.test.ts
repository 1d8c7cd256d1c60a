import { readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createLevelDisk } from '../../src/disk-level.ts';
import { findDamagedTable } from '../../src/level-tables.ts';
import { temporaryDirectory } from '../support/data-directories.ts';

let directory: { path: string; remove: () => Promise<void> };
let store: string;

/** Several tables of many blocks, as overwriting and reopening makes them. */
beforeEach(async () => {
  directory = await temporaryDirectory();
  store = join(directory.path, 'store');
  const disk = createLevelDisk();
  for (let boot = 0; boot < 3; boot += 1) {
    const open = await disk.openStore(store, { createIfMissing: true });
    await open.write(
      Array.from({ length: 300 }, (_, at) => ({
        type: 'put',
        key: Buffer.from(`key ${boot} ${at}`),
        value: new Uint8Array(100).fill(at),
      })),
    );
    await open.close();
  }
});
afterEach(() => directory.remove());

const tables = async () => (await readdir(store)).filter((name) => name.endsWith('.ldb'));

test('whole tables pass', async () => {
  expect((await tables()).length).toBeGreaterThan(1);
  expect(await findDamagedTable(store)).toBeNull();
});

test('a flipped bit in any block of any table is found, and the store is not opened', async () => {
  for (const name of await tables()) {
    const path = join(store, name);
    const bytes = await readFile(path);
    for (let at = 0; at < bytes.length - 48; at += 997) {
      const flipped = Buffer.from(bytes);
      flipped[at] = (flipped[at] ?? 0) ^ 1;
      await writeFile(path, flipped);
      expect(await findDamagedTable(store), `${name} byte ${at}`).toBe(`${name} fails its checksum`);
    }
    await expect(createLevelDisk().openStore(store, { createIfMissing: false })).rejects.toMatchObject({
      code: 'corrupt',
      message: expect.stringContaining(name),
    });
    await writeFile(path, bytes);
  }
  expect(await findDamagedTable(store)).toBeNull();
});

test('a table that is cut or gone is found; one that is not in force is passed over', async () => {
  const [name = ''] = await tables();
  const path = join(store, name);
  const bytes = await readFile(path);
  await writeFile(path, bytes.subarray(0, 100));
  expect(await findDamagedTable(store)).toMatch(/has 100 bytes/);
  await rm(path);
  expect(await findDamagedTable(store)).toBe(`${name} is missing`);
  await writeFile(path, bytes);
  await writeFile(join(store, '999999.ldb'), 'what a crash left half-written');
  expect(await findDamagedTable(store)).toBeNull();
});

test('no store, and one whose manifest is damaged, are for LevelDB to judge', async () => {
  expect(await findDamagedTable(join(directory.path, 'none'))).toBeNull();
  const manifest = (await readdir(store)).find((name) => name.startsWith('MANIFEST')) ?? '';
  await writeFile(join(store, manifest), Buffer.from([0, 0, 0, 0, 3, 0, 1, 0xff, 0xff, 0xff]));
  expect(await findDamagedTable(store)).toBeNull();
});
