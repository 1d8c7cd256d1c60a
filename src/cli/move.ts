import { Option, type Command } from 'commander';
import type { MoveRole } from '../../placement/index.ts';
import type { MoveItem } from '../wire/index.ts';
import { parseCount } from './arguments.ts';
import type { CliEnvironment } from './environment.ts';
import { table, type Column } from './output.ts';
import { clusterCommand } from './session.ts';

const COLUMNS: readonly Column<MoveItem>[] = [
  { name: 'SHARD', cell: ({ shard }) => shard },
  { name: 'ROLE', cell: ({ role }) => role },
  { name: 'FROM', cell: ({ from }) => from },
  { name: 'TO', cell: ({ to }) => to },
  { name: 'STEP', cell: ({ step }) => step },
  { name: 'REASON', cell: ({ reason }) => reason },
  { name: 'COPIES', cell: ({ copied }) => copied },
  { name: 'DROPS', wide: true, cell: ({ drops }) => drops },
  { name: 'GENERATION', wide: true, cell: ({ generation }) => generation },
];

interface StartOptions extends Record<string, unknown> {
  readonly role?: MoveRole;
  readonly from?: string;
  readonly to: string;
  readonly dryRun?: boolean;
  readonly expectedGeneration?: number;
}

interface Started {
  readonly shard: string;
  readonly role: MoveRole;
  readonly from: string | null;
  readonly to: string;
  readonly copies?: boolean;
  readonly drops?: string | null;
  readonly zonesBefore?: number;
  readonly zonesAfter?: number;
}

export function addMove(program: Command, environment: CliEnvironment): void {
  const noun = program.command('move').description('moves of shards');
  clusterCommand(
    noun.command('list').description('moves in flight'),
    environment,
    async ({ client, show }) => {
      const { revision, items } = await client.read<{ items: MoveItem[] }>('move.list');
      show({ data: { revision, items }, text: (wide) => table(COLUMNS, items, wide) });
    },
  );
  clusterCommand(
    noun
      .command('start <shard>')
      .description('hand its leadership, or one copy, to another broker')
      .addOption(new Option('--role <role>', 'what moves').choices(['leader', 'follower']).default('leader'))
      .option('--from <broker>', 'the copy that moves (needed for a follower)')
      .requiredOption('--to <broker>', 'where it goes')
      .option('--dry-run', 'say what it would do, write nothing')
      .option('--expected-generation <n>', 'refuse unless the shard is still at this generation', parseCount),
    environment,
    async ({ client, show }, options: StartOptions, [shard = '']) => {
      const { role, from, to, dryRun, expectedGeneration } = options;
      const params = { shard, role, from, to, dryRun, expectedGeneration };
      const answer =
        dryRun === true
          ? await client.read<Started>('move.start', params)
          : await client.write<Started>('move.start', params);
      show({ data: answer, text: () => startedText(answer, dryRun === true) });
    },
  );
  clusterCommand(
    noun
      .command('cancel <shard>')
      .description('call its move off')
      .option('--expected-generation <n>', 'refuse unless the shard is still at this generation', parseCount),
    environment,
    async ({ client, done }, { expectedGeneration }: { expectedGeneration?: number }, [shard = '']) => {
      const answer = await client.write('move.cancel', { shard, expectedGeneration });
      const { detail } = answer;
      done(`cancelled the move of ${shard}${typeof detail === 'string' ? `: ${detail}` : ''}`, answer);
    },
  );
}

function startedText(started: Started, dryRun: boolean): string {
  const { shard, role, from, to, copies, drops, zonesBefore, zonesAfter } = started;
  const facts = [
    copies === undefined ? null : copies ? 'the data is copied' : 'nothing is copied',
    drops === undefined || drops === null ? null : `${drops} drops its copy`,
    zonesBefore === undefined || zonesAfter === undefined ? null : `zones ${zonesBefore} -> ${zonesAfter}`,
  ].filter((fact) => fact !== null);
  const verb = dryRun ? 'would move' : 'moving';
  const detail = facts.length === 0 ? '' : `: ${facts.join(', ')}`;
  return `${verb} the ${role} of ${shard} from ${from ?? '-'} to ${to}${detail}`;
}
