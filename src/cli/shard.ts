import { Option, type Command } from 'commander';
import type { Assignment, ResourceKind, Step, WaitingRow } from '../../placement/index.ts';
import type { AdminClient } from '../client/index.ts';
import type { AssignmentRow } from '../state/index.ts';
import { parseCount, resourceArgument } from './arguments.ts';
import type { CliEnvironment } from './environment.ts';
import { table, type Column } from './output.ts';
import { clusterCommand } from './session.ts';

const COLUMNS: readonly Column<Assignment>[] = [
  { name: 'SHARD', cell: ({ shard }) => shard },
  { name: 'LEADER', cell: ({ leader }) => leader },
  { name: 'REPLICAS', cell: ({ replicas }) => replicas.join(',') },
  { name: 'IN SYNC', cell: ({ inSync }) => inSync.join(',') },
  { name: 'STATE', cell: ({ state }) => state },
  { name: 'MOVE', cell: ({ move }) => move && `${move.role} to ${move.to} (${move.step})` },
  { name: 'GENERATION', wide: true, cell: ({ generation }) => generation },
  { name: 'EPOCH', wide: true, cell: ({ epoch }) => epoch },
  { name: 'FAILED MOVES', wide: true, cell: ({ failedMoves }) => failedMoves },
];

interface ListOptions extends Record<string, unknown> {
  readonly kind?: ResourceKind;
  readonly resource?: string;
  readonly leader?: string;
  readonly broker?: string;
}

export function addShard(program: Command, environment: CliEnvironment): void {
  const noun = program.command('shard').description('where shards are, and why');
  clusterCommand(
    noun
      .command('list')
      .description('assignments, by resource and number')
      .addOption(new Option('--kind <kind>', 'of the resource').choices(['stream', 'cache']))
      .option('--resource <name>', 'of this resource: orders, cache:kv')
      .option('--leader <broker>', 'led by this broker')
      .option('--broker <broker>', 'with a copy on this broker'),
    environment,
    async ({ client, show }, options: ListOptions) => {
      const list = await listShards(client, filterOf(options));
      show({ data: list, text: (wide) => table(COLUMNS, list.items, wide) });
    },
  );
  clusterCommand(
    noun.command('show <shard>').description('one assignment and the decision that last wrote it'),
    environment,
    async ({ client, show }, _options, [shard = '']) => {
      const answer = await client.read<Shown>('shard.show', { shard });
      show({ data: answer, text: () => shownText(answer) });
    },
  );
  clusterCommand(
    noun.command('explain <shard>').description('why it is where it is, and what the next pass would do'),
    environment,
    async ({ client, show }, _options, [shard = '']) => {
      const answer = await client.read<Explained>('shard.explain', { shard });
      show({ data: answer, text: () => explainedText(answer) });
    },
  );
  clusterCommand(
    noun
      .command('abandon <shard>')
      .description('give its log up, for good, when no in-sync copy will come back')
      .option('--expected-generation <n>', 'refuse unless it is still at this generation', parseCount),
    environment,
    async ({ client, done }, { expectedGeneration }: { expectedGeneration?: number }, [shard = '']) => {
      const answer = await client.write('shard.abandon', { shard, expectedGeneration });
      done(`abandoned the log of ${shard}`, answer);
    },
  );
}

function filterOf({ kind, resource, leader, broker }: ListOptions): Record<string, unknown> {
  if (resource === undefined) return { kind, leader, broker };
  // A bare name is a resource's of either kind; `cache:kv` says which.
  const named = resourceArgument(resource, kind);
  return { kind: resource.includes(':') ? named.kind : kind, resource: named.name, leader, broker };
}

interface ShardList {
  readonly revision: number;
  readonly items: Assignment[];
}

/** Every page. The revision is the first page's: what follows is at least as new. */
export async function listShards(client: AdminClient, filter: Record<string, unknown>): Promise<ShardList> {
  type Page = { items: Assignment[]; next: string | null };
  const first = await client.read<Page>('shard.list', filter);
  const items = [...first.items];
  for (let { next } = first; next !== null;) {
    const page: Page = await client.read<Page>('shard.list', { ...filter, after: next });
    items.push(...page.items);
    next = page.next;
  }
  return { revision: first.revision, items };
}

interface Shown {
  readonly assignment: Assignment;
  readonly decision: AssignmentRow['decision'];
}

function shownText({ assignment, decision }: Shown): string {
  const why =
    decision === null
      ? 'imported: no decision of this cluster placed it'
      : `${decision.step} (${decision.reason}, ${decision.rule}) at revision ${decision.revision}: ${decision.detail}`;
  return `${table(COLUMNS, [assignment], true)}\n\n${why}`;
}

interface Explained {
  readonly shard: string;
  readonly assignment: Assignment | null;
  readonly decision: AssignmentRow['decision'];
  /** The numbers behind the current place, for people. */
  readonly place: readonly string[];
  /** As its leader last reported them; `null`: not since this Raft leader began. */
  readonly offsets: {
    readonly leaderOffset: number;
    readonly followers: Readonly<Record<string, number>>;
  } | null;
  readonly next: readonly Step[];
  readonly waiting: readonly WaitingRow[];
}

/** How far the copies have come that are being made. */
function progressText({ assignment, offsets }: Explained): string[] {
  const behind = (assignment?.replicas ?? []).filter((id) => assignment?.inSync.includes(id) === false);
  if (behind.length === 0) return [];
  if (offsets === null) return ['how far the copy has come was not reported since this leader began'];
  return behind.map((id) => `${id} has ${offsets.followers[id] ?? 0} of ${offsets.leaderOffset} records`);
}

function explainedText(explained: Explained): string {
  const { shard, assignment, decision, place, next, waiting } = explained;
  const now = assignment === null ? `${shard} is not placed` : shownText({ assignment, decision });
  const steps = next.flatMap(({ step, from, to, reason, why }) => [
    `next pass: ${step} ${from ?? '-'} -> ${to ?? '-'} (${reason}, ${why.rule}): ${why.detail}`,
    ...why.rejected.map(({ broker, by }) => `  not ${broker}: ${by}`),
    ...(why.runnerUp === null ? [] : [`  runner-up ${why.runnerUp}`]),
  ]);
  const waits = waiting.map(({ reason, detail }) => `waiting: ${reason}: ${detail}`);
  const rest = [...steps, ...waits];
  return [
    now,
    ...place,
    ...progressText(explained),
    ...(rest.length === 0 ? ['next pass: nothing'] : rest),
  ].join('\n');
}
