import type { BrokerIdentity, ShardReportParams } from '../broker-services.ts';
import { MAX_REPORT_SHARDS } from '../command/index.ts';
import { EvenkeelError } from '../errors.ts';

/** One request, every field checked. */
export type BrokerRequest =
  | {
      readonly type: 'register';
      readonly clusterId: string;
      readonly incarnation: number | null;
      readonly broker: BrokerIdentity;
    }
  | { readonly type: 'heartbeat'; readonly incarnation: number }
  | { readonly type: 'watch'; readonly fromRevision: number | null; readonly broker: string | null }
  | { readonly type: 'unwatch'; readonly watchId: number }
  | { readonly type: 'report'; readonly incarnation: number; readonly shards: readonly ShardReportParams[] }
  | {
      readonly type: 'confirm';
      readonly incarnation: number;
      readonly shards: readonly { readonly shard: string; readonly generation: number }[];
    }
  | {
      readonly type: 'resolve';
      readonly resource: string;
      readonly shard: number | null;
      readonly key: string | null;
      readonly linearizable: boolean;
    }
  | { readonly type: 'leave'; readonly incarnation: number; readonly drain: boolean };

type Fields = Readonly<Record<string, unknown>>;

/** A frame without a usable id or type: the connection ends with 4002. */
export class ProtocolFault extends Error {}

/** The envelope of a decoded frame. Throws `ProtocolFault`. */
export function readEnvelope(message: unknown): { id: number; type: string; fields: Fields } {
  if (!isMap(message)) throw new ProtocolFault('a request is a map');
  const { id, type } = message;
  if (!Number.isSafeInteger(id) || typeof id !== 'number')
    throw new ProtocolFault('a request needs an integer id');
  if (typeof type !== 'string') throw new ProtocolFault('a request needs a type');
  return { id, type, fields: message };
}

/** Throws `invalid_argument` that names the field, or `unknown_method`. Fields that are not known are ignored. */
export function readRequest(type: string, f: Fields): BrokerRequest {
  switch (type) {
    case 'register':
      return {
        type,
        clusterId: string(f, 'clusterId'),
        incarnation: optional(f, 'incarnation', integer),
        broker: readBroker(map(f, 'broker')),
      };
    case 'heartbeat':
      return { type, incarnation: integer(f, 'incarnation') };
    case 'watch': {
      const filter = optional(f, 'filter', map);
      return {
        type,
        fromRevision: optional(f, 'fromRevision', integer),
        broker: filter === null ? null : optional(filter, 'broker', string),
      };
    }
    case 'unwatch':
      return { type, watchId: integer(f, 'watchId') };
    case 'report':
      return { type, incarnation: integer(f, 'incarnation'), shards: shards(f).map(readShardReport) };
    case 'confirm':
      return { type, incarnation: integer(f, 'incarnation'), shards: shards(f).map(readShard) };
    case 'resolve':
      return readResolve(f);
    case 'leave':
      return { type, incarnation: integer(f, 'incarnation'), drain: optional(f, 'drain', boolean) ?? false };
    default:
      throw new EvenkeelError(
        'unknown_method',
        `${JSON.stringify(type.slice(0, 80))} is no request of this protocol`,
      );
  }
}

/** Shapes only; names and limits are checked with the command. */
function readBroker(f: Fields): BrokerIdentity {
  return {
    id: string(f, 'id'),
    zone: optional(f, 'zone', string),
    addresses: strings(f, 'addresses'),
    maxShards: optional(f, 'maxShards', integer),
    weight: optional(f, 'weight', integer) ?? 1,
    labels: f['labels'] === undefined ? {} : strings(f, 'labels'),
    storeId: optional(f, 'storeId', string),
    starts: optional(f, 'starts', integer),
  };
}

function readShardReport(f: Fields): ShardReportParams {
  const inSync = f['inSync'];
  if (inSync !== undefined && (!Array.isArray(inSync) || !inSync.every((id) => typeof id === 'string'))) {
    throw invalid('inSync', 'a list of broker ids');
  }
  const followers = map(f, 'followers');
  for (const id of Object.keys(followers)) integer(followers, id);
  return {
    ...readShard(f),
    inSync: inSync ?? null,
    leaderOffset: integer(f, 'leaderOffset'),
    followers: followers as Readonly<Record<string, number>>,
    drained: optional(f, 'drained', boolean) ?? false,
  };
}

function readShard(f: Fields): { shard: string; generation: number } {
  return { shard: string(f, 'shard'), generation: integer(f, 'generation') };
}

function readResolve(f: Fields): BrokerRequest {
  const shard = optional(f, 'shard', integer);
  const key = optional(f, 'key', string);
  if ((shard === null) === (key === null)) {
    throw new EvenkeelError('invalid_argument', 'resolve takes a shard or a key, one of the two');
  }
  const consistency = f['consistency'];
  if (consistency !== undefined && consistency !== 'local' && consistency !== 'linearizable') {
    throw invalid('consistency', '"local" or "linearizable"');
  }
  return {
    type: 'resolve',
    resource: string(f, 'resource'),
    shard,
    key,
    linearizable: consistency === 'linearizable',
  };
}

function shards(f: Fields): Fields[] {
  const list = f['shards'];
  if (!Array.isArray(list)) throw invalid('shards', 'a list');
  if (list.length > MAX_REPORT_SHARDS) {
    throw new EvenkeelError(
      'limit_exceeded',
      `shards: ${list.length}, at most ${MAX_REPORT_SHARDS} in one request`,
    );
  }
  return list.map((item, i) => {
    if (!isMap(item)) throw invalid(`shards[${i}]`, 'a map');
    return item;
  });
}

function string(f: Fields, key: string): string {
  const value = f[key];
  if (typeof value !== 'string') throw invalid(key, 'a string');
  return value;
}

function integer(f: Fields, key: string): number {
  const value = f[key];
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0) {
    throw invalid(key, 'an integer from 0 to 2^53 - 1');
  }
  return value;
}

function boolean(f: Fields, key: string): boolean {
  const value = f[key];
  if (typeof value !== 'boolean') throw invalid(key, 'true or false');
  return value;
}

function map(f: Fields, key: string): Fields {
  const value = f[key];
  if (!isMap(value)) throw invalid(key, 'a map');
  return value;
}

function strings(f: Fields, key: string): Readonly<Record<string, string>> {
  const value = map(f, key);
  for (const name of Object.keys(value)) {
    if (name === '__proto__') throw invalid(key, 'a map of ordinary names');
    string(value, name);
  }
  return value as Readonly<Record<string, string>>;
}

/** Absent and `null` are the same. */
function optional<T>(f: Fields, key: string, read: (f: Fields, key: string) => T): T | null {
  return f[key] === undefined || f[key] === null ? null : read(f, key);
}

function isMap(value: unknown): value is Fields {
  return (
    typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Uint8Array)
  );
}

function invalid(key: string, what: string): EvenkeelError {
  return new EvenkeelError('invalid_argument', `${key} must be ${what}`);
}
