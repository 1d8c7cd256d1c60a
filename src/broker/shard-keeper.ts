import type { Clock } from '../../raft/index.ts';
import type { WatchedAssignment } from '../broker-protocol.ts';
import type { BrokerView, ViewUpdate } from '../client/index.ts';
import type { Net } from '../net.ts';
import { unawaited } from '../unawaited.ts';
import { COPY_ADDRESS } from './copy-protocol.ts';
import { CopySink } from './copy-sink.ts';
import { LedShard } from './led-shard.ts';
import type { RecordStore, ShardLog } from './record-store.ts';

const SEED_RECORDS_PER_APPEND = 256;

export interface ShardKeeperOptions {
  readonly self: string;
  readonly clusterId: string;
  readonly net: Net;
  readonly clock: Clock;
  readonly records: RecordStore;
  readonly view: BrokerView;
  readonly copyRate: number;
  readonly seedRecords: number;
  /** This broker's registration; `null` while the view is older than it, and so not to be acted upon. */
  readonly incarnation: () => number | null;
  /** A shard may have something to report. */
  readonly onChange: (shard: string) => void;
  /** A shard was opened at a new epoch, or its row written anew while it waits to be confirmed. */
  readonly onOpened: (shard: string) => void;
  readonly onFailure: (error: unknown) => void;
}

/** Carries the rows of the view out: opens and closes what this broker leads, keeps its copies, drops what is gone. */
export class ShardKeeper {
  readonly led = new Map<string, LedShard>();
  readonly #options: ShardKeeperOptions;
  /** By the broker that leads. */
  readonly #sinks = new Map<string, CopySink>();
  /** Which sink keeps a shard's copy. */
  readonly #followed = new Map<string, CopySink>();
  /** Shards whose row is being carried out now; `true`: it has changed meanwhile. */
  readonly #busy = new Map<string, boolean>();
  /** Updates came that could not be acted upon: the next takes in everything. */
  #missed = false;
  #closed = false;

  constructor(options: ShardKeeperOptions) {
    this.#options = options;
  }

  update(update: ViewUpdate): void {
    const { view, records } = this.#options;
    if (this.#options.incarnation() === null) {
      this.#missed = true;
      return;
    }
    if (update.kind === 'all' || this.#missed) {
      this.#missed = false;
      for (const shard of new Set([...view.assignments.keys(), ...records.shards])) this.#carryOut(shard);
      for (const id of view.brokers.keys()) this.#brokerChanged(id);
      return;
    }
    for (const id of update.brokers) this.#brokerChanged(id);
    for (const shard of update.shards) this.#carryOut(shard);
  }

