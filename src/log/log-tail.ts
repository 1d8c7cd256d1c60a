/** Term and checksum of each stored entry above the snapshot, in memory: what decides truncation and links. */
export class LogTail {
  /** Index of the snapshot in force; 0 without one. */
  #base = 0;
  /** Checksum of the entry the snapshot took the place of; 0 where it is not known. */
  #baseCrc = 0;
  #terms: number[] = [];
  #crcs: number[] = [];

  get base(): number {
    return this.#base;
  }

  get lastIndex(): number {
    return this.#base + this.#terms.length;
  }

  /** `index` in `(base, lastIndex]`. */
  at(index: number): { term: number; crc: number } {
    const offset = index - this.#base - 1;
    const term = this.#terms[offset];
    const crc = this.#crcs[offset];
    if (term === undefined || crc === undefined) throw new Error(`no entry ${index} in the log's tail`);
    return { term, crc };
  }

  /** What the entry after the last one links to. */
  get lastCrc(): number {
    return this.#crcs.at(-1) ?? this.#baseCrc;
  }

  push(term: number, crc: number): void {
    this.#terms.push(term);
    this.#crcs.push(crc);
  }

  /** Forgets everything past `index`. */
  truncate(index: number): void {
    this.#terms.length = index - this.#base;
    this.#crcs.length = index - this.#base;
  }

  /** A snapshot took the place of everything up to `index`. */
  dropTo(index: number): void {
    const covered = index - this.#base;
    if (covered === 0) return;
    this.#baseCrc = this.#crcs[covered - 1] ?? 0;
    this.#terms = this.#terms.slice(covered);
    this.#crcs = this.#crcs.slice(covered);
    this.#base = index;
  }
}
