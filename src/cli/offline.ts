import { Option, type Command } from 'commander';
import {
  DEFAULT_MAX_PASSES,
  EventRefused,
  operator,
  plan,
  planFile,
  simulate,
  type ClusterFile,
  type Phase,
  type Planner,
  type SimEvent,
  type SimStep,
  type Simulation,
} from '../../placement/index.ts';
import { AdminClient, DEFAULT_CALL_TIMEOUT_MS } from '../client/index.ts';
import { EvenkeelError } from '../errors.ts';
import { parseCount } from './arguments.ts';
import type { CliEnvironment } from './environment.ts';
import { render, table, type Column } from './output.ts';
import { levelsText, listed, planText } from './placement.ts';
import { CliExit } from './run.ts';
import { endpointsOf, endpointsOption } from './session.ts';
import { exportCluster, readClusterFile, sourceOf } from './transfer.ts';

const PLANNER: Planner = { plan, ...operator };

/** The exit code of a simulation that did not settle within its passes. */
const NOT_SETTLED = 1;

interface SimulateOptions {
  readonly file?: string;
  readonly live?: true;
  readonly endpoints?: string;
  readonly events?: string;
  readonly maxPasses?: number;
  readonly output: 'table' | 'json';
}

/** `plan` and `simulate`: the planner without a cluster (contract, section 3). */
export function addOffline(program: Command, environment: CliEnvironment): void {
  program
    .command('plan')
    .description('what the next pass over a cluster file would write, and why')
    .requiredOption('-f, --file <path>', 'the cluster file; - is standard input')
    .addOption(outputOption())
    .action(async ({ file, output }: { file: string; output: 'table' | 'json' }) => {
      const cluster = await readClusterFile(environment, file);
      const found = planFile(cluster, PLANNER);
      const { paused } = cluster.policy;
      environment.out(
        render({ data: { ...found, paused }, text: () => planText(found, { wide: true, paused }) }, output),
      );
    });
  const command = program
    .command('simulate')
    .description('run pass after pass over a cluster file until nothing is wanted')
    .option('-f, --file <path>', 'the cluster file; - is standard input')
    .addOption(new Option('--live', 'start from a running cluster').conflicts('file'))
    .addOption(endpointsOption())
    .option('--events <path>', 'what happens to the cluster, one event after the other')
    .option('--max-passes <n>', `most passes of one phase (${DEFAULT_MAX_PASSES})`, parseCount)
    .addOption(outputOption())
    .action(async (options: SimulateOptions) => {
      if (options.file === undefined && options.live !== true) {
        command.error('error: name a cluster file with -f, or start from a running cluster with --live');
      }
      if (options.file === '-' && options.events === '-') {
        command.error('error: -f and --events cannot both be standard input');
      }
      await runSimulate(environment, options);
    });
}

async function runSimulate(environment: CliEnvironment, options: SimulateOptions): Promise<void> {
  const { events: path, maxPasses = DEFAULT_MAX_PASSES, output } = options;
  const file = await startOf(environment, options);
  const events = path === undefined ? [] : await readEvents(environment, path, file);
  const simulation = tellRefusal(sourceOf(path ?? ''), () => simulate(file, { events, maxPasses }, PLANNER));
  environment.out(render({ data: simulation, text: () => simulationText(simulation, events) }, output));
  if (simulation.settled) return;
  environment.note(`not settled within ${maxPasses} passes\n`);
  throw new CliExit(NOT_SETTLED);
}

async function startOf(environment: CliEnvironment, options: SimulateOptions): Promise<ClusterFile> {
  if (options.file !== undefined) return readClusterFile(environment, options.file);
  if (options.live !== true) {
    throw new EvenkeelError(
      'invalid_argument',
      'name a cluster file with -f, or a running cluster with --live',
    );
  }
  const { net, clock } = environment;
  const endpoints = endpointsOf(options.endpoints, environment);
  const client = new AdminClient({ net, clock, endpoints, timeoutMs: DEFAULT_CALL_TIMEOUT_MS });
  try {
    const files = await import('../cluster-file/index.ts');
    return files.readClusterFile(await exportCluster(client), 'the export');
  } finally {
    client.close();
  }
}

async function readEvents(
  environment: CliEnvironment,
  path: string,
  file: ClusterFile,
): Promise<readonly SimEvent[]> {
  const { checkEventLimits, parseEvents } = await import('../cluster-file/index.ts');
  const events = parseEvents(await environment.readText(path), sourceOf(path));
  checkEventLimits(file, events, sourceOf(path));
  return events;
}

function tellRefusal(source: string, run: () => Simulation): Simulation {
  try {
    return run();
  } catch (error) {
    if (error instanceof EventRefused)
      throw new EvenkeelError('invalid_argument', `${source}: ${error.message}`);
    throw error;
  }
}

function outputOption(): Option {
  return new Option('-o, --output <format>', 'how to print').choices(['table', 'json']).default('table');
}

const STEP_COLUMNS: readonly Column<SimStep>[] = [
  { name: 'PASS', cell: ({ pass }) => pass },
  { name: 'STEP', cell: ({ step }) => step },
  { name: 'SHARD', cell: ({ shard }) => shard },
  { name: 'ROLE', cell: ({ role }) => role },
  { name: 'FROM', cell: ({ from }) => from },
  { name: 'TO', cell: ({ to }) => to },
  { name: 'DROPS', cell: ({ drops }) => drops },
  { name: 'REASON', cell: ({ reason }) => reason },
  { name: 'COPIES', cell: ({ copies }) => copies },
];

function simulationText(simulation: Simulation, events: readonly SimEvent[]): string {
  const phases = simulation.phases.map((phase, i) => phaseText(phase, events[i - 1]));
  const end = simulation.settled ? 'settled' : 'not settled';
  return [...phases, `${end} after ${simulation.passes} passes`].join('\n\n');
}

function phaseText(phase: Phase, event: SimEvent | undefined): string {
  const leaderMoves = phase.moves.filter(({ role }) => role === 'leader').length;
  return [
    event === undefined ? 'start' : `event ${JSON.stringify(event.source)}`,
    phase.steps.length === 0 ? 'nothing is written' : table(STEP_COLUMNS, phase.steps),
    ...listed('waiting', phase.waiting),
    ...listed('unplaceable', phase.unplaceable),
    ...listed('unspread', phase.unspread),
    ...phase.conflicts.map(({ zone, detail }) => `conflict: zone ${zone}: ${detail}`),
    '',
    levelsText(phase.levels),
    `leader moves: ${leaderMoves} (fewest possible: ${phase.minimumLeaderMoves ?? 'unknown'}), copy moves: ${phase.moves.length - leaderMoves}`,
    `${phase.settled ? 'settled' : 'not settled'} after ${phase.passes} passes, at ${phase.virtualMs} ms`,
  ].join('\n');
}
