import { crc32 } from 'node:zlib';
import type { Configuration, Entry, EntryKind, HardState, SnapshotMeta } from '../../raft/index.ts';
import { readUint64, writeUint64 } from './keys.ts';

/**
 * Every value begins with the CRC-32 of the rest, and the rest repeats what the key says, so that a value
 * under the wrong key is noticed too. Decoders answer `null` for whatever is not exactly right.
 */
const CRC_BYTES = 4;
/** Index and term, each eight bytes, the kind, and the checksum of the entry before. */
const ENTRY_HEADER_BYTES = CRC_BYTES + 4 + 8 + 8 + 1;
const CHUNK_HEADER_BYTES = CRC_BYTES + 8 + 4;
const HARD_STATE_HEADER_BYTES = CRC_BYTES + 8 + 8;
const SNAPSHOT_HEADER_BYTES = CRC_BYTES + 8 + 8 + 8 + 8 + 4 + 4;
const KINDS: readonly EntryKind[] = ['noop', 'command', 'config'];

/** An entry with its link: a chain of checksums, so that an older write that came back to light does not fit. */
export interface StoredEntry {
  readonly entry: Entry;
  readonly crc: number;
  readonly previousCrc: number;
}

/** What the snapshot in force is made of. */
export interface SnapshotRecord {
  readonly id: number;
  readonly meta: SnapshotMeta;
  readonly bytes: number;
  readonly chunks: number;
  readonly dataCrc: number;
}

export function encodeEntry(entry: Entry, previousCrc: number): { value: Buffer; crc: number } {
  const value = Buffer.allocUnsafe(ENTRY_HEADER_BYTES + entry.data.byteLength);
  value.writeUInt32BE(previousCrc, 4);
  writeUint64(value, entry.index, 8);
  writeUint64(value, entry.term, 16);
  value[24] = KINDS.indexOf(entry.kind);
  value.set(entry.data, ENTRY_HEADER_BYTES);
  return { value, crc: seal(value) };
}

/** The data is a view of `bytes`. */
export function decodeEntry(bytes: Uint8Array): StoredEntry | null {
  const value = unseal(bytes, ENTRY_HEADER_BYTES);
  const kind = KINDS[value?.[24] ?? KINDS.length];
  if (value === null || kind === undefined) return null;
  const data = bytes.subarray(ENTRY_HEADER_BYTES);
  return {
    entry: { index: readUint64(value, 8), term: readUint64(value, 16), kind, data },
    crc: value.readUInt32BE(0),
    previousCrc: value.readUInt32BE(4),
  };
}

export function encodeHardState(state: HardState): Buffer {
  const vote = Buffer.from(state.votedFor ?? '');
  const value = Buffer.allocUnsafe(HARD_STATE_HEADER_BYTES + vote.byteLength);
  writeUint64(value, state.term, 4);
  writeUint64(value, state.commit, 12);
  value.set(vote, HARD_STATE_HEADER_BYTES);
  seal(value);
  return value;
}

export function decodeHardState(bytes: Uint8Array): HardState | null {
  const value = unseal(bytes, HARD_STATE_HEADER_BYTES);
  if (value === null) return null;
  const vote = value.toString('utf8', HARD_STATE_HEADER_BYTES);
  return { term: readUint64(value, 4), commit: readUint64(value, 12), votedFor: vote === '' ? null : vote };
}

export function encodeBootCount(count: number): Buffer {
  const value = Buffer.allocUnsafe(CRC_BYTES + 8);
  writeUint64(value, count, CRC_BYTES);
  seal(value);
  return value;
}

export function decodeBootCount(bytes: Uint8Array): number | null {
  const value = unseal(bytes, CRC_BYTES + 8);
  return value === null ? null : readUint64(value, CRC_BYTES);
}

export function encodeChunk(snapshot: number, chunk: number, data: Uint8Array): Buffer {
  const value = Buffer.allocUnsafe(CHUNK_HEADER_BYTES + data.byteLength);
  writeUint64(value, snapshot, 4);
  value.writeUInt32BE(chunk, 12);
  value.set(data, CHUNK_HEADER_BYTES);
  seal(value);
  return value;
}

/** `null` where it is not chunk `chunk` of snapshot `snapshot`. */
export function decodeChunk(bytes: Uint8Array, snapshot: number, chunk: number): Uint8Array | null {
  const value = unseal(bytes, CHUNK_HEADER_BYTES);
  if (value === null || readUint64(value, 4) !== snapshot || value.readUInt32BE(12) !== chunk) return null;
  return bytes.subarray(CHUNK_HEADER_BYTES);
}

export function encodeSnapshotRecord(record: SnapshotRecord): Buffer {
  const configuration = Buffer.from(JSON.stringify(record.meta.configuration));
  const value = Buffer.allocUnsafe(SNAPSHOT_HEADER_BYTES + configuration.byteLength);
  writeUint64(value, record.id, 4);
  writeUint64(value, record.meta.index, 12);
  writeUint64(value, record.meta.term, 20);
  writeUint64(value, record.bytes, 28);
  value.writeUInt32BE(record.chunks, 36);
  value.writeUInt32BE(record.dataCrc, 40);
  value.set(configuration, SNAPSHOT_HEADER_BYTES);
  seal(value);
  return value;
}

export function decodeSnapshotRecord(bytes: Uint8Array): SnapshotRecord | null {
  const value = unseal(bytes, SNAPSHOT_HEADER_BYTES);
  if (value === null) return null;
  // Sealed by `encodeSnapshotRecord`, so it is the JSON of a Configuration.
  const configuration = JSON.parse(value.toString('utf8', SNAPSHOT_HEADER_BYTES)) as Configuration;
  return {
    id: readUint64(value, 4),
    meta: { index: readUint64(value, 12), term: readUint64(value, 20), configuration },
    bytes: readUint64(value, 28),
    chunks: value.readUInt32BE(36),
    dataCrc: value.readUInt32BE(40),
  };
}

function seal(value: Buffer): number {
  const crc = crc32(value.subarray(CRC_BYTES));
  value.writeUInt32BE(crc, 0);
  return crc;
}

function unseal(bytes: Uint8Array, leastBytes: number): Buffer | null {
  if (bytes.byteLength < leastBytes) return null;
  const value = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return crc32(value.subarray(CRC_BYTES)) === value.readUInt32BE(0) ? value : null;
}
