import { execFileSync } from 'node:child_process';
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '..');
const OXLINT = join(ROOT, 'node_modules', '.bin', 'oxlint');

/** Lints one offending file at the given place of an otherwise empty tree with the project's own rules. */
function lint(directory: string, path: string, source: string): string {
  const file = join(directory, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, source);
  try {
    execFileSync(OXLINT, ['--deny-warnings', path], { cwd: directory, encoding: 'utf8', stdio: 'pipe' });
    return '';
  } catch (error) {
    return (error as { stdout: string }).stdout;
  } finally {
    rmSync(file);
  }
}

describe('the house rules bite', () => {
  let directory: string;
  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'evenkeel-tidy-'));
    copyFileSync(join(ROOT, '.oxlintrc.json'), join(directory, '.oxlintrc.json'));
  });
  afterAll(() => {
    rmSync(directory, { recursive: true, force: true });
  });

  const clean = `export const answer = 42;\n`;
  it.each(['raft/a.ts', 'placement/a.ts', 'src/apply/a.ts'])('clean code in %s passes', (path) => {
    expect(lint(directory, path, clean)).toBe('');
  });

  it.each([
    ['raft/a.ts', `export const now = () => Date.now();`, "'Date'"],
    ['raft/a.ts', `export const dice = () => Math.random();`, 'Math.random'],
    [
      'raft/a.ts',
      `import { readFileSync } from 'node:fs';\nexport const r = readFileSync;`,
      'raft/ imports nothing',
    ],
    ['raft/a.ts', `import { x } from '../src/errors.ts';\nexport const y = x;`, 'raft/ imports nothing'],
    ['raft/core.ts', `export const later = () => setTimeout(() => 1, 1);`, "'setTimeout'"],
    ['placement/a.ts', `export const env = process.env;`, "'process'"],
    ['placement/a.ts', `export const c = (a: string, b: string) => a.localeCompare(b);`, 'localeCompare'],
    ['placement/a.ts', `import { z } from 'zod';\nexport const y = z;`, 'placement/ imports nothing'],
    ['placement/a.ts', `import { x } from './copies/deal.ts';\nexport const y = x;`, 'public face'],
    [
      'placement/copies/a.ts',
      `import { x } from '../../src/errors.ts';\nexport const y = x;`,
      'placement/ imports nothing',
    ],
    ['src/apply/a.ts', `export const now = () => performance.now();`, "'performance'"],
    ['src/apply/a.ts', `import { x } from '../wire/index.ts';\nexport const y = x;`, 'data flows one way'],
    ['src/state/a.ts', `import { x } from '../apply/index.ts';\nexport const y = x;`, 'data flows one way'],
    ['src/wire/a.ts', `import { x } from '../state/rows.ts';\nexport const y = x;`, 'index.ts'],
    ['src/control/a.ts', `import { x } from '../wire/index.ts';\nexport const y = x;`, 'data flows one way'],
    ['src/log/a.ts', `console.log('x');\nexport {};`, 'console'],
  ])('%s: %s', (path, source, complaint) => {
    expect(lint(directory, path, `${source}\n`)).toContain(complaint);
  });
});

describe('sources', () => {
  const files = ['raft', 'placement', 'src'].flatMap((top) =>
    readdirSync(join(ROOT, top), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => join(top, name)),
  );

  it('hold one concept a file: none over 400 lines', () => {
    const long = files.filter((file) => readFileSync(join(ROOT, file), 'utf8').split('\n').length > 401);
    expect(long).toEqual([]);
  });

  it('leave nothing open and give no types up', () => {
    const open = files.filter((file) =>
      /\b(TODO|FIXME|XXX|HACK)\b|@ts-(ignore|nocheck)/.test(readFileSync(join(ROOT, file), 'utf8')),
    );
    expect(open).toEqual([]);
  });
});
