import type { StorageWrite, StoredState } from '../../raft/index.ts';

/** The terms of a member's log, kept by the rules that a storage's contract states. */
export class ShadowLog {
  #baseIndex = 0;
  #baseTerm = 0;
  #terms: number[] = [];

  static of(state: StoredState): ShadowLog {
    const log = new ShadowLog();
    log.#baseIndex = state.snapshot?.meta.index ?? 0;
    log.#baseTerm = state.snapshot?.meta.term ?? 0;
    log.#terms = state.entries.map((entry) => entry.term);
    return log;
  }

  copy(): ShadowLog {
    const twin = new ShadowLog();
    twin.#baseIndex = this.#baseIndex;
    twin.#baseTerm = this.#baseTerm;
    twin.#terms = [...this.#terms];
    return twin;
  }

  get lastIndex(): number {
    return this.#baseIndex + this.#terms.length;
  }

  get lastTerm(): number {
    return this.#terms.at(-1) ?? this.#baseTerm;
  }

  /** `null`: not in the log any more, or not yet. */
  termAt(index: number): number | null {
    if (index === this.#baseIndex) return this.#baseTerm;
    return this.#terms[index - this.#baseIndex - 1] ?? null;
  }

  /** Whether this entry, or a snapshot that covers it, is here. */
  holds(index: number, term: number): boolean {
    return index <= this.#baseIndex || this.termAt(index) === term;
  }

  apply(batch: StorageWrite): void {
    if (batch.snapshot !== null) {
      const { index, term } = batch.snapshot.meta;
      const follows = this.termAt(index) === term;
      this.#terms = follows ? this.#terms.slice(index - this.#baseIndex) : [];
      this.#baseIndex = index;
      this.#baseTerm = term;
    }
    const first = batch.entries[0]?.index;
    if (first === undefined) return;
    this.#terms.length = Math.min(this.#terms.length, first - this.#baseIndex - 1);
    for (const entry of batch.entries) this.#terms.push(entry.term);
  }
}
