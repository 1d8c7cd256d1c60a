import { Packr } from 'msgpackr';

const packr = new Packr({ useRecords: false, mapsAsObjects: true });

const ARRAY_32 = 0xdd;

/** Reads MessagePack values that lie one after the other, a few at a time; throws where the bytes are none or end. */
export class SequenceReader {
  readonly #data: Buffer;
  #at = 0;

  constructor(data: Uint8Array) {
    this.#data = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  }

  get isAtEnd(): boolean {
    return this.#at === this.#data.length;
  }

  value(): unknown {
    let read: unknown;
    this.values(1, (value) => (read = value));
    return read;
  }

  /** The next `count` values, which must all be there. */
  values(count: number, each: (value: unknown) => void): void {
    let left = count;
    if (left === 0) return;
    const from = this.#at;
    // A view of its own: the decoder leaves a property on what it reads.
    packr.unpackMultiple(this.#data.subarray(from), (value: unknown, _start?: number, end?: number) => {
      each(value);
      this.#at = from + (end ?? 0);
      left -= 1;
      return left > 0;
    });
    if (left > 0) throw new Error('the bytes end too early');
  }

  /** The number of keys of the small map (`fixmap`) that begins here. */
  mapHeader(): number {
    const code = this.#data[this.#at] ?? 0;
    if ((code & 0xf0) !== 0x80) throw new Error(`a map was expected at byte ${this.#at}`);
    this.#at += 1;
    return code & 0x0f;
  }

  /** The length of the list (`array 32`) that begins here. */
  arrayHeader(): number {
    if (this.#data[this.#at] !== ARRAY_32 || this.#at + 5 > this.#data.length) {
      throw new Error(`a list was expected at byte ${this.#at}`);
    }
    this.#at += 5;
    return this.#data.readUInt32BE(this.#at - 4);
  }
}
