/**
 * A 64-bit hash of the state in two int32 lanes. Each row is hashed by itself and the rows' hashes are added up,
 * lane by lane, so a change costs one row and the order of rows does not matter. It tells states apart that
 * differ by a fault; it is no defence against someone who makes them collide.
 */
export class StateHash {
  #a = 0;
  #b = 0;

  add(row: RowHash): void {
    this.#a = (this.#a + row.a) | 0;
    this.#b = (this.#b + row.b) | 0;
  }

  remove(row: RowHash): void {
    this.#a = (this.#a - row.a) | 0;
    this.#b = (this.#b - row.b) | 0;
  }

  /** The sum with one more row counted in, in hex, 16 digits. */
  digest(header: RowHash): string {
    return hex(this.#a + header.a) + hex(this.#b + header.b);
  }
}

export interface RowHash {
  readonly a: number;
  readonly b: number;
  /** At most so many, and little less, has the row as MessagePack. */
  readonly bytes: number;
}

/** Plain data: what MessagePack carries. Keys are hashed in their order, so rows come in one canonical order. */
export type Plain = null | boolean | number | string | readonly Plain[] | { readonly [key: string]: Plain };

export function hashRow(table: string, row: Plain): RowHash {
  const mixer = new Mixer();
  mixer.text(table);
  mixer.value(row);
  return mixer.finish();
}

const MAP_HEADER_BYTES = 3;
/** Of one UTF-16 unit. */
const MAX_UTF8_BYTES = 3;
/** The bits of two UTF-16 units of which none is set where both are ASCII. */
const NOT_ASCII = 0xff80ff80 | 0;

/** Two multiply-xor lanes with different odd constants, finished by murmur3's avalanche. */
class Mixer {
  #a = 0x9e3779b9 | 0;
  #b = 0x85ebca6b | 0;
  #bytes = 0;

  value(value: Plain): void {
    if (value === null) this.#word(1, 1);
    else if (typeof value === 'boolean') this.#word(value ? 2 : 3, 1);
    else if (typeof value === 'number') this.#number(value);
    else if (typeof value === 'string') this.text(value);
    else if (isList(value)) {
      this.#word(6, value.length < 16 ? 1 : 5);
      this.#word(value.length);
      for (const item of value) this.value(item);
    } else {
      this.#word(7, MAP_HEADER_BYTES);
      for (const [key, item] of Object.entries(value)) {
        this.text(key);
        this.value(item);
      }
      this.#word(8);
    }
  }

  /** Two UTF-16 units a word; the lanes stay in locals while the text is passed over. */
  text(text: string): void {
    this.#word(5);
    this.#word(text.length);
    let a = this.#a;
    let b = this.#b;
    let bits = 0;
    for (let i = 0; i < text.length; i += 2) {
      const word = text.charCodeAt(i) | (i + 1 < text.length ? text.charCodeAt(i + 1) << 16 : 0);
      bits |= word;
      a = mixA(a, word);
      b = mixB(b, word);
    }
    this.#a = a;
    this.#b = b;
    const isAscii = (bits & NOT_ASCII) === 0;
    const header = isAscii && text.length < 32 ? 1 : 5;
    this.#bytes += header + (isAscii ? text.length : MAX_UTF8_BYTES * text.length);
  }

  finish(): RowHash {
    const a = avalanche(this.#a ^ this.#b);
    return { a, b: avalanche(Math.imul(this.#b, 0x27d4eb2f) + this.#a), bytes: this.#bytes };
  }

  /** Every number of the state is a safe integer. */
  #number(value: number): void {
    this.#word(4, value < 128 ? 1 : value <= 0xffffffff ? 5 : 9);
    this.#word(value | 0);
    this.#word(Math.floor(value / 0x100000000));
  }

  #word(word: number, bytes = 0): void {
    this.#bytes += bytes;
    this.#a = mixA(this.#a, word);
    this.#b = mixB(this.#b, word);
  }
}

function mixA(lane: number, word: number): number {
  const mixed = Math.imul(lane ^ word, 0x01000193);
  return mixed ^ (mixed >>> 15);
}

function mixB(lane: number, word: number): number {
  return (Math.imul((lane << 13) | (lane >>> 19), 5) + Math.imul(word, 0xcc9e2d51)) | 0;
}

function isList(value: readonly Plain[] | { readonly [key: string]: Plain }): value is readonly Plain[] {
  return Array.isArray(value);
}

function avalanche(seed: number): number {
  let h = seed | 0;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) | 0;
}

function hex(lane: number): string {
  return (lane >>> 0).toString(16).padStart(8, '0');
}
