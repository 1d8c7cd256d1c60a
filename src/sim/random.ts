import type { Random } from '../../raft/index.ts';

/**
 * The simulator's one source of chance: sfc32 (Chris Doty-Humphrey's "small fast counter", 128 bits of
 * state) whose state is filled by splitmix32 from a seed. Every use draws from a stream of its own, named
 * by a string, so that a change in one part of the world does not disturb the others.
 */
export class SimRandom implements Random {
  #a: number;
  #b: number;
  #c: number;
  #counter: number;

  constructor(seed: number, stream = '') {
    let state = hashString(stream, seed >>> 0);
    const splitmix32 = (): number => {
      state = (state + 0x9e3779b9) | 0;
      let z = state ^ (state >>> 16);
      z = Math.imul(z, 0x21f0aaad);
      z ^= z >>> 15;
      z = Math.imul(z, 0x735a2d97);
      return z ^ (z >>> 15);
    };
    this.#a = splitmix32();
    this.#b = splitmix32();
    this.#c = splitmix32();
    this.#counter = 1;
    for (let i = 0; i < 12; i++) this.nextUint32();
  }

  nextUint32(): number {
    const t = (((this.#a + this.#b) | 0) + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + t) | 0;
    return t >>> 0;
  }

  /** Uniform in [0, 1). */
  unit(): number {
    return this.nextUint32() / 0x1_0000_0000;
  }

  chance(probability: number): boolean {
    return this.unit() < probability;
  }

  /** Uniform in [low, high). */
  between(low: number, high: number): number {
    return low + this.unit() * (high - low);
  }

  /** Uniform integer in [0, bound). */
  below(bound: number): number {
    return Math.floor(this.unit() * bound);
  }

  pick<T>(items: readonly T[]): T {
    const item = items[this.below(items.length)];
    if (item === undefined) throw new Error('pick from an empty list');
    return item;
  }

  /** A new list in random order (Fisher and Yates). */
  shuffle<T>(items: readonly T[]): T[] {
    const out = [...items];
    for (let i = out.length - 1; i > 0; i--) {
      const j = this.below(i + 1);
      const held = out[i] as T;
      out[i] = out[j] as T;
      out[j] = held;
    }
    return out;
  }
}

/** FNV-1a over UTF-16 code units, from a start value. */
export function hashString(text: string, start: number): number {
  let hash = start ^ 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash | 0;
}
