import type { Command } from 'commander';
import { CliExit, type CliEnvironment } from './cli/index.ts';
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

/** The signal that asked the node to end. */
interface Interrupt {
  readonly signal: string;
}

/** `evenkeel serve`: one control-plane node in this process until a signal ends it. */
export function addServe(program: Command, environment: CliEnvironment): void {
  const command = program
    .command('serve')
    .description('run one control-plane node')
    .action(async (flags: Record<string, unknown>) => {
      throw new CliExit(await serve(configOf(command, flags), environment));
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

async function serve(config: ServeConfig, environment: CliEnvironment): Promise<number> {
  const logger = createLogger({ level: config.logLevel, node: config.nodeId });
  const interrupted = new Promise<Interrupt>((resolve) => {
    environment.onInterrupt((signal) => resolve({ signal }));
  });
  environment.onOutputLost((code) =>
    logger.warn({ code }, 'standard output cannot be written; the node goes on without it'),
  );
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
  let node: RunningNode | Interrupt | Error;
  try {
    node = await Promise.race([starting, interrupted, fatal]);
  } catch (error) {
    if (!(error instanceof EvenkeelError)) throw error;
    logger.fatal({ code: error.code }, error.message);
    return ERRORS[error.code].exit;
  }
  if (node instanceof Error) return EXIT_STOPPED_ITSELF;
  if ('signal' in node) {
    // A node that still waits for its group has promised nothing: it may simply end.
    logger.info(node, 'stopping before the node was ready');
    return 0;
  }
  environment.out(`ready node=${config.nodeId} listen=${node.address}\n`);
  const ended = await Promise.race([fatal, interrupted]);
  if (!('signal' in ended)) return EXIT_STOPPED_ITSELF;
  logger.info(ended, 'stopping');
  await node.stop();
  forget();
  return 0;
}
