import { crc32 } from 'node:zlib';
import type { StoreOperation } from '../disk.ts';
import { EvenkeelError } from '../errors.ts';
import { METAS } from './record-codec.ts';

const SEAL_KEY = Uint8Array.of('s'.charCodeAt(0));
export const SEAL = { gte: SEAL_KEY, lt: Uint8Array.of('s'.charCodeAt(0) + 1) };
const SEAL_BYTES = 20;
const SUM_LIMIT = 2 ** 48;

/**
 * One row that every write to the record store replaces: the write's number, and a sum over the descriptions of all shards
 * as that write leaves them. A write that LevelDB dropped from the middle of its log leaves an old description behind,
 * which does not fit the sum; writes dropped from the end leave a number below the mark's.
 */
export class StoreSeal {
  #writes = 0;
  #sum = 0;
  /** By key of a description: its checksum. */
  readonly #descriptions = new Map<string, number>();

  /** Writes so far. */
  get writes(): number {
    return this.#writes;
  }

  /** Takes in what the store holds; throws `corrupt` where the descriptions are not those of its last write. */
  load(seal: Uint8Array | null, descriptions: readonly (readonly [Uint8Array, Uint8Array])[]): void {
    for (const [key, value] of descriptions) this.#note(key, value);
    const found = seal === null ? { writes: 0, sum: 0 } : decode(seal);
    if (found === null || found.sum !== this.#sum) {
      const what = 'a write to it is gone, or its last one cannot be read';
      throw new EvenkeelError('corrupt', `the descriptions of the shards do not belong together: ${what}`);
    }
    this.#writes = found.writes;
  }

  /** The operation that seals these, to be written with them. */
  next(operations: readonly StoreOperation[]): StoreOperation {
    for (const operation of operations) {
      if (operation.key[0] === METAS.gte[0])
        this.#note(operation.key, operation.type === 'put' ? operation.value : null);
    }
    this.#writes += 1;
    const value = Buffer.alloc(SEAL_BYTES);
    value.writeBigUInt64BE(BigInt(this.#writes), 4);
    value.writeBigUInt64BE(BigInt(this.#sum), 12);
    value.writeUInt32BE(crc32(value.subarray(4)), 0);
    return { type: 'put', key: SEAL_KEY, value };
  }

  #note(key: Uint8Array, value: Uint8Array | null): void {
    const name = Buffer.from(key).toString('latin1');
    const before = this.#descriptions.get(name) ?? 0;
    const after = value === null ? 0 : crc32(value);
    if (value === null) this.#descriptions.delete(name);
    else this.#descriptions.set(name, after);
    this.#sum = (this.#sum + after - before + SUM_LIMIT) % SUM_LIMIT;
  }
}

function decode(bytes: Uint8Array): { readonly writes: number; readonly sum: number } | null {
  const value = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (value.length !== SEAL_BYTES || crc32(value.subarray(4)) !== value.readUInt32BE(0)) return null;
  return { writes: Number(value.readBigUInt64BE(4)), sum: Number(value.readBigUInt64BE(12)) };
}
