import { execFile } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs, promisify } from 'node:util';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '../..');
const PLANTED = import.meta.dirname;
const PARTS = ['raft', 'placement', 'src', 'tests/sim', 'tests/support', 'package.json', 'tsconfig.json'];
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;

const USAGE = `npm run sim:planted -- [--only TEXT] [--jobs N]

Plants each fault of tests/planted/*.patch in a copy of the sources and runs seeds until the simulator finds it.
Fails where a patch no longer applies, or its fault is not found within the seeds that its header states.
`;

/**
 * A patch's header: `Fault:` what is broken, `Seeds:` within how many it is found, `Kit:` raft (consensus alone) or
 * server, and `Faults:` where certain kinds of fault find it sooner than those that seeds draw.
 */
interface Planted {
  readonly file: string;
  readonly fault: string;
  readonly seeds: number;
  readonly kit: 'raft' | 'server';
  /** As `--only` takes them. */
  readonly faults: string | null;
}

interface Outcome {
  readonly planted: Planted;
  readonly foundAt: number | null;
  readonly detail: string;
}

function readHeader(file: string): Planted {
  const text = readFileSync(join(PLANTED, file), 'utf8');
  const optional = (name: string): string | null =>
    new RegExp(`^${name}: (.+)$`, 'm').exec(text)?.[1] ?? null;
  const field = (name: string): string => {
    const value = optional(name);
    if (value === null) throw new Error(`${file} has no line \`${name}: …\``);
    return value;
  };
  const kit = field('Kit');
  if (kit !== 'raft' && kit !== 'server') throw new Error(`${file}: Kit is raft or server, not ${kit}`);
  return { file, fault: field('Fault'), seeds: Number(field('Seeds')), kit, faults: optional('Faults') };
}

async function plant(planted: Planted): Promise<Outcome> {
  const tree = mkdtempSync(join(tmpdir(), 'evenkeel-planted-'));
  try {
    for (const part of PARTS) cpSync(join(ROOT, part), join(tree, part), { recursive: true });
    symlinkSync(join(ROOT, 'node_modules'), join(tree, 'node_modules'));
    const applied = await attempt('git', ['apply', '--whitespace=nowarn', join(PLANTED, planted.file)], tree);
    if (applied.code !== 0) return { planted, foundAt: null, detail: `does not apply: ${applied.output}` };
    const args = ['--import', 'tsx', 'tests/sim/main.ts', '--seeds', String(planted.seeds), '--stop'];
    if (planted.kit === 'raft') args.push('--raft');
    if (planted.faults !== null) args.push('--only', planted.faults);
    const played = await attempt(process.execPath, args, tree);
    const found = /FAILED seed (\d+)/.exec(played.output)?.[1];
    if (found !== undefined) {
      return { planted, foundAt: Number(found), detail: firstReason(played.output) };
    }
    const detail =
      played.code === 0 ? `not found in ${planted.seeds} seeds` : `no run: ${played.output.slice(-2_000)}`;
    return { planted, foundAt: null, detail };
  } finally {
    rmSync(tree, { recursive: true, force: true });
  }
}

function firstReason(output: string): string {
  const lines = output.split('\n').map((line) => line.trim());
  return (
    lines.find((line) => /^(unsafe|unserved|no progress|no leader|bound|Error|\w*Error)\b/.test(line)) ??
    'failed'
  );
}

async function attempt(file: string, args: string[], cwd: string): Promise<{ code: number; output: string }> {
  try {
    const { stdout, stderr } = await run(file, args, { cwd, maxBuffer: MAX_OUTPUT_BYTES });
    return { code: 0, output: stdout + stderr };
  } catch (error) {
    const { code, stdout, stderr } = error as { code?: number; stdout?: string; stderr?: string };
    return { code: code ?? 1, output: `${stdout ?? ''}${stderr ?? String(error)}` };
  }
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      only: { type: 'string', default: '' },
      jobs: { type: 'string', default: '2' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    console.log(USAGE);
    return 0;
  }
  const files = readdirSync(PLANTED).filter((name) => name.endsWith('.patch') && name.includes(values.only));
  const queue = files.sort().map(readHeader);
  const total = queue.length;
  let missed = 0;
  const work = async (): Promise<void> => {
    for (let planted = queue.shift(); planted !== undefined; planted = queue.shift()) {
      const { foundAt, detail } = await plant(planted);
      if (foundAt === null) missed++;
      const verdict = foundAt === null ? 'MISSED' : `found at seed ${foundAt} of ${planted.seeds}`;
      console.log(`${planted.file}: ${verdict}\n  ${planted.fault}\n  ${detail}`);
    }
  };
  await Promise.all(Array.from({ length: Number(values.jobs) }, work));
  console.log(`\n${total} planted faults, ${total - missed} found, ${missed} missed`);
  return missed === 0 && total > 0 ? 0 : 1;
}

process.exitCode = await main();
