import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import {
  FAULTS,
  RAFT_KIT,
  SERVER_KIT,
  drawPlan,
  shrinkPlan,
  type SimPlan,
  type SimResult,
} from '../../src/sim/index.ts';
import { play } from './judge.ts';

const USAGE = `npm run sim -- [--seed N] [--seeds N] [--minutes M] [--from N] [--plan FILE] [--only KINDS] [--stop] [--shrink] [--out FILE]

  --seed N     this seed alone
  --seeds N    seeds from --from on (1 unless given)
  --minutes M  seeds from --from on until the time has passed
  --plan FILE  a written plan instead of a seed
  --only A,B   these kinds of fault instead of those that the seed would draw
  --raft       consensus alone, under a state machine of registers, instead of whole nodes
  --stop       at the first seed that fails
  --shrink     a failing plan is made short and written to --out (sim-plan.json)
`;

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    seeds: { type: 'string' },
    minutes: { type: 'string' },
    from: { type: 'string', default: '1' },
    plan: { type: 'string' },
    raft: { type: 'boolean', default: false },
    only: { type: 'string' },
    stop: { type: 'boolean', default: false },
    shrink: { type: 'boolean', default: false },
    out: { type: 'string', default: 'sim-plan.json' },
    help: { type: 'boolean', default: false },
  },
});

const kit = values.raft ? RAFT_KIT : SERVER_KIT;
const only = values.only?.split(',');
const unknown = only?.find((kind) => !FAULTS.includes(kind));
if (unknown !== undefined)
  throw new Error(`no kind of fault is called ${unknown}; there are ${FAULTS.join(', ')}`);
const draw = (seed: number): SimPlan =>
  drawPlan(seed, { brokers: !values.raft, ...(only === undefined ? {} : { only }) });

// Refusals are made by the thousand, and a seed that fails is run again alone.
if (values.seed === undefined && values.plan === undefined) Error.stackTraceLimit = 0;

process.on('unhandledRejection', (reason) => {
  console.error('unhandled rejection', reason);
  process.exit(1);
});

function* plans(): Generator<SimPlan> {
  if (values.plan !== undefined) {
    yield JSON.parse(readFileSync(values.plan, 'utf8')) as SimPlan;
    return;
  }
  if (values.seed !== undefined) {
    yield draw(Number(values.seed));
    return;
  }
  const from = Number(values.from);
  const untilMs = performance.now() + Number(values.minutes ?? Infinity) * 60_000;
  const count = values.minutes === undefined ? Number(values.seeds ?? 10) : Infinity;
  for (let seed = from; seed < from + count && performance.now() < untilMs; seed++) yield draw(seed);
}

function commit(): string {
  try {
    return execFileSync('git', ['describe', '--always', '--dirty'], { encoding: 'utf8' }).trim();
  } catch {
    return 'unknown';
  }
}

function report(plan: SimPlan, result: SimResult): void {
  console.log(`\nFAILED seed ${plan.seed} at commit ${commit()}`);
  console.log(`  ${plan.members.length} members, faults: ${plan.faults.join(', ')}`);
  console.log(`  settings: ${JSON.stringify(plan.settings)}`);
  console.log(
    `  core ${plan.core.join(' ')}, others ${plan.outsiders}; after ${result.virtualMs} virtual ms`,
  );
  console.log(`  ${result.failure}`);
}

/** The kind of failure: numbers and names differ between a plan and a shorter one. */
function kindOf(failure: string | null): string | null {
  return failure?.split('\n')[0]?.replace(/\bn?\d+\b/g, '#') ?? null;
}

async function shrink(plan: SimPlan, failure: string | null): Promise<void> {
  const kind = kindOf(failure);
  const short = await shrinkPlan(
    plan,
    async (candidate) => kindOf((await play(candidate, kit)).failure) === kind,
    (best) => console.log(`  ${best.actions.length} actions, ${best.operations.length} operations`),
  );
  writeFileSync(values.out, `${JSON.stringify(short, null, 1)}\n`);
  report(short, await play(short, kit));
  console.log(`  actions: ${JSON.stringify(short.actions)}`);
  console.log(`written to ${values.out}: npm run sim -- --plan ${values.out}`);
}

async function main(): Promise<number> {
  if (values.help) {
    console.log(USAGE);
    return 0;
  }
  let seeds = 0;
  let failed = 0;
  let acknowledged = 0;
  const begunMs = performance.now();
  for (const plan of plans()) {
    const seedBegunMs = performance.now();
    const result = await play(plan, kit);
    seeds++;
    acknowledged += result.acknowledged;
    const tookMs = Math.round(performance.now() - seedBegunMs);
    if (result.failure === null) {
      console.log(
        `seed ${plan.seed} ok: ${tookMs} ms, trace ${result.traceHash}, ${result.acknowledged} answered, ${result.records} records, ` +
          `${result.committed} committed, ${result.leaders} leaders, recovered in ${result.recoveryMs} ms, ` +
          `${Math.round(result.virtualMs / 1_000)} virtual s, ${result.steps} steps, ${result.messages} messages`,
      );
      continue;
    }
    failed++;
    report(plan, result);
    if (values.stop) return 1;
    if (values.shrink) {
      await shrink(plan, result.failure);
      return 1;
    }
  }
  const seconds = ((performance.now() - begunMs) / 1_000).toFixed(1);
  console.log(`\n${seeds} seeds, ${failed} failed, ${acknowledged} operations answered, ${seconds} s`);
  return failed === 0 ? 0 : 1;
}

process.exitCode = await main();
