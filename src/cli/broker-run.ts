import { Option, type Command } from 'commander';
import { ERRORS, EvenkeelError } from '../errors.ts';
import { LOG_LEVELS, type LogLevel } from '../log-levels.ts';
import { onOwnFault } from '../own-faults.ts';
import { createSystemRandom } from '../random.ts';
import { collectLabels, parseCount, parsePositive } from './arguments.ts';
import type { CliEnvironment } from './environment.ts';
import { CliExit } from './run.ts';
import { endpointsOf, endpointsOption } from './session.ts';

const DEFAULT_COPY_RATE = 10_000;
/** Its disk failed, its store is damaged, or an invariant broke. */
const EXIT_STOPPED_ITSELF = 70;

interface RunOptions {
  readonly id: string;
  readonly clusterId: string;
  readonly dataDir: string;
  readonly endpoints?: string;
  readonly listen: string;
  readonly zone?: string;
  readonly maxShards?: number;
  readonly weight?: number;
  readonly label?: Record<string, string>;
  readonly copyRate: number;
  readonly seedRecords: number;
  readonly logLevel: LogLevel;
}

/** `broker run`: the reference broker in this process, until a signal or its own end. */
export function addBrokerRun(noun: Command, environment: CliEnvironment): void {
  const command = noun
    .command('run')
    .description('run a reference broker: small, real, for trials and tests')
    .requiredOption('--id <id>', 'its id')
    .requiredOption('--cluster-id <id>', 'the cluster it belongs to')
    .requiredOption('--data-dir <dir>', 'where its records are')
    .addOption(endpointsOption())
    .option('--listen <host:port>', 'for other brokers and clients', '127.0.0.1:0')
    .option('--zone <zone>', 'its zone (one of its own)')
    .option('--max-shards <n>', 'most copies it may hold (no cap)', parseCount)
    .option('--weight <n>', 'its part of the load (1)', parseCount)
    .option('--label <key=value>', 'a label; may be given again', collectLabels(false))
    .option('--copy-rate <n>', 'records a second to each copy being made', parsePositive, DEFAULT_COPY_RATE)
    .option('--seed-records <n>', 'records put into a shard opened empty', parseCount, 0)
    .addOption(new Option('--log-level <level>', 'what is logged').choices(LOG_LEVELS).default('info'));
  command.action(async () => runBroker(environment, command.opts<RunOptions>()));
}

async function runBroker(environment: CliEnvironment, options: RunOptions): Promise<void> {
  const { id, clusterId, dataDir, listen, zone, maxShards, weight, copyRate, seedRecords } = options;
  const { Broker } = await import('../broker/index.ts');
  const { createLevelDisk } = await import('../disk-level.ts');
  const { createLogger } = await import('../logger.ts');
  const log = createLogger({ level: options.logLevel, node: id });
  const interrupted = new Promise<string>((resolve) => void environment.onInterrupt(resolve));
  environment.onOutputLost((code) =>
    log.warn({ code }, 'standard output cannot be written; the broker goes on without it'),
  );
  let stoppedItself: (reason: Error) => void = () => undefined;
  const stopped = new Promise<Error>((resolve) => (stoppedItself = resolve));
  onOwnFault((error) => stoppedItself(error));
  const broker = new Broker({
    id,
    clusterId,
    dataDir,
    listen,
    endpoints: endpointsOf(options.endpoints, environment),
    ...(zone !== undefined && { zone }),
    ...(maxShards !== undefined && { maxShards }),
    ...(weight !== undefined && { weight }),
    ...(options.label !== undefined && { labels: options.label }),
    copyRate,
    seedRecords,
    net: environment.net,
    clock: environment.clock,
    random: createSystemRandom(),
    disk: createLevelDisk(),
    log,
    onStopped: (reason) => stoppedItself(reason),
  });
  const started = await Promise.race([broker.start(), stopped]);
  if (!(started instanceof Error)) environment.out(`ready broker=${id} listen=${started.address}\n`);
  const reason = await Promise.race([interrupted, stopped]);
  if (typeof reason === 'string') {
    log.info({ signal: reason }, 'stopping');
    await broker.stop();
    return;
  }
  // A slip of usage, or replaced by another process: said as any command says it.
  if (reason instanceof EvenkeelError && ERRORS[reason.code].exit !== EXIT_STOPPED_ITSELF) throw reason;
  const fields = reason instanceof EvenkeelError ? { code: reason.code } : {};
  log.fatal(fields, `the broker stops itself: ${reason.message}`);
  throw new CliExit(EXIT_STOPPED_ITSELF);
}
