import { parseArgs } from 'node:util';
import { FAULTS } from './faults/index.ts';
import { playRound, type Fault, type Report } from './round.ts';

const USAGE = `npm run chaos -- [--rounds N] [--seed S] [--only A,B]

  --rounds N   rounds of each kind of fault (1)
  --seed S     the seed of the first round (1); the next has S + 1
  --only A,B   of ${FAULTS.map(({ name }) => name).join(', ')} (all)
`;

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '1' },
    seed: { type: 'string', default: '1' },
    only: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
});

/** Exits as soon as a round cannot be what was asked for. */
function usage(problem: string): never {
  console.error(`${problem}\n\n${USAGE}`);
  process.exit(2);
}

function count(flag: string, text: string): number {
  if (!/^\d{1,9}$/.test(text)) usage(`${flag} must be a whole number, not ${text}`);
  return Number(text);
}

function chosen(names: string | undefined): readonly Fault[] {
  if (names === undefined) return FAULTS;
  return names.split(',').map((name) => {
    return FAULTS.find((fault) => fault.name === name) ?? usage(`no kind of fault is called ${name}`);
  });
}

function print(fault: Fault, seed: number, seconds: number, report: Report): void {
  const { failures, notes, acknowledged, longestGapMs, said } = report;
  const result = failures.length === 0 ? 'ok  ' : 'FAIL';
  console.log(
    `${result} ${fault.name} seed ${seed}: ${acknowledged} records, unserved at most ${Math.round(longestGapMs)} ms, ` +
      `${seconds.toFixed(0)} s; ${notes.join('; ')}`,
  );
  for (const failure of failures) console.log(`     ${failure}`);
  if (said !== '') console.log(said);
}

if (values.help) {
  console.log(USAGE);
  process.exit(0);
}
const faults = chosen(values.only);
const first = count('--seed', values.seed);
let failed = 0;
for (let seed = first; seed < first + count('--rounds', values.rounds); seed++) {
  for (const fault of faults) {
    const startedAt = performance.now();
    const report = await playRound(fault, seed);
    if (report.failures.length > 0) failed++;
    print(fault, seed, (performance.now() - startedAt) / 1000, report);
  }
}
process.exit(failed === 0 ? 0 : 1);
