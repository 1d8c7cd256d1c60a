import { crc32 } from 'node:zlib';
import type { HardState, MemberId } from '../../raft/index.ts';
import type { Disk, FixedFile } from '../disk.ts';
import { readUint64, writeUint64 } from './keys.ts';

/** What this member last said it has: it may never be found with less. */
export interface MarkValue {
  readonly boot: number;
  readonly term: number;
  readonly votedFor: MemberId | null;
  readonly lastIndex: number;
  readonly lastTerm: number;
  /** Checksum of the entry at `lastIndex`; 0 where a snapshot ends there. */
  readonly lastCrc: number;
}

const SLOT_BYTES = 256;
/** The slots lie in different pages and sectors, so that one torn write spoils one slot. */
const SLOT_STRIDE_BYTES = 4096;
const SLOTS = 2;
const HEADER_BYTES = 4 + 8 * 5 + 4;
/** A member id is one name segment: at most 128 bytes. */
const MAX_VOTE_BYTES = SLOT_BYTES - HEADER_BYTES - 1;
/** Raising is synced once in so many times; what lies between is lost to a power cut only. */
const SYNC_EVERY = 256;

const ZERO: MarkValue = { boot: 0, term: 0, votedFor: null, lastIndex: 0, lastTerm: 0, lastCrc: 0 };

/**
 * The durable mark beside LevelDB, which reports nothing when synced data vanish. Two slots in one file are
 * overwritten in turn; the valid one with the higher sequence number counts.
 *
 * It is raised after each synced write, without a sync of its own, and lowered, synced, before a write that
 * removes entries, so it never claims more than the store holds. A change of term or vote is synced. It
 * notices every loss after a process ended; after a power cut, a loss of what was written before the last
 * synced raise. It cannot notice that both it and the store were put back to an older copy.
 */
export class Mark {
  readonly #file: FixedFile;
  #value: MarkValue;
  #sequence: number;
  #waiting: MarkValue | null = null;
  #writing: Promise<void> | null = null;
  #unsynced = 0;
  #failure: Error | null = null;

  private constructor(file: FixedFile, value: MarkValue, sequence: number) {
    this.#file = file;
    this.#value = value;
    this.#sequence = sequence;
  }

  /** `null` where neither slot is valid; `fresh`: the file is new and holds none yet. */
  static async open(disk: Disk, path: string, fresh: boolean): Promise<Mark | null> {
    const file = await disk.openFixedFile(path, SLOTS * SLOT_STRIDE_BYTES);
    const bytes = await file.read();
    const slots = [0, 1].map((slot) => decodeSlot(bytes, slot)).filter((slot) => slot !== null);
    const newest = slots.sort((a, b) => b.sequence - a.sequence)[0];
    if (newest !== undefined) return new Mark(file, newest.value, newest.sequence);
    if (fresh) return new Mark(file, ZERO, 0);
    await file.close();
    return null;
  }

  /** As last raised or lowered. */
  get value(): MarkValue {
    return this.#value;
  }

  /** The first failed write; the mark is not written again. */
  get failure(): Error | null {
    return this.#failure;
  }

  /** Writes unsynced and soon; raises that come while one is under way are joined. */
  raise(value: MarkValue): void {
    this.#value = value;
    if (this.#failure !== null) return;
    this.#waiting = value;
    this.#writing ??= this.#drain();
  }

  /** Writes and syncs, after what is under way. */
  async set(value: MarkValue): Promise<void> {
    this.#value = value;
    this.#waiting = null;
    await this.#writing;
    if (this.#failure !== null) throw this.#failure;
    await this.#write(value, true);
  }

  async close(): Promise<void> {
    this.#waiting = null;
    await this.#writing;
    try {
      if (this.#failure === null && this.#unsynced > 0) await this.#write(this.#value, true);
    } finally {
      await this.#file.close();
    }
  }

  async #drain(): Promise<void> {
    try {
      while (this.#waiting !== null) {
        const value = this.#waiting;
        this.#waiting = null;
        await this.#write(value, this.#unsynced + 1 >= SYNC_EVERY);
      }
    } catch (error) {
      this.#failure = error instanceof Error ? error : new Error(String(error));
      this.#waiting = null;
    } finally {
      this.#writing = null;
    }
  }

  async #write(value: MarkValue, sync: boolean): Promise<void> {
    this.#sequence += 1;
    this.#unsynced = sync ? 0 : this.#unsynced + 1;
    const offset = (this.#sequence % SLOTS) * SLOT_STRIDE_BYTES;
    await this.#file.writeAt(offset, encodeSlot(this.#sequence, value), { sync });
  }
}

/** Why a state that was found cannot be all that this member had; `null` where it can. */
export function missingFrom(
  mark: MarkValue,
  found: {
    hardState: HardState;
    /** Index of the snapshot, 0 without one. */
    baseIndex: number;
    lastIndex: number;
    /** Of an entry above `baseIndex`. */
    entryAt: (index: number) => { term: number; crc: number };
  },
): string | null {
  const { term, votedFor } = found.hardState;
  if (term < mark.term) return `it is at term ${term} and had reached term ${mark.term}`;
  if (term === mark.term && mark.votedFor !== null && votedFor !== mark.votedFor) {
    return `its vote for ${mark.votedFor} in term ${term} is gone`;
  }
  if (found.lastIndex < mark.lastIndex) {
    return `its log ends at ${found.lastIndex} and had reached ${mark.lastIndex}`;
  }
  if (mark.lastIndex <= found.baseIndex) return null;
  const entry = found.entryAt(mark.lastIndex);
  if (entry.term === mark.lastTerm && entry.crc === mark.lastCrc) return null;
  return `entry ${mark.lastIndex} is not the one it had acknowledged`;
}

function encodeSlot(sequence: number, value: MarkValue): Uint8Array {
  const slot = Buffer.alloc(SLOT_BYTES);
  const vote = Buffer.from(value.votedFor ?? '');
  if (vote.byteLength > MAX_VOTE_BYTES) throw new Error(`a member id of ${vote.byteLength} bytes`);
  writeUint64(slot, sequence, 4);
  writeUint64(slot, value.boot, 12);
  writeUint64(slot, value.term, 20);
  writeUint64(slot, value.lastIndex, 28);
  writeUint64(slot, value.lastTerm, 36);
  slot.writeUInt32BE(value.lastCrc, 44);
  slot[HEADER_BYTES] = vote.byteLength;
  slot.set(vote, HEADER_BYTES + 1);
  slot.writeUInt32BE(crc32(slot.subarray(4)), 0);
  return slot;
}

function decodeSlot(bytes: Uint8Array, slot: number): { sequence: number; value: MarkValue } | null {
  const at = slot * SLOT_STRIDE_BYTES;
  if (bytes.byteLength < at + SLOT_BYTES) return null;
  const data = Buffer.from(bytes.buffer, bytes.byteOffset + at, SLOT_BYTES);
  const sequence = readUint64(data, 4);
  if (crc32(data.subarray(4)) !== data.readUInt32BE(0) || sequence === 0) return null;
  const voteBytes = data[HEADER_BYTES] ?? 0;
  const vote = data.toString('utf8', HEADER_BYTES + 1, HEADER_BYTES + 1 + voteBytes);
  return {
    sequence,
    value: {
      boot: readUint64(data, 12),
      term: readUint64(data, 20),
      votedFor: vote === '' ? null : vote,
      lastIndex: readUint64(data, 28),
      lastTerm: readUint64(data, 36),
      lastCrc: data.readUInt32BE(44),
    },
  };
}