  /** This broker registered anew: what it led, it leads no more until its rows say so; others know it by its new number. */
  startOver(): void {
    for (const shard of [...this.led.keys()]) this.#stopLeading(shard);
    for (const sink of this.#sinks.values()) sink.close();
    this.#sinks.clear();
    this.#followed.clear();
    this.#missed = true;
  }

  close(): void {
    this.#closed = true;
    for (const shard of [...this.led.keys()]) this.#stopLeading(shard);
    for (const sink of this.#sinks.values()) sink.close();
    this.#sinks.clear();
  }

  #carryOut(shard: string): void {
    if (this.#busy.has(shard)) {
      this.#busy.set(shard, true);
      return;
    }
    this.#busy.set(shard, false);
    unawaited(this.#work(shard));
  }

  async #work(shard: string): Promise<void> {
    try {
      do {
        this.#busy.set(shard, false);
        await this.#apply(shard, this.#options.view.assignments.get(shard));
      } while (this.#busy.get(shard) === true && !this.#closed);
    } catch (error) {
      if (!this.#closed) this.#options.onFailure(error);
    } finally {
      this.#busy.delete(shard);
    }
  }

  async #apply(shard: string, row: WatchedAssignment | undefined): Promise<void> {
    const { self, records } = this.#options;
    const incarnation = this.#options.incarnation();
    if (this.#closed || incarnation === null) return;
    if (row === undefined) {
      this.#stopLeading(shard);
      this.#unfollow(shard);
      await records.removeShard(shard);
      return;
    }
    // The resource is gone: so is the row, in a change on its way.
    if (row.resourceRevision === null) return;
    // Its resource was deleted and created again: the log that is led or followed here is about to be thrown away.
    if (records.get(shard)?.resourceRevision !== row.resourceRevision) {
      this.#stopLeading(shard);
      this.#unfollow(shard);
    }
    const leads = row.leader === self && row.inSync.includes(self);
    const open = this.led.get(shard);
    if (open !== undefined && (!leads || open.epoch !== row.epoch)) this.#stopLeading(shard);
    if (row.leader === self) this.#unfollow(shard);
    const log = await records.openShard(shard, row.resourceRevision);
    // The row of an earlier registration gives no right to lead, though no newer row has been seen yet.
    if (this.#closed || this.#options.incarnation() !== incarnation) return;
    if (this.#options.view.assignments.get(shard) !== row) return;
    if (leads) this.#lead(row, log);
    else if (row.leader !== self) this.#follow(row, log);
  }

  #lead(row: WatchedAssignment, log: ShardLog): void {
    const { self, clock, copyRate, onChange, onOpened, onFailure } = this.#options;
    const { shard } = row;
    let led = this.led.get(shard);
    if (led === undefined) {
      led = new LedShard({ self, row, log, clock, copyRate, onChange: () => onChange(shard), onFailure });
      this.led.set(shard, led);
      if (log.end === 0) unawaited(this.#seed(led));
    } else {
      led.update(row);
    }
    if (row.state === 'assigning') onOpened(shard);
    onChange(shard);
  }

  /** Something to copy, for demonstrations: only a leader that opens an empty shard puts it there. */
  async #seed(led: LedShard): Promise<void> {
    const { seedRecords } = this.#options;
    for (let at = 0; at < seedRecords; at += SEED_RECORDS_PER_APPEND) {
      const count = Math.min(SEED_RECORDS_PER_APPEND, seedRecords - at);
      const payloads = Array.from({ length: count }, (_, i) => Buffer.from(`${led.row.shard} ${at + i}`));
      try {
        await led.append(payloads);
      } catch {
        // Handed over meanwhile: the next leader has what was acknowledged.
        return;
      }
    }
  }

  #stopLeading(shard: string): void {
    this.led.get(shard)?.close();
    this.led.delete(shard);
  }

  #follow(row: WatchedAssignment, log: ShardLog): void {
    const sink = this.#sinkTo(row.leader);
    const before = this.#followed.get(row.shard);
    if (before !== sink) this.#unfollow(row.shard);
    if (sink === null) return;
    this.#followed.set(row.shard, sink);
    sink.follow(log, row.epoch);
  }

  #unfollow(shard: string): void {
    const sink = this.#followed.get(shard);
    if (sink === undefined) return;
    this.#followed.delete(shard);
    sink.unfollow(shard);
    if (!sink.isIdle) return;
    sink.close();
    for (const [id, one] of this.#sinks) if (one === sink) this.#sinks.delete(id);
  }

  /** `null` while its address is not known. */
  #sinkTo(broker: string): CopySink | null {
    const { net, clock, clusterId, self, view } = this.#options;
    const incarnation = this.#options.incarnation();
    const address = view.brokers.get(broker)?.addresses[COPY_ADDRESS];
    if (address === undefined || incarnation === null) return null;
    const known = this.#sinks.get(broker);
    if (known?.address === address && known.incarnation === incarnation) return known;
    const sink = new CopySink({ net, clock, clusterId, self, address, incarnation });
    this.#sinks.set(broker, sink);
    return sink;
  }

  /** Another address or registration of a broker: its copies of what is led here are judged anew, ours are fetched from there. */
  #brokerChanged(id: string): void {
    const { view } = this.#options;
    const incarnation = view.brokers.get(id)?.incarnation ?? Infinity;
    for (const led of this.led.values()) led.forget(id, incarnation);
    const sink = this.#sinks.get(id);
    if (sink !== undefined && sink.address === view.brokers.get(id)?.addresses[COPY_ADDRESS]) return;
    for (const row of view.assignments.values()) if (row.leader === id) this.#carryOut(row.shard);
  }
}
