/** What a broker acknowledged. */
export interface Acknowledged {
  readonly value: string;
  readonly epoch: number;
  /** The address of the broker that said so. */
  readonly by: string;
}

export interface StoredRecord {
  readonly offset: number;
  readonly epoch: number;
  readonly value: string;
}

/** Every acknowledged record by shard and offset. Says at once where an offset is acknowledged twice. */
export class Ledger {
  readonly #shards = new Map<string, Map<number, Acknowledged>>();
  readonly #fail: (text: string) => void;
  readonly #last = new Map<string, StoredRecord>();
  /** Records acknowledged since the start of the round, also those that were forgotten since. */
  total = 0;

  constructor(fail: (text: string) => void) {
    this.#fail = fail;
  }

  acknowledge(
    shard: string,
    at: { offset: number; epoch: number; by: string },
    values: readonly string[],
  ): void {
    const records = this.#of(shard);
    for (const [i, value] of values.entries()) {
      const offset = at.offset + i;
      const before = records.get(offset);
      if (before !== undefined) {
        this.#fail(
          `${shard} ${offset}: acknowledged by ${before.by} in epoch ${before.epoch} and by ${at.by} in epoch ${at.epoch}`,
        );
        continue;
      }
      records.set(offset, { value, epoch: at.epoch, by: at.by });
      this.#last.set(shard, { offset, epoch: at.epoch, value });
      this.total++;
    }
  }

  /** The record of a shard that was acknowledged last. */
  last(shard: string): StoredRecord | null {
    return this.#last.get(shard) ?? null;
  }

  /** An operator replaced the cluster: nothing acknowledged before is expected any more. */
  forget(): void {
    this.#shards.clear();
    this.#last.clear();
  }

  /** Holds the whole content of a shard, read from offset 0, against what was acknowledged. */
  check(shard: string, found: readonly StoredRecord[]): void {
    const missing: number[] = [];
    for (const [offset, { value, by }] of this.#of(shard)) {
      const record = found[offset];
      if (record === undefined) missing.push(offset);
      else if (record.offset !== offset)
        this.#fail(`${shard} ${offset}: the leader returned ${record.offset}`);
      else if (record.value !== value)
        this.#fail(`${shard} ${offset}: acknowledged by ${by}, and holds another record now`);
    }
    if (missing.length > 0) {
      this.#fail(`${shard}: ${missing.length} acknowledged records are missing, the first at ${missing[0]}`);
    }
  }

  #of(shard: string): Map<number, Acknowledged> {
    let records = this.#shards.get(shard);
    if (records === undefined) this.#shards.set(shard, (records = new Map()));
    return records;
  }
}
