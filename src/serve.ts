import type { Command } from 'commander';
import { CliExit } from './cli/index.ts';
import { createSystemClock } from './clock.ts';
import { readServeConfig, SERVE_OPTIONS, type ServeConfig } from './config.ts';
import { WorkerPlanner } from './control/index.ts';
import { createLevelDisk } from './disk-level.ts';
import { ERRORS, EvenkeelError } from './errors.ts';
import { createLogger } from './logger.ts';
import { createProcessMetrics } from './metrics-process.ts';
import { createWebSocketNet } from './net-ws.ts';
import { onOwnFault } from './own-faults.ts';
import { createSystemRandom } from './random.ts';
import { startNode, type RunningNode } from './server.ts';

/** The node stopped itself: a failed disk or a broken invariant. */
const EXIT_STOPPED_ITSELF = 70;

/** `evenkeel serve`: one control-plane node in this process until a signal ends it. */
export function addServe(program: Command): void {
  const command = program
    .command('serve')
    .description('run one control-plane node')
    .action(async (flags: Record<string, unknown>) => {
      throw new CliExit(await serve(configOf(command, flags)));
    });
  for (const { flag, value, environment, description, fallback } of SERVE_OPTIONS) {
    const ending = fallback === null || fallback === '' ? '' : `; ${fallback} unless given`;
    command.option(value === null ? flag : `${flag} <${value}>`, `${description} (${environment}${ending})`);
  }
}

/** An option that is missing or wrong is a slip of usage, as it is of every other command. */
function configOf(command: Command, flags: Readonly<Record<string, unknown>>): ServeConfig {
  try {
    return readServeConfig(flags, process.env);
  } catch (error) {
    if (!(error instanceof EvenkeelError)) throw error;
    return command.error(`error: ${error.message} (${error.code})`);
  }
}

async function serve(config: ServeConfig): Promise<number> {
  const logger = createLogger({ level: config.logLevel, node: config.nodeId });
  const signal = new Promise<'signal'>((resolve) => {
    process.once('SIGINT', () => resolve('signal'));
    process.once('SIGTERM', () => resolve('signal'));
  });
  let stoppedItself: (error: Error) => void = () => {};
  const fatal = new Promise<Error>((resolve) => (stoppedItself = resolve));
  const forget = onOwnFault((error) => {
    logger.fatal({ error: error.message, stack: error.stack }, 'the node stops itself: an internal error');
    stoppedItself(error);
  });
  const clock = createSystemClock();
  const starting = startNode({
    config,
    clock,
    net: createWebSocketNet(),
    disk: createLevelDisk(),
    random: createSystemRandom(),
    logger,
    planner: (state, feed, turns) => new WorkerPlanner(state, feed, { clock: turns, log: logger }),
    processMetrics: createProcessMetrics(config.nodeId),
    onFatal: (error) => stoppedItself(error),
  });
  let node: RunningNode | 'signal' | Error;
  try {
    node = await Promise.race([starting, signal, fatal]);
  } catch (error) {
    if (!(error instanceof EvenkeelError)) throw error;
    logger.fatal({ code: error.code }, error.message);
    return ERRORS[error.code].exit;
  }
  // A node that still waits for its group has promised nothing: it may simply end.
  if (node === 'signal') return 0;
  if (node instanceof Error) return EXIT_STOPPED_ITSELF;
  process.stdout.write(`ready node=${config.nodeId} listen=${node.address}\n`);
  const ended = await Promise.race([fatal, signal]);
  if (ended !== 'signal') return EXIT_STOPPED_ITSELF;
  logger.info({}, 'stopping');
  await node.stop();
  forget();
  return 0;
}
