import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * LevelDB, as the binding opens it, does not hold its tables against their checksums: a flipped bit makes it
 * answer wrongly, or abort the process in an assertion. So every table in force is checked before it is opened.
 * Formats: LevelDB's doc/table_format.md and doc/log_format.md, and its version edits.
 */
const FOOTER_BYTES = 48;
const MAGIC = Buffer.from('57fb808b247547db', 'hex');
/** Compression type and checksum, behind every block. */
const TRAILER_BYTES = 5;
const LOG_BLOCK_BYTES = 32 * 1024;
const LOG_HEADER_BYTES = 7;
const LAST_OR_FULL = [1, 4];
const CRC_MASK_DELTA = 0xa282ead8;

/** What is wrong with the first damaged table; `null` where none is, or LevelDB itself will complain at opening. */
export async function findDamagedTable(directory: string): Promise<string | null> {
  const current = await readOrNull(join(directory, 'CURRENT'));
  const manifest = current && (await readOrNull(join(directory, current.toString('latin1').trim())));
  const tables = manifest && tablesInForce(manifest);
  for (const [number, bytes] of tables ?? []) {
    const name = `${String(number).padStart(6, '0')}.ldb`;
    const table = await readOrNull(join(directory, name));
    if (table === null) return `${name} is missing`;
    if (table.byteLength !== bytes)
      return `${name} has ${table.byteLength} bytes where ${bytes} were written`;
    if (!isWhole(table)) return `${name} fails its checksum`;
  }
  return null;
}

/** File number to size. `null` where the manifest cannot be read, which LevelDB reports by itself. */
function tablesInForce(manifest: Buffer): Map<number, number> | null {
  const tables = new Map<number, number>();
  try {
    for (const edit of logRecords(manifest)) applyEdit(new Cursor(edit), tables);
    return tables;
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
}

function* logRecords(log: Buffer): Generator<Buffer> {
  let parts: Buffer[] = [];
  for (let at = 0; at + LOG_HEADER_BYTES <= log.byteLength;) {
    const left = LOG_BLOCK_BYTES - (at % LOG_BLOCK_BYTES);
    const length = log.readUInt16LE(at + 4);
    const type = log.readUInt8(at + 6);
    if (left < LOG_HEADER_BYTES || type === 0) {
      at += left;
      continue;
    }
    const end = at + LOG_HEADER_BYTES + length;
    if (end > log.byteLength) return;
    parts.push(log.subarray(at + LOG_HEADER_BYTES, end));
    at = end;
    if (!LAST_OR_FULL.includes(type)) continue;
    yield Buffer.concat(parts);
    parts = [];
  }
}

/** One version edit: tagged fields, of which files added (7) and removed (6) count here. */
function applyEdit(edit: Cursor, tables: Map<number, number>): void {
  while (!edit.atEnd) {
    const tag = edit.varint();
    if (tag === 1) {
      edit.skip(edit.varint());
    } else if (tag === 5) {
      edit.varint();
      edit.skip(edit.varint());
    } else if (tag === 6) {
      edit.varint();
      tables.delete(edit.varint());
    } else if (tag === 7) {
      edit.varint();
      tables.set(edit.varint(), edit.varint());
      edit.skip(edit.varint());
      edit.skip(edit.varint());
    } else {
      edit.varint();
    }
  }
}

function isWhole(table: Buffer): boolean {
  try {
    const footer = new Cursor(table.subarray(table.byteLength - FOOTER_BYTES));
    if (!table.subarray(-MAGIC.byteLength).equals(MAGIC)) return false;
    for (const handle of [handleAt(footer), handleAt(footer)]) {
      for (const inner of handlesIn(checkedBlock(table, handle))) checkedBlock(table, inner);
    }
    return true;
  } catch (error) {
    if (error instanceof RangeError) return false;
    throw error;
  }
}

interface Handle {
  readonly offset: number;
  readonly bytes: number;
}

function handleAt(cursor: Cursor): Handle {
  return { offset: cursor.varint(), bytes: cursor.varint() };
}

/** Throws RangeError where the block fails its checksum or lies outside the table. */
function checkedBlock(table: Buffer, { offset, bytes }: Handle): Buffer {
  const end = offset + bytes;
  if (end + TRAILER_BYTES > table.byteLength) throw new RangeError('a block past the end');
  const crc = crc32c(table.subarray(offset, end + 1));
  const masked = (((crc >>> 15) | (crc << 17)) + CRC_MASK_DELTA) >>> 0;
  if (masked !== table.readUInt32LE(end + 1)) throw new RangeError('a checksum that differs');
  return table.subarray(offset, end);
}

/** The values of an index block: each a handle. */
function handlesIn(block: Buffer): Handle[] {
  const restarts = block.readUInt32LE(block.byteLength - 4);
  const entries = new Cursor(block.subarray(0, block.byteLength - 4 - 4 * restarts));
  const handles: Handle[] = [];
  while (!entries.atEnd) {
    entries.varint();
    const keyBytes = entries.varint();
    const valueBytes = entries.varint();
    entries.skip(keyBytes);
    handles.push(handleAt(new Cursor(entries.take(valueBytes))));
  }
  return handles;
}

/** Throws RangeError past the end. */
class Cursor {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get atEnd(): boolean {
    return this.#at >= this.#bytes.byteLength;
  }

  varint(): number {
    let value = 0;
    for (let scale = 1; ; scale *= 0x80) {
      const byte = this.#bytes.readUInt8(this.#at);
      this.#at += 1;
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
    }
  }

  take(bytes: number): Buffer {
    const end = this.#at + bytes;
    if (end > this.#bytes.byteLength) throw new RangeError('past the end');
    const taken = this.#bytes.subarray(this.#at, end);
    this.#at = end;
    return taken;
  }

  skip(bytes: number): void {
    this.take(bytes);
  }
}

const CRC32C_POLYNOMIAL = 0x82f63b78;
const CRC32C_TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit += 1) crc = crc & 1 ? (crc >>> 1) ^ CRC32C_POLYNOMIAL : crc >>> 1;
  return crc;
});

/** The Castagnoli polynomial, which `node:zlib` does not have. */
function crc32c(data: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of data) crc = (CRC32C_TABLE[(crc ^ byte) & 0xff] ?? 0) ^ (crc >>> 8);
  return (crc ^ 0xffffffff) >>> 0;
}

async function readOrNull(path: string): Promise<Buffer | null> {
  try {
    return await readFile(path);
  } catch {
    return null;
  }
}
