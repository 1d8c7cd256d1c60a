import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '../support/cluster.ts';
import { Dice } from '../support/dice.ts';
import type { ShardClient } from './client.ts';
import type { Ledger, StoredRecord } from './ledger.ts';

/** A shard that takes no write for longer, while a healthy copy in sync lives, is a failure. */
export const UNSERVED_BOUND_MS = 35_000;
const MAX_RECORDS = 4;
const MAX_BYTES = 1_500;
const MAX_PAUSE_MS = 40;
/** One append in so many is read back at once. */
const READ_BACK = 8;
const PAGE = 100;

/** A writer for each shard: every append is tried until it is acknowledged. */
export class Load {
  readonly #client: ShardClient;
  readonly #ledger: Ledger;
  readonly #shards: readonly string[];
  readonly #seed: number;
  readonly #fail: (text: string) => void;
  readonly #servedAt = new Map<string, number>();
  readonly #acknowledged = new Map<string, number>();
  #writers: Promise<void>[] = [];
  #isOn = false;
  #last = 0;
  /** The longest that any shard took no write, ms. */
  longestGapMs = 0;

  constructor(options: {
    readonly client: ShardClient;
    readonly ledger: Ledger;
    readonly shards: readonly string[];
    readonly seed: number;
    readonly fail: (text: string) => void;
  }) {
    this.#client = options.client;
    this.#ledger = options.ledger;
    this.#shards = options.shards;
    this.#seed = options.seed;
    this.#fail = options.fail;
  }

  start(): void {
    this.#isOn = true;
    for (const shard of this.#shards) this.#servedAt.set(shard, performance.now());
    this.#writers = this.#shards.map((shard, i) => this.#write(shard, new Dice(this.#seed + i)));
  }

  async stop(): Promise<void> {
    if (!this.#isOn) return;
    for (const shard of this.#shards) this.#noteGap(shard);
    this.#isOn = false;
    await Promise.all(this.#writers);
  }

  /** Waits until every shard has taken so many appends from now on. */
  async progress(appends: number): Promise<void> {
    const goals = this.#shards.map((shard) => [shard, this.#count(shard) + appends] as const);
    const lagging = (): string[] =>
      goals.filter(([shard, goal]) => this.#count(shard) < goal).map(([shard]) => shard);
    await until(
      `${appends} appends to each shard`,
      async () => {
        const left = lagging();
        if (left.length > 0) throw new Error(left.join(', '));
        return true;
      },
      2 * UNSERVED_BOUND_MS,
    );
  }

  /** Reads every shard from its leader and holds it against the ledger. */
  async verify(): Promise<void> {
    for (const shard of this.#shards) this.#ledger.check(shard, await this.#readAll(shard));
  }

  async #write(shard: string, dice: Dice): Promise<void> {
    while (this.#isOn) {
      const records = Array.from({ length: 1 + dice.below(MAX_RECORDS) }, () => this.#payload(dice));
      while (this.#isOn && !(await this.#append(shard, records)));
      if (dice.below(READ_BACK) === 0) await this.#readBack(shard);
      await sleep(dice.below(MAX_PAUSE_MS));
    }
  }

  async #append(shard: string, records: readonly string[]): Promise<boolean> {
    const answer = await this.#client.ask(shard, { type: 'append', records }, ({ offset, epoch }, by) => {
      this.#ledger.acknowledge(shard, { offset: Number(offset), epoch: Number(epoch), by }, records);
    });
    if (answer === null) {
      this.#noteGap(shard);
      return false;
    }
    this.#noteGap(shard);
    this.#servedAt.set(shard, performance.now());
    this.#acknowledged.set(shard, this.#count(shard) + 1);
    return true;
  }

  /** A read that was asked after an acknowledgement sees the record. */
  async #readBack(shard: string): Promise<void> {
    const last = this.#ledger.last(shard);
    if (last === null) return;
    const answer = await this.#client.ask(shard, { type: 'read', from: last.offset, limit: 1 });
    if (answer === null) return;
    const [found] = answer['records'] as readonly StoredRecord[];
    if (found?.value !== last.value)
      this.#fail(`${shard} ${last.offset}: a read does not see the acknowledged record`);
  }

  async #readAll(shard: string): Promise<StoredRecord[]> {
    const found: StoredRecord[] = [];
    let end = Infinity;
    while (found.length < end) {
      const from = found.length;
      const answer = await until(
        `a read of ${shard} from ${from}`,
        () => this.#client.ask(shard, { type: 'read', from, limit: PAGE }),
        UNSERVED_BOUND_MS,
      );
      const records = answer['records'] as readonly StoredRecord[];
      end = Number(answer['end']);
      if (records.length === 0 && from < end) {
        this.#fail(`${shard}: its leader returns nothing at ${from}, below its end ${end}`);
        break;
      }
      found.push(...records);
    }
    return found;
  }

  #noteGap(shard: string): void {
    const gapMs = performance.now() - (this.#servedAt.get(shard) ?? 0);
    if (gapMs > UNSERVED_BOUND_MS && this.longestGapMs <= UNSERVED_BOUND_MS) {
      this.#fail(`${shard}: no append was acknowledged for ${Math.round(gapMs)} ms`);
    }
    this.longestGapMs = Math.max(this.longestGapMs, gapMs);
  }

  #count(shard: string): number {
    return this.#acknowledged.get(shard) ?? 0;
  }

  #payload(dice: Dice): string {
    const letter = String.fromCharCode(97 + dice.below(26));
    return `${++this.#last}:${letter.repeat(dice.below(MAX_BYTES))}`;
  }
}
