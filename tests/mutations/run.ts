import { spawn } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { FAULTS } from './faults/index.ts';
import type { Fault } from './fault.ts';

const ROOT = join(import.meta.dirname, '../..');
const PARTS = ['raft', 'placement', 'src', 'tests', 'package.json', 'tsconfig.json', 'vitest.config.ts'];
/** A test file that runs longer has been hung up by the fault, which counts as found, ms. */
const TIMEOUT_MS = 240_000;

const USAGE = `npm run mutations -- [--list NAME] [--only TEXT]

Puts each small fault of tests/mutations/faults/ into a copy of the sources, alone, and runs the tests it names until one
fails. --list takes one file of that folder, --only the faults whose file or description contains TEXT. Fails where a
fault is not found or no longer applies.
`;

type Verdict = 'found' | 'NOT FOUND' | 'DOES NOT APPLY';

interface Outcome {
  readonly verdict: Verdict;
  /** The test that failed. */
  readonly by: string;
}

/** One copy of the sources, in which one fault at a time is put in and taken out again. */
class Tree {
  readonly path = mkdtempSync(join(tmpdir(), 'evenkeel-mutations-'));

  constructor() {
    for (const part of PARTS) cpSync(join(ROOT, part), join(this.path, part), { recursive: true });
    symlinkSync(join(ROOT, 'node_modules'), join(this.path, 'node_modules'));
  }

  async try(fault: Fault): Promise<Outcome> {
    const path = join(this.path, fault.file);
    const sound = readFileSync(path, 'utf8');
    const parts = sound.split(fault.find);
    if (parts.length !== 2) {
      return { verdict: 'DOES NOT APPLY', by: `its text stands ${parts.length - 1} times in ${fault.file}` };
    }
    writeFileSync(path, parts.join(fault.replace));
    try {
      const by = (await this.#failingTest(fault)) ?? (await this.#failingSeed(fault));
      return by === null ? { verdict: 'NOT FOUND', by: fault.tests.join(', ') } : { verdict: 'found', by };
    } finally {
      writeFileSync(path, sound);
    }
  }

  async #failingTest({ tests }: Fault): Promise<string | null> {
    for (const file of tests) {
      const vitest = ['node_modules/vitest/vitest.mjs', 'run', '--project', 'unit', '--bail', '1', file];
      const { code, output } = await this.#node(vitest);
      if (code !== 0) return /FAIL\s+(?:unit\s+)?(.+)/.exec(output)?.[1] ?? `${file}: ${output.slice(-500)}`;
    }
    return null;
  }

  async #failingSeed({ seeds }: Fault): Promise<string | null> {
    if (seeds === undefined) return null;
    const sim = ['--import', 'tsx', 'tests/sim/main.ts', '--seeds', String(seeds), '--stop'];
    const { code, output } = await this.#node(sim);
    return code === 0 ? null : (/FAILED seed \d+/.exec(output)?.[0] ?? output.slice(-500));
  }

  #node(args: readonly string[]): Promise<{ code: number | null; output: string }> {
    return new Promise((resolve) => {
      const env = { ...process.env, NO_COLOR: '1' };
      // A group of its own, so that a fault's endless loop in a test worker ends with the rest.
      const child = spawn(process.execPath, args, { cwd: this.path, env, detached: true });
      let output = '';
      const note = (data: Buffer): void => void (output += data.toString());
      child.stdout.on('data', note);
      child.stderr.on('data', note);
      const timer = setTimeout(() => {
        output += `\nstill running after ${TIMEOUT_MS} ms`;
        if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
      }, TIMEOUT_MS);
      child.on('close', (code) => {
        clearTimeout(timer);
        resolve({ code, output });
      });
    });
  }

  remove(): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      list: { type: 'string' },
      only: { type: 'string', default: '' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    console.log(USAGE);
    return 0;
  }
  const listed = values.list === undefined ? Object.values(FAULTS).flat() : (FAULTS[values.list] ?? []);
  const chosen = listed.filter(({ file, what }) => `${file} ${what}`.includes(values.only));
  const tree = new Tree();
  let found = 0;
  try {
    for (const fault of chosen) {
      const { verdict, by } = await tree.try(fault);
      if (verdict === 'found') found++;
      console.log(`${verdict}: ${fault.file}: ${fault.what}\n  ${by}`);
    }
  } finally {
    tree.remove();
  }
  console.log(`\n${chosen.length} small faults, ${found} found`);
  return found === chosen.length && found > 0 ? 0 : 1;
}

process.exitCode = await main();
