import { cp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { EvenkeelError } from '../../src/errors.ts';
import type { StoredState } from '../../raft/index.ts';
import { openTestDirectory, temporaryDirectory } from './data-directories.ts';

/** One bit of one file of a data directory. */
export interface Place {
  readonly file: string;
  readonly byte: number;
}

/** Every byte a member's data directory holds, in order; the lock and LevelDB's own notes hold nothing of it. */
export async function placesOf(directory: string): Promise<Place[]> {
  const names = (await readdir(join(directory, 'store'))).filter(
    (name) => !/^(LOCK|LOG|LOG\.old)$/.test(name),
  );
  const files = ['identity.json', 'mark', ...names.sort().map((name) => join('store', name))];
  const places: Place[] = [];
  for (const file of files) {
    const { byteLength } = await readFile(join(directory, file));
    for (let byte = 0; byte < byteLength; byte += 1) places.push({ file, byte });
  }
  return places;
}

/** Flips the bit in a copy of the directory and loads that: the error's code, or `null` where all came back. */
export async function loadFlipped(
  directory: string,
  place: Place,
  bit: number,
  expected: (state: StoredState) => void,
): Promise<string | null> {
  const copy = await temporaryDirectory();
  try {
    await cp(directory, copy.path, { recursive: true });
    await rm(join(copy.path, 'lock'), { recursive: true, force: true });
    const path = join(copy.path, place.file);
    const bytes = await readFile(path);
    bytes[place.byte] = (bytes[place.byte] ?? 0) ^ (1 << bit);
    await writeFile(path, bytes);
    const { storage } = await openTestDirectory(copy.path);
    try {
      expected(await storage.load());
      return null;
    } finally {
      await storage.close();
    }
  } catch (error) {
    if (error instanceof EvenkeelError) return error.code;
    throw error;
  } finally {
    await copy.remove();
  }
}
