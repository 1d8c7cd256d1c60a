/** A record as a read shows it. */
export interface SeenRecord {
  readonly offset: number;
  readonly value: string;
}

/**
 * What a shard may never do, whoever leads it: give two records one offset, change or lose what it
 * acknowledged or showed a reader, or answer a read that misses a record acknowledged before the read was asked.
 */
export class RecordChecks {
  readonly #shards = new Map<string, Map<number, string>>();
  readonly #acknowledgedEnds = new Map<string, number>();
  readonly #lost = new Set<string>();
  #allLost = false;

  /** Everything below was acknowledged by now. */
  acknowledgedEnd(shard: string): number {
    return this.#isLost(shard) ? 0 : (this.#acknowledgedEnds.get(shard) ?? 0);
  }

  /** The faults themselves have destroyed the last copy of what was acknowledged: nothing is expected of the shard any more. */
  lose(shard: string): void {
    this.#lost.add(shard);
  }

  /** An operator has begun every shard again: nothing is expected of any of them any more. */
  loseAll(): void {
    this.#allLost = true;
  }

  acknowledged(shard: string, offset: number, value: string, broker: string): void {
    if (this.#isLost(shard)) return;
    this.#see(shard, offset, value, broker);
    this.#acknowledgedEnds.set(shard, Math.max(this.acknowledgedEnd(shard), offset + 1));
  }

  /** `leastEnd`: `acknowledgedEnd` when the read was asked. */
  read(
    shard: string,
    answer: { readonly records: readonly SeenRecord[]; readonly end: number },
    leastEnd: number,
    broker: string,
  ): void {
    if (this.#isLost(shard)) return;
    if (answer.end < leastEnd) {
      throw new Error(
        `unsafe: ${broker} reads ${shard} up to ${answer.end}, ${leastEnd} was acknowledged before`,
      );
    }
    for (const { offset, value } of answer.records) this.#see(shard, offset, value, broker);
    // What one client was shown, none may find gone: it counts as acknowledged from here on.
    this.#acknowledgedEnds.set(shard, Math.max(this.acknowledgedEnd(shard), answer.end));
  }

  /** A copy that is in sync, as its disk has it: every acknowledged record in its place. */
  copy(shard: string, values: readonly string[], broker: string): void {
    const least = this.acknowledgedEnd(shard);
    if (values.length < least) {
      throw new Error(
        `unsafe: ${broker} keeps ${values.length} records of ${shard}, ${least} were acknowledged`,
      );
    }
    for (let offset = 0; offset < least; offset++) this.#see(shard, offset, values[offset] as string, broker);
  }

  get count(): number {
    let count = 0;
    for (const end of this.#acknowledgedEnds.values()) count += end;
    return count;
  }

  #isLost(shard: string): boolean {
    return this.#allLost || this.#lost.has(shard);
  }

  #see(shard: string, offset: number, value: string, broker: string): void {
    let records = this.#shards.get(shard);
    if (records === undefined) this.#shards.set(shard, (records = new Map()));
    const known = records.get(offset);
    if (known !== undefined && known !== value) {
      throw new Error(`unsafe: ${shard} has ${value} at ${offset} on ${broker}, and had ${known}`);
    }
    records.set(offset, value);
  }
}
