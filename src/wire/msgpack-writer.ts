const START_BYTES = 4 * 1024;
const TWO_POW_32 = 0x1_0000_0000;

/**
 * Appends MessagePack values to one growing buffer. For frames whose shape is known: what it writes, any
 * MessagePack reader reads. Numbers are safe integers >= 0; anything else is an error of ours.
 */
export class MsgpackWriter {
  #buffer: Buffer;
  #length = 0;

  constructor(startBytes = START_BYTES) {
    this.#buffer = Buffer.allocUnsafeSlow(startBytes);
  }

  get byteLength(): number {
    return this.#length;
  }

  /** The bytes written so far. The writer is not used afterwards. */
  finish(): Uint8Array {
    return new Uint8Array(this.#buffer.buffer, 0, this.#length);
  }

  nil(): void {
    this.#reserve(1);
    this.#buffer[this.#length++] = 0xc0;
  }

  boolean(value: boolean): void {
    this.#reserve(1);
    this.#buffer[this.#length++] = value ? 0xc3 : 0xc2;
  }

  uint(value: number): void {
    if (!Number.isSafeInteger(value) || value < 0) throw new Error(`${value} is no number for the wire`);
    this.#reserve(9);
    const buffer = this.#buffer;
    if (value < 0x80) {
      buffer[this.#length++] = value;
    } else if (value <= 0xff) {
      buffer[this.#length++] = 0xcc;
      buffer[this.#length++] = value;
    } else if (value <= 0xffff) {
      buffer[this.#length++] = 0xcd;
      this.#length = buffer.writeUInt16BE(value, this.#length);
    } else if (value < TWO_POW_32) {
      buffer[this.#length++] = 0xce;
      this.#length = buffer.writeUInt32BE(value, this.#length);
    } else {
      buffer[this.#length++] = 0xcf;
      this.#length = buffer.writeUInt32BE(Math.floor(value / TWO_POW_32), this.#length);
      this.#length = buffer.writeUInt32BE(value % TWO_POW_32, this.#length);
    }
  }

  string(text: string): void {
    const bytes = Buffer.byteLength(text);
    this.#head(bytes, 0xd9, 32, 0xa0);
    this.#reserve(bytes);
    this.#length += this.#buffer.write(text, this.#length);
  }

  bytes(data: Uint8Array): void {
    this.#head(data.byteLength, 0xc4);
    this.#reserve(data.byteLength);
    this.#buffer.set(data, this.#length);
    this.#length += data.byteLength;
  }

  /** Begins an array; its `count` items follow. */
  array(count: number): void {
    this.#reserve(5);
    if (count < 16) {
      this.#buffer[this.#length++] = 0x90 | count;
    } else {
      this.#buffer[this.#length++] = 0xdd;
      this.#length = this.#buffer.writeUInt32BE(count, this.#length);
    }
  }

  /** Begins an array whose count is not known yet. The answer is told later. */
  openArray(): (count: number) => void {
    this.#reserve(5);
    const at = this.#length + 1;
    this.#buffer[this.#length] = 0xdd;
    this.#length += 5;
    return (count) => this.#buffer.writeUInt32BE(count, at);
  }

  /** Values written before, as they are. */
  raw(written: Uint8Array): void {
    this.#reserve(written.byteLength);
    this.#buffer.set(written, this.#length);
    this.#length += written.byteLength;
  }

  /** `code8` begins a family of 8, 16 and 32 bit lengths; lengths below `fixed` go into the byte `fixedCode`. */
  #head(bytes: number, code8: number, fixed = 0, fixedCode = 0): void {
    this.#reserve(5);
    const buffer = this.#buffer;
    if (bytes < fixed) {
      buffer[this.#length++] = fixedCode | bytes;
    } else if (bytes <= 0xff) {
      buffer[this.#length++] = code8;
      buffer[this.#length++] = bytes;
    } else if (bytes <= 0xffff) {
      buffer[this.#length++] = code8 + 1;
      this.#length = buffer.writeUInt16BE(bytes, this.#length);
    } else {
      buffer[this.#length++] = code8 + 2;
      this.#length = buffer.writeUInt32BE(bytes, this.#length);
    }
  }

  #reserve(bytes: number): void {
    const needed = this.#length + bytes;
    if (needed <= this.#buffer.byteLength) return;
    const grown = Buffer.allocUnsafeSlow(Math.max(needed, this.#buffer.byteLength * 2));
    this.#buffer.copy(grown, 0, 0, this.#length);
    this.#buffer = grown;
  }
}
