import { CLOSE } from '../broker-protocol.ts';
import { EvenkeelError } from '../errors.ts';
import type { Connection } from '../net.ts';
import { parseStrictJson } from '../strict-json.ts';
import { MAX_RECORDS_PER_APPEND, type LedShard } from './led-shard.ts';

/** For clients, at `/data` of the address named `data`: JSON in text frames, the request and answer shape of `/broker`. */
export const DATA_PATH = '/data';
export const DATA_SUBPROTOCOL = 'evenkeel.data.v1+json';
/** The name under which a broker's address for this is registered. */
export const DATA_ADDRESS = 'data';
export const MAX_DATA_FRAME_BYTES = 1024 * 1024;
export const MAX_RECORDS_PER_READ = 1_000;

export interface DataHost {
  /** The shard if this broker may serve it as leader right now; throws `unavailable` (retriable) else. */
  serve(shard: string): LedShard;
}

type Fields = Readonly<Record<string, unknown>>;

/**
 * Serves one client: `append {shard, records: [text]}` answers `{offset, epoch}` once every in-sync copy has them;
 * `read {shard, from, limit?}` answers `{records: [{offset, epoch, value}], end}` with what is acknowledged.
 */
export function serveData(host: DataHost, connection: Connection): void {
  connection.onMessage = (frame) => {
    let message: Fields;
    try {
      message = parseStrictJson(String(frame), 'the request') as Fields;
      if (typeof message !== 'object' || message === null || !Number.isSafeInteger(message['id']))
        throw new Error();
    } catch {
      connection.close(CLOSE.protocol, 'a request is a JSON object with an integer id');
      return;
    }
    const { id, type } = message;
    answer(host, message)
      .then((fields) => connection.send(JSON.stringify({ id, type: `${String(type)}.ok`, ...fields })))
      .catch((error: unknown) => {
        const known = error instanceof EvenkeelError ? error : new EvenkeelError('internal', String(error));
        const { code, message: text, retriable, data } = known;
        connection.send(
          JSON.stringify({ id, type: 'error', error: { code, message: text, retriable, data } }),
        );
      });
  };
}

async function answer(host: DataHost, message: Fields): Promise<object> {
  switch (message['type']) {
    case 'append':
      return append(host, message);
    case 'read':
      return read(host, message);
    default:
      throw new EvenkeelError('unknown_method', 'append and read are served here');
  }
}

async function append(host: DataHost, { shard, records }: Fields): Promise<object> {
  if (typeof shard !== 'string') throw new EvenkeelError('invalid_argument', 'shard must be a string');
  if (!Array.isArray(records) || records.length === 0 || !records.every((one) => typeof one === 'string')) {
    throw new EvenkeelError('invalid_argument', `records must be 1 to ${MAX_RECORDS_PER_APPEND} strings`);
  }
  const led = host.serve(shard);
  let offset: number;
  try {
    offset = await led.append(records.map((text: string) => Buffer.from(text, 'utf8')));
  } catch (error) {
    // A write that failed may be on the disk all the same, and be found by the next leader.
    const refused = error instanceof EvenkeelError && error.code !== 'disk_failed';
    if (refused) throw error;
    throw new EvenkeelError(
      'outcome_unknown',
      `the disk of the broker that leads ${shard} failed; ask its next leader`,
    );
  }
  // The copies have the records, but once the lease is over another leader may already have cut them off.
  if (!stillServes(host, shard, led)) {
    throw new EvenkeelError(
      'outcome_unknown',
      `the lease of ${shard} ended before the answer; resolve its leader and look whether it has the records`,
    );
  }
  return { offset, epoch: led.epoch };
}

async function read(host: DataHost, { shard, from, limit }: Fields): Promise<object> {
  if (typeof shard !== 'string') throw new EvenkeelError('invalid_argument', 'shard must be a string');
  const start = from ?? 0;
  const most = limit ?? MAX_RECORDS_PER_READ;
  if (!isCount(start) || !isCount(most)) {
    throw new EvenkeelError('invalid_argument', 'from and limit must be integers from 0');
  }
  const led = host.serve(shard);
  const end = led.readableEnd;
  const count = Math.min(most, MAX_RECORDS_PER_READ, Math.max(0, end - start));
  const records = await led.log.read(start, count);
  // Meanwhile the lease may have ended, or another leader's log replaced what was read.
  if (host.serve(shard) !== led) {
    throw new EvenkeelError('unavailable', `the leader of ${shard} changed during the read; retry`);
  }
  return {
    records: records.map(({ epoch, payload }, i) => ({
      offset: start + i,
      epoch,
      value: Buffer.from(payload).toString('utf8'),
    })),
    end,
  };
}

/** Whether the shard is served at the same epoch as before something was waited for. */
function stillServes(host: DataHost, shard: string, led: LedShard): boolean {
  try {
    return host.serve(shard) === led;
  } catch {
    return false;
  }
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}
