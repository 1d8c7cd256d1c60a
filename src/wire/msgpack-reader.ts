import { EvenkeelError } from '../errors.ts';

const TWO_POW_32 = 0x1_0000_0000;
const UTF8 = new TextDecoder('utf-8', { fatal: true });

/**
 * Reads MessagePack values of a known shape, one after the other. It allocates nothing on the word of a
 * length: a claim is held against its bound and against the bytes that are there. Nothing nests, so nothing
 * can nest too deep. Every departure is a `protocol_error`. Hazard 38.
 */
export class MsgpackReader {
  readonly #buffer: Buffer;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** The frame must end here. */
  end(): void {
    if (this.#at !== this.#buffer.byteLength) throw malformed('bytes after the end');
  }

  /** Takes a nil if one is next. */
  isNil(): boolean {
    if (this.#buffer[this.#at] !== 0xc0) return false;
    this.#at += 1;
    return true;
  }

  boolean(): boolean {
    const code = this.#code();
    if (code !== 0xc2 && code !== 0xc3) throw malformed('a boolean expected');
    return code === 0xc3;
  }

  uint(max: number = Number.MAX_SAFE_INTEGER): number {
    const code = this.#code();
    const value = code < 0x80 ? code : this.#longUint(code);
    if (!(value <= max)) throw malformed(`a number above ${max}`);
    return value;
  }

  string(maxBytes: number): string {
    const code = this.#code();
    const bytes = (code & 0xe0) === 0xa0 ? code & 0x1f : this.#length(code - 0xd9, 'a string');
    const start = this.#take(bytes, maxBytes);
    try {
      return UTF8.decode(this.#buffer.subarray(start, start + bytes));
    } catch {
      throw malformed('a string that is not UTF-8');
    }
  }

  /** A view of the frame, which is the receiver's own (`Connection.onMessage`). */
  bytes(maxBytes: number): Uint8Array {
    const bytes = this.#length(this.#code() - 0xc4, 'bytes');
    const start = this.#take(bytes, maxBytes);
    return new Uint8Array(this.#buffer.buffer, this.#buffer.byteOffset + start, bytes);
  }

  /** The count of items that follow. Each takes a byte at least, so a count past the frame's end is a lie. */
  array(maxCount: number): number {
    const code = this.#code();
    const count = (code & 0xf0) === 0x90 ? code & 0x0f : this.#length(code - 0xdc + 1, 'an array', 1);
    if (count > maxCount || count > this.#buffer.byteLength - this.#at) {
      throw malformed(`an array of ${count} items, more than ${maxCount} or than the frame holds`);
    }
    return count;
  }

  /** An array of exactly `count` items. */
  tuple(count: number): void {
    if (this.array(count) !== count) throw malformed(`an array of ${count} items expected`);
  }

  #longUint(code: number): number {
    if (code < 0xcc || code > 0xcf) throw malformed('a number expected');
    const bytes = 1 << (code - 0xcc);
    const start = this.#take(bytes, bytes);
    if (bytes === 1) return this.#buffer.readUInt8(start);
    if (bytes === 2) return this.#buffer.readUInt16BE(start);
    if (bytes === 4) return this.#buffer.readUInt32BE(start);
    return this.#buffer.readUInt32BE(start) * TWO_POW_32 + this.#buffer.readUInt32BE(start + 4);
  }

  /** `size`: 0, 1, 2 for a length of 8, 16, 32 bits. */
  #length(size: number, what: string, least = 0): number {
    if (size < least || size > 2) throw malformed(`${what} expected`);
    const bytes = 1 << size;
    const start = this.#take(bytes, bytes);
    return this.#buffer.readUIntBE(start, bytes);
  }

  #code(): number {
    const code = this.#buffer[this.#at];
    if (code === undefined) throw malformed('the frame ends too early');
    this.#at += 1;
    return code;
  }

  /** Passes over `bytes`; answers where they start. */
  #take(bytes: number, maxBytes: number): number {
    if (bytes > maxBytes) throw malformed(`${bytes} bytes where ${maxBytes} are allowed`);
    const start = this.#at;
    if (bytes > this.#buffer.byteLength - start) throw malformed('the frame ends too early');
    this.#at = start + bytes;
    return start;
  }
}

export function malformed(what: string): EvenkeelError {
  return new EvenkeelError('protocol_error', `malformed frame: ${what}`);
}
