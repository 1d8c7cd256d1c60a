import type { AssignmentRow } from '../state/index.ts';
import type { RecordChecks } from './record-checks.ts';

/** A running broker as the checks see it: what it does, not what it says. */
export interface RunningBroker {
  /** For people. */
  readonly description: string;
  /** It has registered, and with the store that it now has. */
  readonly isRegistered: boolean;
  /** Shards that it would answer a client for at this instant. */
  readonly serving: readonly string[];
  /** It has everything of the shard below this on its disk. */
  endOf(shard: string): number;
}

/** What each copy of a shard holds at the end of a run, by broker. */
export type StoredCopies = ReadonlyMap<string, ReadonlyMap<string, readonly string[]>>;

/**
 * What copies of shards may never come to, seen from outside: two brokers that serve one shard at the same instant, or a
 * copy that counts as in sync and lacks on its disk what was acknowledged (contract, section 1, "in sync").
 */
export class CopyChecks {
  readonly #records: RecordChecks;
  /** By id, those that run. */
  readonly #brokers: () => ReadonlyMap<string, RunningBroker>;
  /** The newest row of each shard that any member has applied. */
  readonly #rows = new Map<string, AssignmentRow>();
  /** Brokers whose disks a fault has emptied or put back, and that have not registered since. */
  readonly #wiped = new Set<string>();

  constructor(records: RecordChecks, brokers: () => ReadonlyMap<string, RunningBroker>) {
    this.#records = records;
    this.#brokers = brokers;
  }

  /** A member has applied a row. Others may have before, and newer ones. */
  applied(row: AssignmentRow): void {
    if ((this.#rows.get(row.shard)?.generation ?? -1) >= row.generation) return;
    this.#rows.set(row.shard, row);
    const [only = ''] = row.inSync;
    const isGone = this.#wiped.has(only) && this.#brokers().get(only)?.isRegistered !== true;
    if (row.inSync.length === 1 && isGone) this.#records.lose(row.shard);
    this.#holdAcknowledged(row);
  }

  /**
   * A broker's disk is empty from now on, or what it was before. No fault does that to the only one that is in sync; but
   * another that was silent already may still be counted out before this one registers again.
   */
  wiped(broker: string): void {
    this.#wiped.add(broker);
  }

  /** A client was told that its records are kept. */
  acknowledged(shard: string): void {
    const row = this.#rows.get(shard);
    if (row !== undefined) this.#holdAcknowledged(row);
  }

  /** At any instant one broker at most serves a shard. */
  look(): void {
    const servedBy = new Map<string, string>();
    for (const [id, { serving, isRegistered }] of this.#brokers()) {
      if (isRegistered) this.#wiped.delete(id);
      for (const shard of serving) {
        const other = servedBy.get(shard);
        if (other !== undefined) throw new Error(`unsafe: ${other} and ${id} both serve ${shard}`);
        servedBy.set(shard, id);
      }
    }
  }

  /** A broker tells a client that it was served: only a broker that may serve at this very moment says so. */
  served(broker: string, type: 'append' | 'read', shard: string, mayServe: boolean): void {
    if (mayServe) return;
    throw new Error(`unsafe: ${broker} answers ${type} of ${shard} and may not serve it any more`);
  }

  /** When all has come to rest: what every in-sync copy has on disk is what was acknowledged. */
  atRest(stored: StoredCopies): void {
    for (const { shard, inSync } of this.#rows.values()) {
      for (const id of inSync) this.#records.copy(shard, stored.get(id)?.get(shard) ?? [], id);
    }
  }

  #holdAcknowledged({ shard, inSync, generation }: AssignmentRow): void {
    const least = this.#records.acknowledgedEnd(shard);
    if (least === 0) return;
    for (const id of inSync) {
      const broker = this.#brokers().get(id);
      if (broker?.isRegistered !== true) continue;
      const end = broker.endOf(shard);
      if (end < least) {
        const counted = `counts as in sync of ${shard} at generation ${generation}`;
        throw new Error(`unsafe: ${id} ${counted} and holds ${end} records of ${least} acknowledged`);
      }
    }
  }
}
