import type { Command } from 'commander';
import {
  DEFAULT_POLICY,
  PAUSED,
  type Levels,
  type Plan,
  type Policy,
  type Step,
  type WaitingRow,
} from '../../placement/index.ts';
import { quote } from '../command/index.ts';
import { EvenkeelError } from '../errors.ts';
import type { ReplicationRow } from '../wire/index.ts';
import { parseCount } from './arguments.ts';
import type { CliEnvironment } from './environment.ts';
import { countsText, resourceText, table, type Column } from './output.ts';
import { clusterCommand } from './session.ts';

export function addPlacement(program: Command, environment: CliEnvironment): void {
  const noun = program.command('placement').description('how level the cluster is, and the policy');
  clusterCommand(
    noun.command('levels').description('leaders per broker, of each resource and in total'),
    environment,
    async ({ client, show }) => {
      const levels = await client.read<Levels>('placement.levels');
      show({ data: levels, text: () => levelsText(levels) });
    },
  );
  addReplication(noun, environment);
  clusterCommand(
    noun.command('plan').description('what the next pass would write, and why'),
    environment,
    async ({ client, show }) => {
      const plan = await client.read<Plan & { paused: boolean }>('placement.plan');
      show({ data: plan, text: (wide) => planText(plan, { wide, paused: plan.paused }) });
    },
  );
  clusterCommand(
    noun.command('pause').description('start no drain, rebalance or restore'),
    environment,
    async ({ client, done }) => done('paused', await client.write('placement.pause')),
  );
  clusterCommand(noun.command('resume').description('end a pause'), environment, async ({ client, done }) =>
    done('resumed', await client.write('placement.resume')),
  );
  addPolicy(noun, environment);
}

/** `perf-quorum:b1=4,b2=4,b3=4`. */
export function levelLine(key: string, counts: Readonly<Record<string, number>>): string {
  return `${resourceText(key)}:${countsText(counts)}`;
}

/** The lines, the same as a table, and the totals. */
export function levelsText(levels: Levels): string {
  const lines = Object.entries(levels.leaders).map(([key, counts]) => levelLine(key, counts));
  return [...lines, '', levelsTable(levels)].join('\n');
}

/** Leaders per broker of each resource and in total, copies, and the spreads. */
export function levelsTable(levels: Levels): string {
  const { leaders, leadersTotal, copiesTotal } = levels;
  const brokers = Object.keys(leadersTotal);
  type Row = readonly [string, Readonly<Record<string, number>>];
  const rows: Row[] = [
    ...Object.entries(leaders).map(([key, counts]): Row => [resourceText(key), counts]),
    ['total', leadersTotal],
    ['copies', copiesTotal],
  ];
  const columns: Column<Row>[] = [
    { name: 'LEADERS', cell: ([name]) => name },
    ...brokers.map((id) => ({ name: id, cell: ([, counts]: Row) => counts[id] ?? 0 })),
  ];
  return [
    table(columns, rows),
    '',
    `leader spread: ${levels.maxLeaderSpreadPerResource} at most per resource, ${levels.leaderSpreadTotal} in total`,
    `copy spread: ${levels.maxCopySpreadPerResource} at most per resource, ${levels.copySpreadTotal} in total`,
  ].join('\n');
}

type Replication = ReplicationRow & { readonly leaders: Readonly<Record<string, number>> };

const REPLICATION_COLUMNS: readonly Column<Replication>[] = [
  { name: 'RESOURCE', cell: ({ resource }) => resourceText(resource) },
  { name: 'WANTED', cell: ({ copiesWanted }) => copiesWanted },
  { name: 'HELD', cell: ({ copiesHeld }) => copiesHeld },
  { name: 'IN SYNC', cell: ({ copiesInSync }) => copiesInSync },
  { name: 'LEADERLESS', cell: ({ leaderless }) => leaderless },
  { name: 'SHORT', cell: ({ short }) => short },
  { name: 'LEADERS', cell: ({ resource, leaders }) => levelLine(resource, leaders) },
];

