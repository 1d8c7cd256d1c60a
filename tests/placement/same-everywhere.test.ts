import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Worker } from 'node:worker_threads';
import { describe, expect, it } from 'vitest';
import { digestOfPlans } from './support/digest.ts';
import { SEED } from './support/seed.ts';

const CLUSTERS = 120;
const SCRIPT = new URL('support/digest.ts', import.meta.url);
const ARGS = ['digest', `${CLUSTERS}`, `${SEED}`];
const TIMEOUT_MS = 120_000;

const run = promisify(execFile);

/** The digest as a process of its own works it out, with its own environment. */
async function ofProcess(env: Record<string, string>): Promise<string> {
  const args = ['--import', 'tsx', fileURLToPath(SCRIPT), ...ARGS];
  const { stdout } = await run(process.execPath, args, { env: { PATH: process.env['PATH'], ...env } });
  return stdout;
}

describe(`a plan is the same (${CLUSTERS} clusters, seed ${SEED})`, () => {
  const here = digestOfPlans(CLUSTERS, SEED);

  it('when it is made twice, and not for other clusters', () => {
    expect(digestOfPlans(CLUSTERS, SEED)).toBe(here);
    expect(digestOfPlans(CLUSTERS, SEED + 1)).not.toBe(here);
  });

  it.each([
    { LC_ALL: 'tr_TR.UTF-8', TZ: 'Europe/Istanbul' },
    { LC_ALL: 'de_DE.UTF-8', TZ: 'America/St_Johns' },
    { LC_ALL: 'C', TZ: 'Pacific/Kiritimati' },
  ])('in a process with $LC_ALL in $TZ', { timeout: TIMEOUT_MS }, async (env) => {
    expect(await ofProcess(env)).toBe(here);
  });

  it('in a worker thread', { timeout: TIMEOUT_MS }, async () => {
    const source = `import('tsx/esm/api').then((api) => { api.register(); return import('${SCRIPT.href}'); })`;
    const worker = new Worker(source, { eval: true, argv: ARGS });
    const answer = await new Promise<string>((resolve, reject) => {
      worker.once('message', resolve);
      worker.once('error', reject);
    });
    await worker.terminate();
    expect(answer).toBe(here);
  });
});
