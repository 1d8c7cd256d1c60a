import { execFile } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { drawPlan, RAFT_KIT, SERVER_KIT } from '../../src/sim/index.ts';
import { play } from './judge.ts';

/** Consensus alone takes a third of the time, and finds its faults in as many seeds. */
const SEEDS = { raft: 200, system: 100 };
const MAX_OUTPUT_BYTES = 16 * 1024 * 1024;
const ROOT = join(import.meta.dirname, '../..');

/** Runs seeds in a process of their own, so that several cores work. */
function runSeeds(kit: keyof typeof SEEDS, from: number, count: number): Promise<string> {
  const args = ['--import', 'tsx', 'tests/sim/main.ts', '--from', String(from), '--seeds', String(count)];
  if (kit === 'raft') args.push('--raft');
  return new Promise((resolve) => {
    const options = { cwd: ROOT, maxBuffer: MAX_OUTPUT_BYTES };
    execFile(process.execPath, args, options, (_error, stdout, stderr) => resolve(stdout + stderr));
  });
}

/** One core's share of both. */
async function runShare(part: number, parts: number): Promise<string> {
  let output = '';
  for (const kit of ['raft', 'system'] as const) {
    const from = Math.floor((SEEDS[kit] * part) / parts);
    const to = Math.floor((SEEDS[kit] * (part + 1)) / parts);
    output += await runSeeds(kit, from + 1, to - from);
  }
  return output;
}

describe('the simulated world', () => {
  it('holds over 300 seeds: nothing unsafe, and progress in every second phase', async () => {
    const parts = Math.max(1, availableParallelism());
    const outputs = await Promise.all(Array.from({ length: parts }, (_, part) => runShare(part, parts)));
    const lines = outputs.join('').split('\n');
    const held = lines.filter((line) => /^seed \d+ ok/.test(line)).length;
    const rest = lines.filter((line) => line !== '' && !/^seed \d+ ok/.test(line)).join('\n');
    expect(held, rest).toBe(SEEDS.raft + SEEDS.system);
  }, 900_000);

  it('is repeatable: the same seed gives the same history, step for step', async () => {
    for (const [kit, brokers] of [
      [SERVER_KIT, true],
      [RAFT_KIT, false],
    ] as const) {
      const plan = drawPlan(4, { brokers });
      const first = await play(plan, kit);
      expect(await play(plan, kit)).toEqual(first);
      expect(first.failure).toBeNull();
      expect(first.virtualMs).toBeGreaterThanOrEqual(60_000);
    }
  });
});
