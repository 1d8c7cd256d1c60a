import { Option, type Command } from 'commander';
import { PAUSED, type Plan } from '../../placement/index.ts';
import { EvenkeelError, type ErrorCode } from '../errors.ts';
import type { BrokerItem } from '../wire/index.ts';
import { parseDuration } from './arguments.ts';
import type { CliEnvironment } from './environment.ts';
import { table, type Column } from './output.ts';
import { clusterCommand, type Session } from './session.ts';
import { listShards } from './shard.ts';

const POLL_MS = 500;
/** What `broker.remove` says of a broker that came back, that a move names now, or that somebody else removed. */
const KEPT: ReadonlySet<ErrorCode> = new Set<ErrorCode>(['stale_incarnation', 'refused', 'not_found']);
/** Polls without progress after which a drain's wait says what blocks it. */
const POLLS_BEFORE_REASONS = 4;

const COLUMNS: readonly Column<BrokerItem>[] = [
  { name: 'ID', cell: ({ id }) => id },
  { name: 'ZONE', cell: ({ zone }) => zone },
  { name: 'LIFECYCLE', cell: ({ lifecycle }) => lifecycle },
  { name: 'DRAIN', cell: ({ drain }) => drain },
  { name: 'LEADERS', cell: ({ leaders }) => leaders },
  { name: 'COPIES', cell: ({ copies }) => copies },
  { name: 'MAX', cell: ({ maxShards }) => maxShards },
  { name: 'WEIGHT', cell: ({ weight }) => weight },
  { name: 'INCARNATION', wide: true, cell: ({ incarnation }) => incarnation },
  { name: 'ADDRESSES', wide: true, cell: ({ addresses }) => pairs(addresses) },
  { name: 'LABELS', wide: true, cell: ({ labels }) => pairs(labels) },
];

function pairs(map: Readonly<Record<string, string>>): string {
  return Object.entries(map)
    .map(([key, value]) => `${key}=${value}`)
    .join(',');
}

/** Answers the noun, for what else there is to do with brokers. */
export function addBroker(program: Command, environment: CliEnvironment): Command {
  const noun = program.command('broker').description('brokers');
  clusterCommand(
    noun.command('list').description('every broker, with what it leads and holds'),
    environment,
    async ({ client, show }) => {
      const { revision, items } = await client.read<{ items: BrokerItem[] }>('broker.list');
      show({ data: { revision, items }, text: (wide) => table(COLUMNS, items, wide) });
    },
  );
  clusterCommand(
    noun.command('show <id>').description('one broker'),
    environment,
    async ({ client, show }, _options, [id = '']) => {
      const answer = await client.read<{ broker: BrokerItem }>('broker.show', { id });
      show({ data: answer, text: () => table(COLUMNS, [answer.broker], true) });
    },
  );
  addDrain(noun, environment);
  clusterCommand(
    noun.command('undrain <id>').description('let it take shards again'),
    environment,
    async ({ client, done }, _options, [id = '']) => {
      done(`${id} takes shards again`, await client.write('broker.undrain', { id }));
    },
  );
  addRemove(noun, environment);
  return noun;
}

interface WaitOptions extends Record<string, unknown> {
  readonly wait?: boolean;
  readonly waitTimeout?: number;
}

function waitTimeoutOption(): Option {
  return new Option('--wait-timeout <duration>', '--wait, and the longest to wait (no limit)')
    .argParser(parseDuration)
    .implies({ wait: true });
}

interface RemoveOptions extends WaitOptions {
  readonly down?: boolean;
}

function addRemove(noun: Command, environment: CliEnvironment): void {
  const command = noun
    .command('remove [id]')
    .description('forget it; refused while an assignment names it')
    .option('--wait', 'until nothing names it, with progress on stderr, and then')
    .addOption(waitTimeoutOption())
    .addOption(
      new Option('--down', 'instead of one: all that are down or have left and that nothing names').conflicts(
        ['wait', 'waitTimeout'],
      ),
    );
  clusterCommand(command, environment, async (session, options: RemoveOptions, [id]) => {
    if ((id === undefined) !== (options.down === true)) {
      command.error('error: name a broker, or give --down for all that are gone');
    }
    if (id === undefined) {
      await removeGone(session);
      return;
    }
    const { client, done } = session;
    if (options.wait === true) {
      const goesOn = 'it was not removed';
      await waitUntilEmpty(session, id, { timeoutMs: options.waitTimeout ?? Infinity, goesOn });
    }
    done(`removed ${id}`, await client.write('broker.remove', { id }));
  });
}

