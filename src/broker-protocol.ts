import { Packr } from 'msgpackr';
import type { Assignment, Broker, Lifecycle } from '../placement/index.ts';
import type { ShardResult } from './broker-services.ts';
import type { ErrorCode } from './errors.ts';
import { checkPlainMsgpack } from './plain-msgpack.ts';
import { parseStrictJson } from './strict-json.ts';

/** The path on every node, and the two encodings of the same messages (docs/protocol.md). */
export const BROKER_PATH = '/broker';
export const JSON_SUBPROTOCOL = 'evenkeel.broker.v1+json';
export const MSGPACK_SUBPROTOCOL = 'evenkeel.broker.v1+msgpack';

/** The largest frame a node takes. */
export const MAX_BROKER_REQUEST_BYTES = 1024 * 1024;
/** The largest frame a node sends: a chunk of 1,000 rows whose every string is as long as it may be. */
export const MAX_BROKER_PUSH_BYTES = 16 * 1024 * 1024;

/** Why a connection was closed. */
export const CLOSE = {
  draining: 1001,
  refused: 1008,
  tooLarge: 1009,
  tryLater: 1013,
  protocol: 4002,
  replaced: 4003,
} as const;

/** A broker as watchers see it: the cluster file's fields and how to reach it. */
export interface WatchedBroker extends Broker {
  readonly addresses: Readonly<Record<string, string>>;
  readonly labels: Readonly<Record<string, string>>;
  readonly storeId: string | null;
}

/** An assignment as watchers see it: the cluster file's fields and which creation of its resource it belongs to. */
export interface WatchedAssignment extends Assignment {
  /** Differs where a name was deleted and created again; `null`: the resource is gone, the row is about to be. */
  readonly resourceRevision: number | null;
}

export type WatchedChange =
  | { readonly kind: 'assignment'; readonly assignment: WatchedAssignment }
  | { readonly kind: 'removed'; readonly shard: string }
  | { readonly kind: 'broker'; readonly broker: WatchedBroker }
  | { readonly kind: 'brokerRemoved'; readonly id: string };

export type BrokerPush =
  | {
      readonly type: 'watch.snapshot';
      readonly watchId: number;
      readonly revision: number;
      readonly assignments: readonly WatchedAssignment[];
      readonly brokers: readonly WatchedBroker[];
      readonly done: boolean;
    }
  | {
      readonly type: 'watch.changes';
      readonly watchId: number;
      readonly revision: number;
      readonly changes: readonly WatchedChange[];
      readonly more?: true;
    }
  | { readonly type: 'watch.progress'; readonly watchId: number; readonly revision: number }
  | { readonly type: 'watch.resync'; readonly watchId: number };

/** What `register` sends, as a broker writes it. */
export interface Registration {
  readonly id: string;
  readonly zone?: string;
  /** By listener name: `host:port`. */
  readonly addresses: Readonly<Record<string, string>>;
  readonly maxShards?: number;
  readonly weight?: number;
  readonly labels?: Readonly<Record<string, string>>;
  readonly storeId?: string;
  readonly starts?: number;
}

/** One shard of a `report`. */
export interface ShardReportMessage {
  readonly shard: string;
  readonly generation: number;
  readonly inSync?: readonly string[];
  readonly leaderOffset: number;
  readonly followers: Readonly<Record<string, number>>;
  readonly drained?: true;
}

/** The answers' fields, by request. */
export interface BrokerAnswers {
  readonly register: {
    readonly incarnation: number;
    readonly heartbeatMs: number;
    readonly leaseMs: number;
    readonly expiryMs: number;
    /** How far the broker's wall and monotonic clock may drift apart within a lease. */
    readonly marginMs: number;
    readonly lifecycle: Lifecycle;
    readonly revision: number;
  };
  readonly heartbeat: { readonly lifecycle: Lifecycle; readonly leaseMs: number; readonly term: number };
  readonly watch: { readonly watchId: number; readonly revision: number };
  readonly unwatch: Readonly<Record<string, never>>;
  readonly report: { readonly results: readonly { readonly shard: string; readonly result: ShardResult }[] };
  readonly confirm: BrokerAnswers['report'];
  readonly resolve: {
    readonly shard: string;
    readonly leader: string;
    readonly addresses: Readonly<Record<string, string>>;
    readonly epoch: number;
    readonly generation: number;
    readonly revision: number;
  };
  readonly leave: { readonly lifecycle: Lifecycle };
}

export type BrokerRequestType = keyof BrokerAnswers;

export interface BrokerErrorBody {
  readonly code: ErrorCode;
  readonly message: string;
  readonly retriable: boolean;
  readonly data?: Readonly<Record<string, unknown>>;
}

/** Messages to and from frames of one subprotocol. */
export interface BrokerCodec {
  encode(message: object): string | Uint8Array;
  /** Throws where the frame is of the other kind or cannot be read. */
  decode(frame: string | Uint8Array): unknown;
}

/** 64-bit integers become doubles; every integer is then checked to be a safe one, which none past 2^53 is. */
const packr = new Packr({ useRecords: false, mapsAsObjects: true, int64AsType: 'number' });

const jsonCodec: BrokerCodec = {
  encode: (message) => JSON.stringify(message),
  decode(frame) {
    if (typeof frame !== 'string') throw new Error('a binary frame on a connection that speaks JSON');
    return parseStrictJson(frame, 'the frame');
  },
};

const msgpackCodec: BrokerCodec = {
  encode: (message) => new Uint8Array(packr.pack(message)),
  decode(frame) {
    if (typeof frame === 'string') throw new Error('a text frame on a connection that speaks MessagePack');
    checkPlainMsgpack(frame);
    return packr.unpack(frame);
  },
};

/** The codec of an agreed subprotocol. */
export function brokerCodec(subprotocol: string): BrokerCodec {
  return subprotocol === MSGPACK_SUBPROTOCOL ? msgpackCodec : jsonCodec;
}
