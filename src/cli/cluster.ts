import type { Command } from 'commander';
import type { HealthCheck, MemberRow, PlacementStatus } from '../wire/index.ts';
import type { CliEnvironment } from './environment.ts';
import { table, type Column } from './output.ts';
import { CliExit } from './run.ts';
import { clusterCommand } from './session.ts';

const UNHEALTHY = 10;

interface ClusterStatus {
  readonly clusterId: string;
  readonly members: readonly MemberRow[];
  readonly placement: PlacementStatus;
  readonly state: { readonly bytes: number; readonly maxBytes: number };
}

const MEMBER_COLUMNS: readonly Column<MemberRow>[] = [
  { name: 'ID', cell: ({ id }) => id },
  { name: 'ADDRESS', cell: ({ address }) => address },
  { name: 'ROLE', cell: ({ role }) => role },
  { name: 'VOTER', cell: ({ voter }) => voter },
  { name: 'READY', cell: ({ ready }) => ready },
  { name: 'TERM', cell: ({ term }) => term },
  { name: 'COMMIT', cell: ({ commitIndex }) => commitIndex },
  { name: 'APPLIED', cell: ({ appliedIndex }) => appliedIndex },
  { name: 'HASH', wide: true, cell: ({ stateHash }) => stateHash },
  { name: 'HASH AT', wide: true, cell: ({ hashAt }) => hashAt && `${hashAt.index}:${hashAt.hash}` },
];

export function addCluster(program: Command, environment: CliEnvironment): void {
  const cluster = program.command('cluster').description('the quorum and placement as a whole');
  clusterCommand(
    cluster.command('status').description('every member, and where placement stands'),
    environment,
    async ({ client, show }) => {
      // A status that needed a quorum could not say that there is none.
      const status = await client.read<ClusterStatus>('cluster.status', { consistency: 'local' });
      show({ data: status, text: (wide) => statusText(status, wide) });
    },
  );
  clusterCommand(
    cluster.command('health').description('what needs a person; exit 10 when anything does'),
    environment,
    async ({ client, show }) => {
      const health = await client.read<{ healthy: boolean; checks: HealthCheck[] }>('cluster.health', {
        consistency: 'local',
      });
      show({
        data: health,
        text: () =>
          [
            ...health.checks.map(({ name, ok, detail }) => `[${ok ? '+' : '-'}] ${name}: ${detail}`),
            health.healthy ? 'healthy' : 'unhealthy',
          ].join('\n'),
      });
      if (!health.healthy) throw new CliExit(UNHEALTHY);
    },
  );
}

function statusText(
  status: ClusterStatus & { revision: number; term: number; leaderId: string | null },
  wide: boolean,
): string {
  const { clusterId, revision, term, leaderId, members, placement, state } = status;
  return [
    `cluster ${clusterId}  revision ${revision}  term ${term}  leader ${leaderId ?? 'none'}`,
    placementText(placement),
    `state ${Math.ceil((100 * state.bytes) / state.maxBytes)} % full`,
    '',
    table(MEMBER_COLUMNS, members, wide),
  ].join('\n');
}

function placementText({ paused, level, leaderMovesLeft, movesInFlight }: PlacementStatus): string {
  const levelText = level === null ? 'level unknown' : level ? 'level' : 'not level';
  const left = leaderMovesLeft === null ? 'unknown' : String(leaderMovesLeft);
  const pausedText = paused ? '  paused' : '';
  return `placement ${levelText}${pausedText}  leader moves left ${left}  in flight ${movesInFlight}`;
}
