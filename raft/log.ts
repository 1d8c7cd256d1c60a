import { ConfigurationHistory } from './configuration-history.ts';
import { RaftInvariantError } from './errors.ts';
import type { StoredState } from './storage.ts';
import type { Configuration, Entry, Snapshot } from './types.ts';

/**
 * The log in memory: everything since the last snapshot and a window behind it. It also knows how much of
 * it is on disk. Order of its marks: offset ≤ snapshot ≤ commit ≤ last; durable ≤ last; an index at or
 * above `unwritten` has not been handed to a write.
 */
export class RaftLog {
  #entries: Entry[];
  /** The entry before `#entries[0]`. */
  #offset: number;
  #offsetTerm: number;
  #snapshot: Snapshot | null;
  #commit: number;
  #unwritten: number;
  #durable: number;
  /** How far the write under way will make the log durable; lowered by every truncation since (hazard 19). */
  #claim = 0;
  readonly #configurations: ConfigurationHistory;

  constructor(stored: StoredState, first: Configuration) {
    this.#snapshot = stored.snapshot;
    this.#entries = [...stored.entries];
    this.#offset = stored.snapshot?.meta.index ?? 0;
    this.#offsetTerm = stored.snapshot?.meta.term ?? 0;
    this.#configurations = new ConfigurationHistory(
      this.#offset,
      stored.snapshot?.meta.configuration ?? first,
    );
    this.#configurations.note(this.#entries);
    this.#durable = this.lastIndex;
    this.#unwritten = this.lastIndex + 1;
    this.#commit = Math.max(this.#offset, Math.min(stored.hardState.commit, this.lastIndex));
    this.#entries.forEach((entry, at) =>
      this.#mustFollow(entry, this.#offset + at, this.#entries[at - 1]?.term ?? this.#offsetTerm),
    );
  }

  get firstIndex(): number {
    return this.#offset + 1;
  }

  get lastIndex(): number {
    return this.#offset + this.#entries.length;
  }

  get lastTerm(): number {
    return this.#entries.at(-1)?.term ?? this.#offsetTerm;
  }

  get commitIndex(): number {
    return this.#commit;
  }

  get durableIndex(): number {
    return this.#durable;
  }

  get snapshot(): Snapshot | null {
    return this.#snapshot;
  }

  get snapshotIndex(): number {
    return this.#snapshot?.meta.index ?? 0;
  }

  /** The newest configuration in the log, committed or not (paper, section 6). */
  get configuration(): Configuration {
    return this.#configurations.newest.configuration;
  }

  get configurationIndex(): number {
    return this.#configurations.newest.index;
  }

  configurationAt(index: number): Configuration {
    return this.#configurations.at(index);
  }

  /** `null` where the entry is compacted away or does not exist. */
  termAt(index: number): number | null {
    if (index === this.#offset) return this.#offsetTerm;
    return this.#entries[index - this.#offset - 1]?.term ?? null;
  }

  /** Whether a log that ends so is at least as new as this one: by term, then by index (paper, 5.4.1; hazard 12). */
  isUpToDate(lastIndex: number, lastTerm: number): boolean {
    return lastTerm > this.lastTerm || (lastTerm === this.lastTerm && lastIndex >= this.lastIndex);
  }

  /**
   * The last index at or before `index` whose term is at most `term`: where two logs may still agree. 0 where that is
   * before this log begins.
   */
  lastIndexWithTermAtMost(index: number, term: number): number {
    if (index < this.#offset || this.#offsetTerm > term) return 0;
    let low = this.#offset;
    let high = Math.min(index, this.lastIndex);
    while (low < high) {
      const middle = low + Math.ceil((high - low) / 2);
      if ((this.termAt(middle) ?? 0) <= term) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  append(entries: readonly Entry[]): void {
    for (const entry of entries) {
      this.#mustFollow(entry, this.lastIndex, this.lastTerm);
      this.#entries.push(entry);
    }
    this.#configurations.note(entries);
  }

  /** Removes `index` and what follows. What was durable of it is no longer part of this log. */
  truncateFrom(index: number): void {
    if (index <= this.#commit)
      throw new RaftInvariantError(`truncation at ${index}, commit is ${this.#commit}`);
    this.#entries.length = index - this.#offset - 1;
    this.#configurations.truncateFrom(index);
    this.#unwritten = Math.min(this.#unwritten, index);
    this.#forgetDurableAfter(index - 1);
  }

  commitTo(index: number): void {
    if (index > this.lastIndex)
      throw new RaftInvariantError(`commit of ${index}, the log ends at ${this.lastIndex}`);
    if (index > this.#commit) this.#commit = index;
  }

  /** Entries from `from` on, at most `maxEntries`, at most `maxBytes` of data but at least one where there is one. */
  slice(from: number, upTo: number, limits: { maxEntries: number; maxBytes: number }): readonly Entry[] {
    const start = from - this.#offset - 1;
    if (start < 0)
      throw new RaftInvariantError(`entry ${from} is compacted, the log starts at ${this.firstIndex}`);
    const end = Math.min(upTo - this.#offset, this.#entries.length, start + limits.maxEntries);
    let bytes = 0;
    let at = start;
    for (; at < end; at++) {
      bytes += this.#entries[at]?.data.length ?? 0;
      if (bytes > limits.maxBytes && at > start) break;
    }
    return this.#entries.slice(start, at);
  }

  /** Entry data of (from, to]. */
  bytesBetween(from: number, to: number): number {
    let bytes = 0;
    for (let index = from + 1; index <= to; index++)
      bytes += this.#entries[index - this.#offset - 1]?.data.length ?? 0;
    return bytes;
  }

  /** Replaces the whole log by a leader's snapshot. Only what was committed before is still known to be on disk. */
  install(snapshot: Snapshot): void {
    const { index, term, configuration } = snapshot.meta;
    if (index <= this.#commit)
      throw new RaftInvariantError(`snapshot of ${index}, commit is ${this.#commit}`);
    this.#forgetDurableAfter(this.#commit);
    this.#entries = [];
    this.#offset = index;
    this.#offsetTerm = term;
    this.#snapshot = snapshot;
    this.#commit = index;
    this.#unwritten = index + 1;
    this.#configurations.reset(index, configuration);
  }

  /** Takes this member's own snapshot and drops entries behind it but for `trailing` (hazard 26: never past what is applied). */
  compact(snapshot: Snapshot, trailing: { maxEntries: number; maxBytes: number }): void {
    const { index, term } = snapshot.meta;
    if (index > this.#commit || this.termAt(index) !== term)
      throw new RaftInvariantError(`snapshot of ${index}@${term} is not of this log`);
    this.#snapshot = snapshot;
    this.#unwritten = Math.max(this.#unwritten, index + 1);
    this.#configurations.compact(index);
    const offset = this.#trailingOffset(index, trailing);
    this.#offsetTerm = this.termAt(offset) ?? this.#offsetTerm;
    this.#entries = this.#entries.slice(offset - this.#offset);
    this.#offset = offset;
  }

  #trailingOffset(index: number, { maxEntries, maxBytes }: { maxEntries: number; maxBytes: number }): number {
    const least = Math.max(this.#offset, index - maxEntries);
    let offset = index;
    for (let bytes = 0; offset > least; offset -= 1) {
      bytes += this.#entries[offset - this.#offset - 1]?.data.length ?? 0;
      if (bytes > maxBytes) break;
    }
    return offset;
  }

  /** The entries that a write issued now must hold. They count as durable once `written` is called. */
  takeUnwritten(limits: { maxEntries: number; maxBytes: number }): readonly Entry[] {
    const entries = this.slice(this.#unwritten, this.lastIndex, limits);
    this.#unwritten += entries.length;
    this.#claim = this.#unwritten - 1;
    return entries;
  }

  get hasUnwritten(): boolean {
    return this.#unwritten <= this.lastIndex;
  }

  /** What the write under way covers, as far as the log still holds it. */
  get claimedIndex(): number {
    return this.#claim;
  }

  written(): void {
    this.#durable = Math.max(this.#durable, this.#claim);
    this.#claim = 0;
  }

  #forgetDurableAfter(index: number): void {
    this.#durable = Math.min(this.#durable, index);
    this.#claim = Math.min(this.#claim, index);
  }

  #mustFollow(entry: Entry, index: number, term: number): void {
    if (entry.index !== index + 1 || entry.term < term) {
      throw new RaftInvariantError(`entry ${entry.index}@${entry.term} cannot follow ${index}@${term}`);
    }
  }
}
