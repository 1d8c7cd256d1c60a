import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '..', '..', '..');
const directory = mkdtempSync(join(tmpdir(), 'evenkeel-output-'));
const file = join(directory, 'out.json');
const CLUSTER = {
  version: 1,
  brokers: [{ id: 'b1' }, { id: 'b2' }],
  resources: [{ name: 'orders', shards: 200 }],
  assignments: [],
};
const COMMAND = `"${process.execPath}" --import tsx src/main.ts plan -f - -o json`;

/** Runs the command in a shell, its output where `redirect` says. */
function plan(redirect: string): { status: number | null; stderr: string } {
  const input = JSON.stringify(CLUSTER);
  const { status, stderr } = spawnSync('bash', ['-c', `${COMMAND} ${redirect}`], { cwd: ROOT, input });
  return { status, stderr: stderr.toString() };
}

afterAll(() => rmSync(directory, { recursive: true }));

describe('a command whose output cannot be written', () => {
  it('writes a whole file, and exits 0', () => {
    expect(plan(`> ${file}`)).toEqual({ status: 0, stderr: '' });
    expect(JSON.parse(readFileSync(file, 'utf8'))).toHaveProperty('steps.length', 200);
  });

  it.skipIf(!existsSync('/dev/full'))('exits 1 on a full device, and says so', () => {
    const { status, stderr } = plan('> /dev/full');
    expect(stderr).toBe('error: cannot write the output: ENOSPC; what was written is not complete\n');
    expect(status).toBe(1);
  });

  it('exits 1 where the file could take only a part of it', () => {
    // The shell ignores SIGXFSZ, so that a write past the limit fails with EFBIG after a short one.
    const limited = `trap '' XFSZ; ulimit -f 16; exec ${COMMAND} > ${file}`;
    const { status, stderr } = spawnSync('bash', ['-c', limited], {
      cwd: ROOT,
      input: JSON.stringify(CLUSTER),
    });
    expect(stderr.toString()).toBe(
      'error: cannot write the output: EFBIG; what was written is not complete\n',
    );
    expect(status).toBe(1);
  });

  it('exits 0 where the reader has had enough', () => {
    const output = execFileSync('bash', ['-o', 'pipefail', '-c', `${COMMAND} | head -1`], {
      cwd: ROOT,
      input: JSON.stringify(CLUSTER),
    });
    expect(output.toString()).toBe('{\n');
  });
});
