import { crc32 } from 'node:zlib';
import type { Disk, FixedFile } from '../disk.ts';

/** The slots lie in different pages, so that one torn write spoils one slot. */
const SLOT_STRIDE_BYTES = 4096;
const SLOTS = 2;
const SLOT_BYTES = 12;
/** One raise in so many is synced; what lies between is lost to a power cut only. */
const SYNC_EVERY = 256;

/**
 * The number of the last write to the record store, kept beside the store: LevelDB reports nothing when synced writes
 * vanish. It is raised after each synced write, so it never names more than the store held.
 */
export class StoreMark {
  readonly #file: FixedFile;
  readonly #onFailure: (error: unknown) => void;
  #value: number;
  #written: number;
  #writing: Promise<void> | null = null;

  private constructor(file: FixedFile, value: number, onFailure: (error: unknown) => void) {
    this.#file = file;
    this.#value = value;
    this.#written = value;
    this.#onFailure = onFailure;
  }

  /** The mark's value is `null` where neither slot can be read. */
  static async open(
    disk: Disk,
    path: string,
    onFailure: (error: unknown) => void,
  ): Promise<{ readonly mark: StoreMark; readonly value: number | null }> {
    const file = await disk.openFixedFile(path, SLOTS * SLOT_STRIDE_BYTES);
    const bytes = await file.read();
    const values = Array.from({ length: SLOTS }, (_, slot) => decodeSlot(bytes, slot));
    const known = values.filter((value) => value !== null);
    const value = known.length === 0 ? null : Math.max(...known);
    return { mark: new StoreMark(file, value ?? 0, onFailure), value };
  }

  /** Writes soon; raises that come while a write is under way are joined. */
  raise(value: number): void {
    this.#value = value;
    this.#writing ??= this.#drain();
  }

  async close(): Promise<void> {
    await this.#writing;
    await this.#file.close();
  }

  async #drain(): Promise<void> {
    try {
      while (this.#written < this.#value) {
        const value = this.#value;
        const sync = Math.floor(value / SYNC_EVERY) > Math.floor(this.#written / SYNC_EVERY);
        await this.#file.writeAt((value % SLOTS) * SLOT_STRIDE_BYTES, encodeSlot(value), { sync });
        this.#written = value;
      }
    } catch (error) {
      this.#written = this.#value = Infinity;
      this.#onFailure(error);
    } finally {
      this.#writing = null;
    }
  }
}

function encodeSlot(value: number): Uint8Array {
  const slot = Buffer.alloc(SLOT_BYTES);
  slot.writeBigUInt64BE(BigInt(value), 4);
  slot.writeUInt32BE(crc32(slot.subarray(4)), 0);
  return slot;
}

/** A slot of zeros was never written: no write is named. */
function decodeSlot(bytes: Uint8Array, slot: number): number | null {
  const at = slot * SLOT_STRIDE_BYTES;
  if (bytes.byteLength < at + SLOT_BYTES) return null;
  const data = Buffer.from(bytes.buffer, bytes.byteOffset + at, SLOT_BYTES);
  if (data.every((byte) => byte === 0)) return 0;
  return crc32(data.subarray(4)) === data.readUInt32BE(0) ? Number(data.readBigUInt64BE(4)) : null;
}
