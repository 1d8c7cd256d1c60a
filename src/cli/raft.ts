import type { Command } from 'commander';
import type { RaftStatusView } from '../control-plane.ts';
import { EvenkeelError } from '../errors.ts';
import type { CliEnvironment } from './environment.ts';
import { table, type Column } from './output.ts';
import { clusterCommand } from './session.ts';

type Configured = RaftStatusView['members'][number];

const COLUMNS: readonly Column<Configured>[] = [
  { name: 'ID', cell: ({ id }) => id },
  { name: 'ADDRESS', cell: ({ address }) => address },
  { name: 'VOTER', cell: ({ voter }) => voter },
];

export function addRaft(program: Command, environment: CliEnvironment): void {
  const raft = program.command('raft').description('consensus');
  clusterCommand(
    raft.command('status').description('consensus as the node that answers sees it'),
    environment,
    async ({ client, show }) => {
      const status = await client.read<RaftStatusView & { nodeId: string }>('raft.status', {
        consistency: 'local',
      });
      const { nodeId, role, term, leaderId, commitIndex, appliedIndex, lastIndex, ready, members } = status;
      const lines = [
        `node ${nodeId}  role ${role}  term ${term}  leader ${leaderId ?? 'none'}  ready ${ready ? 'yes' : 'no'}`,
        `commit ${commitIndex}  applied ${appliedIndex}  last ${lastIndex}`,
        '',
      ];
      show({ data: status, text: (wide) => [...lines, table(COLUMNS, members, wide)].join('\n') });
    },
  );
  addTransferLeadership(raft, environment);
  clusterCommand(
    raft
      .command('snapshot [member]')
      .description('take a snapshot now and compact the log behind it, on one member'),
    environment,
    async ({ client, done }, _options, [member]) => {
      const answer = await client.write<{ id: string; index: number }>(
        'raft.snapshot',
        member === undefined ? {} : { member },
      );
      done(`${answer.id} has a snapshot of entry ${answer.index}`, answer);
    },
  );
}

function addTransferLeadership(raft: Command, environment: CliEnvironment): void {
  clusterCommand(
    raft
      .command('transfer [member]')
      .description('hand the leadership to another voter, or to the one with the most of the log'),
    environment,
    async ({ client, done }, _options, [member]) => {
      try {
        const params = member === undefined ? {} : { to: member };
        const answer = await client.write<Transferred>('raft.transfer', params);
        done(`${answer.to} leads term ${answer.term} instead of ${answer.from}`, answer);
      } catch (error) {
        if (!isLostAnswer(error, member)) throw error;
        done(`${member} leads`, error.data);
      }
    },
  );
}

interface Transferred {
  readonly from: string;
  readonly to: string;
  readonly term: number;
}

/** The first try's answer was lost with its connection, and the second one finds done what it asks for. */
function isLostAnswer(error: unknown, member: string | undefined): error is EvenkeelError {
  if (!(error instanceof EvenkeelError) || error.code !== 'refused' || member === undefined) return false;
  return error.data['tries'] !== 1 && error.data['leader'] === member;
}

export function addMember(program: Command, environment: CliEnvironment): void {
  const member = program.command('member').description('members of the quorum');
  clusterCommand(
    member.command('list').description('members of the configuration in the log'),
    environment,
    async ({ client, show }) => {
      const { revision, items } = await client.read<{ items: Configured[] }>('member.list');
      show({ data: { revision, items }, text: (wide) => table(COLUMNS, items, wide) });
    },
  );
}