function addReplication(noun: Command, environment: CliEnvironment): void {
  clusterCommand(
    noun.command('replication').description('copies wanted, held and in sync, and leaderless shards'),
    environment,
    async ({ client, show }) => {
      const { revision, items } = await client.read<{ items: Replication[] }>('placement.replication');
      show({ data: { revision, items }, text: (wide) => table(REPLICATION_COLUMNS, items, wide) });
    },
  );
}

const STEP_COLUMNS: readonly Column<Step>[] = [
  { name: 'STEP', cell: ({ step }) => step },
  { name: 'SHARD', cell: ({ shard }) => shard },
  { name: 'ROLE', cell: ({ role }) => role },
  { name: 'FROM', cell: ({ from }) => from },
  { name: 'TO', cell: ({ to }) => to },
  { name: 'REASON', cell: ({ reason }) => reason },
  { name: 'RULE', cell: ({ why }) => why.rule },
  { name: 'RUNNER-UP', wide: true, cell: ({ why }) => why.runnerUp },
  { name: 'DETAIL', wide: true, cell: ({ why }) => why.detail },
];

/** One line a row. */
export function listed(name: string, rows: readonly WaitingRow[]): string[] {
  return rows.map(({ shard, reason, detail }) => `${name}: ${shard}: ${reason}: ${detail}`);
}

/** A plan for people: its steps, what waits and why. */
export function planText(plan: Plan, { wide, paused }: { wide: boolean; paused: boolean }): string {
  const { steps, waiting, unplaceable, unspread, conflicts, minimumLeaderMoves } = plan;
  return [
    ...(paused ? [PAUSED] : []),
    steps.length === 0 ? 'the next pass writes nothing' : table(STEP_COLUMNS, steps, wide),
    ...listed('waiting', waiting),
    ...listed('unplaceable', unplaceable),
    ...listed('unspread', unspread),
    ...conflicts.map(({ zone, detail }) => `conflict: zone ${zone}: ${detail}`),
    `minimum leader moves: ${minimumLeaderMoves ?? 'unknown'}`,
  ].join('\n');
}

function addPolicy(noun: Command, environment: CliEnvironment): void {
  const command = noun.command('policy [key=value...]');
  clusterCommand(
    command
      .description('show the policy, or change the keys given')
      .option('--expected-revision <n>', 'refuse unless the policy is still at this revision', parseCount),
    environment,
    async ({ client, show, done }, { expectedRevision }: { expectedRevision?: number }, settings) => {
      if (settings.length > 0) {
        const patch = Object.fromEntries(settings.map(parseSetting));
        const answer = await client.write('placement.policy.set', { ...patch, expectedRevision });
        done(`set ${settings.join(' ')}`, answer);
        return;
      }
      if (expectedRevision !== undefined) {
        command.error('error: --expected-revision is for a change: give a key=value');
      }
      const answer = await client.read<{ policy: Policy; policyRevision: number }>('placement.policy.get');
      const columns: Column<[string, unknown]>[] = [
        { name: 'KEY', cell: ([key]) => key },
        { name: 'VALUE', cell: ([, value]) => String(value) },
      ];
      show({ data: answer, text: () => table(columns, Object.entries(answer.policy)) });
    },
  );
}

/** `restoreAfterMs=1000`. Which values a key takes is for the node to say. */
function parseSetting(text: string): [string, unknown] {
  const [, key = '', value = ''] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
  if (!Object.hasOwn(DEFAULT_POLICY, key)) {
    const keys = Object.keys(DEFAULT_POLICY).join(', ');
    throw new EvenkeelError(
      'invalid_argument',
      `${quote(text)} is no key=value with one of the keys ${keys}`,
    );
  }
  if (/^\d+$/.test(value)) return [key, Number(value)];
  if (value === 'null' || value === 'true' || value === 'false') return [key, JSON.parse(value)];
  return [key, value];
}
