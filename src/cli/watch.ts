import type { Command } from 'commander';
import { AdminWatch, type Notification } from '../client/index.ts';
import { parseCount } from './arguments.ts';
import type { CliEnvironment } from './environment.ts';
import { endpointsOf, endpointsOption } from './session.ts';

export function addWatch(program: Command, environment: CliEnvironment): void {
  const command = program.command('watch').description('changes as JSON lines, until interrupted');
  command
    .addOption(endpointsOption())
    .option('--from-revision <n>', 'everything after this revision (from now)', parseCount)
    .action(async () => {
      const { endpoints, fromRevision } = command.opts<{ endpoints?: string; fromRevision?: number }>();
      const watch = new AdminWatch({
        net: environment.net,
        clock: environment.clock,
        endpoints: endpointsOf(endpoints, environment),
        ...(fromRevision !== undefined && { fromRevision }),
        onNotification(notification) {
          for (const line of lines(notification)) environment.out(`${JSON.stringify(line)}\n`);
        },
      });
      const release = environment.onInterrupt(() => watch.stop());
      try {
        await watch.run();
      } finally {
        release();
      }
    });
}

/** A line a change, its revision first; rows of a snapshot say so. */
function lines({ method, params }: Notification): object[] {
  const { revision } = params;
  switch (method) {
    case 'watch.changes':
      return rowsOf(params['changes']).map((change) => ({ revision, ...change }));
    case 'watch.snapshot':
      return rowsOf(params['rows']).map((row) => ({ revision, snapshot: true, ...row }));
    case 'watch.resync':
      return [{ kind: 'resync' }];
    default:
      return [];
  }
}

function rowsOf(value: unknown): object[] {
  return Array.isArray(value) ? value : [];
}
