import type { Command } from 'commander';
import type { Assignment } from '../../placement/index.ts';
import { DATA_ADDRESS, DATA_PATH, DATA_SUBPROTOCOL, MAX_DATA_FRAME_BYTES } from '../broker/index.ts';
import { ERRORS, EvenkeelError, type ErrorCode } from '../errors.ts';
import type { BrokerItem } from '../wire/index.ts';
import { parseCount } from './arguments.ts';
import type { CliEnvironment } from './environment.ts';
import { table, type Column } from './output.ts';
import { clusterCommand, type Session } from './session.ts';

const CONNECT_TIMEOUT_MS = 2_000;
const ANSWER_TIMEOUT_MS = 10_000;
const CLOSE_NORMAL = 1000;

interface StoredRecord {
  readonly offset: number;
  readonly epoch: number;
  readonly value: string;
}

const COLUMNS: readonly Column<StoredRecord>[] = [
  { name: 'OFFSET', cell: ({ offset }) => offset },
  { name: 'EPOCH', cell: ({ epoch }) => epoch },
  { name: 'VALUE', cell: ({ value }) => value },
];

/** `broker append` and `broker read`: talk to the reference broker that leads a shard. */
export function addBrokerData(noun: Command, environment: CliEnvironment): void {
  clusterCommand(
    noun
      .command('append <shard> <value...>')
      .description('append records through the broker that leads the shard'),
    environment,
    async (session, _options, [shard = '', ...records]) => {
      const answer = await askLeader(session, shard, { type: 'append', records });
      session.show({ data: answer, text: () => `offset ${String(answer['offset'])}` });
    },
  );
  clusterCommand(
    noun
      .command('read <shard>')
      .description('read acknowledged records from the broker that leads the shard')
      .option('--from <offset>', 'the first (0)', parseCount)
      .option('--limit <n>', 'at most so many', parseCount),
    environment,
    async (session, { from, limit }: { from?: number; limit?: number }, [shard = '']) => {
      const answer = await askLeader(session, shard, { type: 'read', from, limit });
      const records = answer['records'] as readonly StoredRecord[];
      session.show({ data: answer, text: (wide) => table(COLUMNS, records, wide) });
    },
  );
}

type Answer = Readonly<Record<string, unknown>>;

async function askLeader(session: Session, shard: string, request: object): Promise<Answer> {
  const { client } = session;
  const { assignment } = await client.read<{ assignment: Assignment }>('shard.show', { shard });
  const { broker } = await client.read<{ broker: BrokerItem }>('broker.show', { id: assignment.leader });
  const address = broker.addresses[DATA_ADDRESS];
  if (address === undefined) {
    const message = `broker ${broker.id} has no address "${DATA_ADDRESS}": it is no reference broker`;
    throw new EvenkeelError('refused', message);
  }
  return askBroker(session.environment, address, { ...request, shard: assignment.shard });
}

async function askBroker(environment: CliEnvironment, address: string, request: object): Promise<Answer> {
  const options = {
    path: DATA_PATH,
    subprotocol: DATA_SUBPROTOCOL,
    maxPayloadBytes: MAX_DATA_FRAME_BYTES,
    timeoutMs: CONNECT_TIMEOUT_MS,
  };
  const connection = await environment.net.connect(address, options).catch((error: unknown) => {
    throw new EvenkeelError('unreachable', `cannot reach the broker at ${address}: ${String(error)}`);
  });
  try {
    return await new Promise<Answer>((resolve, reject) => {
      const { clock } = environment;
      const late = new EvenkeelError('deadline_exceeded', `no answer from ${address}`, {
        outcome: 'unknown',
      });
      const timer = clock.setTimeout(() => reject(late), ANSWER_TIMEOUT_MS);
      connection.onClose = (code) => {
        clock.clearTimeout(timer);
        reject(new EvenkeelError('unreachable', `the broker at ${address} closed the connection (${code})`));
      };
      connection.onMessage = (frame) => {
        clock.clearTimeout(timer);
        const answer = JSON.parse(String(frame)) as Answer;
        if (answer['type'] === 'error') reject(brokerError(answer['error'] as Answer));
        else resolve(answer);
      };
      connection.send(JSON.stringify({ id: 1, ...request }));
    });
  } finally {
    connection.close(CLOSE_NORMAL, '');
  }
}

function brokerError({ code, message }: Answer): EvenkeelError {
  const known = typeof code === 'string' && Object.hasOwn(ERRORS, code) ? (code as ErrorCode) : 'internal';
  return new EvenkeelError(known, String(message));
}
