/**
 * The store's keys: one letter, then fixed-width big-endian numbers, so that bytewise order is numeric order.
 *
 *   b                          boot count
 *   h                          hard state
 *   p                          the snapshot in force
 *   e <index u64>              one entry
 *   s <snapshot u64> <chunk u32>   one chunk of a snapshot
 */
const ENTRY = 'e'.charCodeAt(0);
const CHUNK = 's'.charCodeAt(0);
const TWO_POW_32 = 0x1_0000_0000;

export const BOOT_KEY = Uint8Array.of('b'.charCodeAt(0));
export const HARD_STATE_KEY = Uint8Array.of('h'.charCodeAt(0));
export const SNAPSHOT_KEY = Uint8Array.of('p'.charCodeAt(0));

/** Past every key of the store. */
export const END_KEY = Uint8Array.of(0x7f);

/** Past every entry. */
export const ENTRIES_END = Uint8Array.of(ENTRY + 1);
/** Past every chunk. */
export const CHUNKS_END = Uint8Array.of(CHUNK + 1);

export function entryKey(index: number): Uint8Array {
  const key = Buffer.allocUnsafe(9);
  key[0] = ENTRY;
  writeUint64(key, index, 1);
  return key;
}

/** Of a key that `entryKey` made. */
export function readEntryIndex(key: Uint8Array): number {
  return readUint64(Buffer.from(key.buffer, key.byteOffset, key.byteLength), 1);
}

export function chunkKey(snapshot: number, chunk: number): Uint8Array {
  const key = Buffer.allocUnsafe(13);
  key[0] = CHUNK;
  writeUint64(key, snapshot, 1);
  key.writeUInt32BE(chunk, 9);
  return key;
}

/** `value` is a safe integer >= 0. */
export function writeUint64(buffer: Buffer, value: number, offset: number): void {
  buffer.writeUInt32BE(Math.floor(value / TWO_POW_32), offset);
  buffer.writeUInt32BE(value % TWO_POW_32, offset + 4);
}

/** May answer more than a safe integer where the bytes are damaged; a checksum goes first. */
export function readUint64(buffer: Buffer, offset: number): number {
  return buffer.readUInt32BE(offset) * TWO_POW_32 + buffer.readUInt32BE(offset + 4);
}
