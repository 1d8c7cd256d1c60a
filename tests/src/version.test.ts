import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { VERSION } from '../../src/version.ts';
import { runCli } from '../support/cli.ts';

it('the version is that of package.json', () => {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  expect(VERSION).toBe((JSON.parse(text) as { version: string }).version);
});

it('the binary says its version', async () => {
  expect(await runCli(['--version'])).toEqual({ code: 0, out: `${VERSION}\n`, note: '' });
});
