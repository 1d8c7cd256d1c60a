import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { runScript } from './support/script.ts';

const DIRECTORY = join(import.meta.dirname, 'scripts');
const UPDATE = process.env['UPDATE'] === '1';

/** Each script shows one section of the paper at work; `UPDATE=1` writes what it gives now, for review. */
describe('scripts', () => {
  test.each(readdirSync(DIRECTORY).sort())('%s', (file) => {
    const path = join(DIRECTORY, file);
    const { now, mismatches } = runScript(readFileSync(path, 'utf8'));
    if (UPDATE) writeFileSync(path, now);
    else expect(mismatches).toEqual([]);
  });
});
