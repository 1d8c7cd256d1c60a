import { Option, type Command } from 'commander';
import { parseCount, parseDuration, parsePositive } from '../arguments.ts';
import type { CliEnvironment } from '../environment.ts';
import { CliExit } from '../run.ts';
import type { DevOptions } from './run.ts';

const DEFAULT_TIMEOUT_MS = 60_000;

export function addDev(program: Command, environment: CliEnvironment): void {
  const command = program
    .command('dev')
    .description(
      'a quorum and brokers as processes of this machine, with a cluster levelled before your eyes',
    )
    .option('--nodes <n>', 'control-plane nodes (3)', parseCount)
    .option('--brokers <n>', 'brokers (as many as the cluster file has, else 3)', parseCount)
    .option('--cluster <file>', 'cluster file to begin with (the lopsided example)')
    .option('--data-dir <dir>', 'keep data here (a new directory, removed at the end)')
    .option('--port <n>', 'first client port; 0 takes any that are free (7401)', parseCount)
    .option('--copy-rate <n>', 'records a second to each copy being made (10000)', parsePositive)
    .option('--until-level', 'end once every resource and the totals are level; exit 1 if not in time')
    .addOption(
      new Option('--timeout <duration>', '--until-level, and how long that may take (60s)')
        .argParser(parseDuration)
        .implies({ untilLevel: true }),
    );
  command.action(async () => {
    const { timeout = DEFAULT_TIMEOUT_MS, ...options } = command.opts<DevOptions & { timeout?: number }>();
    const { runDev } = await import('./run.ts');
    const code = await runDev(environment, { ...options, timeoutMs: timeout });
    if (code !== 0) throw new CliExit(code);
  });
}
