import { crc32 } from 'node:zlib';
import type { Snapshot } from '../../raft/index.ts';
import type { KeyValueStore, StoreOperation } from '../disk.ts';
import { CHUNKS_END, chunkKey } from './keys.ts';
import { decodeChunk, encodeChunk, type SnapshotRecord } from './records.ts';

export const SNAPSHOT_CHUNK_BYTES = 256 * 1024;
/** Chunks of one synced write. */
const CHUNKS_PER_WRITE = 4;

/** Stores the data under `id`; nothing refers to it until the record answered here is written. */
export async function storeChunks(
  store: KeyValueStore,
  id: number,
  snapshot: Snapshot,
): Promise<SnapshotRecord> {
  const { data, meta } = snapshot;
  const chunks = Math.ceil(data.byteLength / SNAPSHOT_CHUNK_BYTES);
  for (let first = 0; first < chunks; first += CHUNKS_PER_WRITE) {
    const operations: StoreOperation[] = [];
    for (let chunk = first; chunk < Math.min(first + CHUNKS_PER_WRITE, chunks); chunk += 1) {
      const at = chunk * SNAPSHOT_CHUNK_BYTES;
      const value = encodeChunk(id, chunk, data.subarray(at, at + SNAPSHOT_CHUNK_BYTES));
      operations.push({ type: 'put', key: chunkKey(id, chunk), value });
    }
    await store.write(operations);
  }
  return { id, meta, bytes: data.byteLength, chunks, dataCrc: crc32(data) };
}

/** `null` where a chunk is missing or damaged. */
export async function loadChunks(store: KeyValueStore, record: SnapshotRecord): Promise<Snapshot | null> {
  const parts: Uint8Array[] = [];
  for (let chunk = 0; chunk < record.chunks; chunk += 1) {
    const value = await store.get(chunkKey(record.id, chunk));
    const part = value === null ? null : decodeChunk(value, record.id, chunk);
    if (part === null) return null;
    parts.push(part);
  }
  const whole = Buffer.concat(parts);
  if (whole.byteLength !== record.bytes || crc32(whole) !== record.dataCrc) return null;
  return { meta: record.meta, data: new Uint8Array(whole.buffer, whole.byteOffset, whole.byteLength) };
}

export function chunkDeletions(record: SnapshotRecord): StoreOperation[] {
  return Array.from({ length: record.chunks }, (_, chunk) => ({
    type: 'delete',
    key: chunkKey(record.id, chunk),
  }));
}

/** Removes what a crash left of a snapshot that never came into force: ids above `id`. */
export async function removeOrphans(store: KeyValueStore, id: number): Promise<void> {
  for (;;) {
    const rows = await store.range({
      gte: chunkKey(id + 1, 0),
      lt: CHUNKS_END,
      limit: CHUNKS_PER_WRITE,
    });
    if (rows.length === 0) return;
    await store.write(rows.map(([key]) => ({ type: 'delete', key })));
  }
}