/** One that comes back meanwhile stays. */
async function removeGone({ client, done, environment }: Session): Promise<void> {
  const { items } = await client.read<{ items: BrokerItem[] }>('broker.list');
  const gone = items.filter(({ lifecycle }) => lifecycle === 'down' || lifecycle === 'left');
  const removed: string[] = [];
  for (const { id, incarnation, copies } of gone) {
    if (copies > 0) {
      environment.note(`kept ${id}: it still holds ${counted(copies, 'copy', 'copies')}\n`);
      continue;
    }
    try {
      await client.write('broker.remove', { id, goneIncarnation: incarnation });
      removed.push(id);
    } catch (error) {
      const isKept = error instanceof EvenkeelError && KEPT.has(error.code);
      if (!isKept) throw error;
      environment.note(`kept ${id}: ${error.message}\n`);
    }
  }
  done(`removed ${removed.length === 0 ? 'no broker' : removed.join(', ')}`, { removed });
}

function addDrain(noun: Command, environment: CliEnvironment): void {
  clusterCommand(
    noun
      .command('drain <id>')
      .description('give it nothing more and move everything off it')
      .option('--wait', 'until it holds nothing, with progress on stderr')
      .addOption(waitTimeoutOption()),
    environment,
    async (session, options: WaitOptions, [id = '']) => {
      const answer = await session.client.write('broker.drain', { id });
      session.done(`draining ${id}`, answer);
      if (options.wait !== true) return;
      const goesOn = 'it goes on draining';
      await waitUntilEmpty(session, id, { timeoutMs: options.waitTimeout ?? Infinity, goesOn });
    },
  );
}

function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}

/** `goesOn`: what remains when the wait ends before it is empty. */
async function waitUntilEmpty(
  session: Session,
  id: string,
  { timeoutMs, goesOn }: { readonly timeoutMs: number; readonly goesOn: string },
): Promise<void> {
  const { client, environment } = session;
  const expiresAt = environment.clock.now() + timeoutMs;
  let interrupted = false;
  const release = environment.onInterrupt(() => (interrupted = true));
  let last = '';
  let stuck = 0;
  try {
    for (;;) {
      const { broker } = await client.read<{ broker: BrokerItem }>('broker.show', { id });
      const progress = `${id}: ${counted(broker.leaders, 'leader')}, ${counted(broker.copies, 'copy', 'copies')} left`;
      stuck = progress === last ? stuck + 1 : 0;
      if (progress !== last) environment.note(`${progress}\n`);
      last = progress;
      if (broker.copies === 0) return;
      if (stuck === POLLS_BEFORE_REASONS) await noteReasons(session, id);
      if (interrupted) throw new EvenkeelError('refused', `no longer waiting for ${id}; ${goesOn}`);
      if (environment.clock.now() >= expiresAt) {
        const message = `${progress} after ${timeoutMs} ms; ${goesOn}`;
        throw new EvenkeelError('deadline_exceeded', message);
      }
      await new Promise<void>((resolve) => void environment.clock.setTimeout(resolve, POLL_MS));
    }
  } finally {
    release();
  }
}

/** What the planner says of the broker's shards that it cannot move. */
async function noteReasons({ client, environment }: Session, id: string): Promise<void> {
  const { waiting, paused } = await client.read<Plan & { paused: boolean }>('placement.plan');
  if (paused) environment.note(`  ${PAUSED}\n`);
  const held = new Set((await listShards(client, { broker: id })).items.map(({ shard }) => shard));
  const reasons = new Map<string, number>();
  let copiesWithoutRoom = 0;
  for (const { shard, reason, detail } of waiting) {
    if (!held.has(shard)) continue;
    if (reason === 'no_room') copiesWithoutRoom += 1;
    const line = `${reason}: ${detail}`;
    reasons.set(line, (reasons.get(line) ?? 0) + 1);
  }
  for (const [line, count] of reasons) environment.note(`  ${count} waiting, ${line}\n`);
  if (copiesWithoutRoom > 0)
    environment.note(`  in all, room for ${copiesWithoutRoom} more copies is missing\n`);
}
