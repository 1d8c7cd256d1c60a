/**
 * A running 64-bit hash of everything that happened, in order: two runs of one seed must agree. Two 32-bit
 * lanes of multiply and rotate; fast, not cryptographic.
 */
export class TraceHash {
  #a = 0x243f6a88;
  #b = 0x85a308d3;
  readonly #float = new Float64Array(1);
  readonly #words = new Uint32Array(this.#float.buffer);

  integer(value: number): void {
    const a = Math.imul(this.#a ^ value, 0x9e3779b1);
    this.#a = (a << 13) | (a >>> 19);
    const b = Math.imul(this.#b + value, 0x85ebca6b) ^ this.#a;
    this.#b = (b << 17) | (b >>> 15);
  }

  number(value: number): void {
    this.#float[0] = value;
    this.integer(this.#words[0] as number);
    this.integer(this.#words[1] as number);
  }

  text(value: string): void {
    this.integer(value.length);
    for (let i = 0; i < value.length; i++) this.integer(value.charCodeAt(i));
  }

  /** Length and every byte, four at a time. */
  bytes(value: Uint8Array): void {
    this.integer(value.length);
    let word = 0;
    for (let i = 0; i < value.length; i++) {
      word = (word << 8) | (value[i] as number);
      if ((i & 3) === 3) this.integer(word);
    }
    this.integer(word);
  }

  get hex(): string {
    return hex32(this.#a) + hex32(this.#b);
  }
}

function hex32(value: number): string {
  return (value >>> 0).toString(16).padStart(8, '0');
}
