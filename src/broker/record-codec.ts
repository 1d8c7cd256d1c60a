import { crc32 } from 'node:zlib';
import { EvenkeelError } from '../errors.ts';

/** One record of a shard. */
export interface StoredRecord {
  /** The epoch under which a leader took it. */
  readonly epoch: number;
  readonly payload: Uint8Array;
}

/** What is kept of each shard beside its records. */
export interface ShardMeta {
  /** The shard's number in this store; never used again. */
  readonly id: number;
  readonly shard: string;
  /** The creation of its resource that the records belong to. */
  readonly resourceRevision: number;
  /** Records held: offsets 0 to `end - 1`. */
  readonly end: number;
  /** Where each epoch's records begin: `[epoch, offset]`, both rising. */
  readonly epochs: readonly (readonly [number, number])[];
}

const META = 'm'.charCodeAt(0);
const RECORD = 'r'.charCodeAt(0);
const TWO_POW_32 = 0x1_0000_0000;
const CRC_BYTES = 4;
const EPOCH_BYTES = 8;
const RECORD_KEY_BYTES = 13;

export const METAS = { gte: Uint8Array.of(META), lt: Uint8Array.of(META + 1) };

export function metaKey(id: number): Uint8Array {
  const key = Buffer.alloc(5);
  key[0] = META;
  key.writeUInt32BE(id, 1);
  return key;
}

export function recordKey(id: number, offset: number): Uint8Array {
  const key = Buffer.alloc(RECORD_KEY_BYTES);
  key[0] = RECORD;
  key.writeUInt32BE(id, 1);
  writeUint64(key, offset, 5);
  return key;
}

export function encodeMeta(meta: ShardMeta): Uint8Array {
  const body = Buffer.from(JSON.stringify(meta));
  return withCrc(Buffer.concat([Buffer.alloc(CRC_BYTES), body]));
}

/** Throws `corrupt`. */
export function decodeMeta(value: Uint8Array): ShardMeta {
  const body = checked(value, "a shard's description");
  return JSON.parse(Buffer.from(body).toString('utf8')) as ShardMeta;
}

/** The checksum covers the offset too, so that a record under a wrong key is noticed. */
export function encodeRecord(offset: number, record: StoredRecord): Uint8Array {
  const value = Buffer.alloc(CRC_BYTES + 2 * EPOCH_BYTES + record.payload.length);
  writeUint64(value, offset, CRC_BYTES);
  writeUint64(value, record.epoch, CRC_BYTES + EPOCH_BYTES);
  value.set(record.payload, CRC_BYTES + 2 * EPOCH_BYTES);
  return withCrc(value);
}

/** Throws `corrupt`. */
export function decodeRecord(offset: number, value: Uint8Array): StoredRecord {
  const body = checked(value, `record ${offset}`);
  const view = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  if (body.length < 2 * EPOCH_BYTES || readUint64(view, 0) !== offset) {
    throw new EvenkeelError('corrupt', `record ${offset} is another's: this broker's store is damaged`);
  }
  return { epoch: readUint64(view, EPOCH_BYTES), payload: body.slice(2 * EPOCH_BYTES) };
}

function withCrc(value: Buffer): Uint8Array {
  value.writeUInt32BE(crc32(value.subarray(CRC_BYTES)), 0);
  return value;
}

function checked(value: Uint8Array, what: string): Uint8Array {
  const view = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  const body = value.subarray(CRC_BYTES);
  if (value.length < CRC_BYTES || view.readUInt32BE(0) !== crc32(body)) {
    throw new EvenkeelError('corrupt', `${what} does not match its checksum: this broker's store is damaged`);
  }
  return body;
}

function writeUint64(buffer: Buffer, value: number, at: number): void {
  buffer.writeUInt32BE(Math.floor(value / TWO_POW_32), at);
  buffer.writeUInt32BE(value % TWO_POW_32, at + 4);
}

function readUint64(buffer: Buffer, at: number): number {
  return buffer.readUInt32BE(at) * TWO_POW_32 + buffer.readUInt32BE(at + 4);
}
