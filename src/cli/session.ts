import { Option, type Command } from 'commander';
import { AdminClient, DEFAULT_CALL_TIMEOUT_MS } from '../client/index.ts';
import { parseAddress } from '../address.ts';
import { quote } from '../command/index.ts';
import { EvenkeelError } from '../errors.ts';
import { parseTimeout } from './arguments.ts';
import type { CliEnvironment } from './environment.ts';
import { FORMATS, render, type Format, type View } from './output.ts';

export const DEFAULT_ENDPOINT = '127.0.0.1:7401';

/** One command's talk with the cluster. */
export interface Session {
  readonly client: AdminClient;
  readonly environment: CliEnvironment;
  readonly endpoints: readonly string[];
  readonly format: Format;
  /** Prints what the command found, in the format asked for, on stdout. */
  readonly show: (view: View) => void;
  /** Says what a write did: a line for people on stderr, the answer on stdout for `-o json|yaml`. */
  readonly done: (line: string, answer: unknown) => void;
}

type Options = Readonly<Record<string, unknown>>;

/** Adds the options of a command that asks the cluster, and runs it with a client that is closed afterwards. */
export function clusterCommand<Given extends Options>(
  command: Command,
  environment: CliEnvironment,
  run: (session: Session, options: Given, args: readonly string[]) => Promise<void>,
): Command {
  return command
    .addOption(endpointsOption())
    .addOption(formatOption())
    .option('--timeout <duration>', 'for each call, with its retries (10s, at most 60s)', parseTimeout)
    .action(async () => {
      const options = command.opts<Given & { endpoints?: string; output?: Format; timeout?: number }>();
      const endpoints = endpointsOf(options.endpoints, environment);
      const { net, clock } = environment;
      const timeoutMs = options.timeout ?? DEFAULT_CALL_TIMEOUT_MS;
      const client = new AdminClient({ net, clock, endpoints, timeoutMs });
      const session = createSession(client, environment, { endpoints, format: options.output ?? 'table' });
      try {
        await run(session, options, command.args);
      } finally {
        client.close();
      }
    });
}

export function endpointsOption(): Option {
  return new Option('--endpoints <a,b,c>', `nodes to ask (EVENKEEL_ENDPOINTS, else ${DEFAULT_ENDPOINT})`);
}

export function formatOption(): Option {
  return new Option('-o, --output <format>', 'how to print').choices(FORMATS).default('table');
}

export function endpointsOf(given: string | undefined, { env }: CliEnvironment): string[] {
  const text = given ?? env['EVENKEEL_ENDPOINTS'] ?? DEFAULT_ENDPOINT;
  const endpoints = text
    .split(',')
    .map((endpoint) => endpoint.trim())
    .filter((endpoint) => endpoint !== '');
  for (const endpoint of endpoints) {
    const port = parseAddress(endpoint)?.port ?? 0;
    if (port === 0)
      throw new EvenkeelError('invalid_argument', `endpoint ${quote(endpoint)} is not host:port`);
  }
  return endpoints;
}

function createSession(
  client: AdminClient,
  environment: CliEnvironment,
  { endpoints, format }: { endpoints: readonly string[]; format: Format },
): Session {
  const show = (view: View): void => environment.out(render(view, format));
  return {
    client,
    environment,
    endpoints,
    format,
    show,
    done(line, answer) {
      environment.note(`${line}\n`);
      if (format === 'json' || format === 'yaml') show({ data: answer, text: () => line });
    },
  };
}
