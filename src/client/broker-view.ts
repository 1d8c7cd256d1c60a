import type { BrokerPush, WatchedAssignment, WatchedBroker } from '../broker-protocol.ts';

/** What became different with one push; `all` after a snapshot. */
export type ViewUpdate =
  | { readonly kind: 'all' }
  | { readonly kind: 'some'; readonly shards: readonly string[]; readonly brokers: readonly string[] };

/** The cluster as one broker's watch has shown it so far. Never goes back to an older revision. */
export class BrokerView {
  /** Assignments that name this broker. */
  assignments: ReadonlyMap<string, WatchedAssignment> = new Map();
  brokers: ReadonlyMap<string, WatchedBroker> = new Map();
  /** Everything up to here is in it; 0 before the first snapshot. */
  revision = 0;
  readonly #broker: string;
  #gathering: { assignments: Map<string, WatchedAssignment>; brokers: Map<string, WatchedBroker> } | null =
    null;
  #shards = new Map<string, WatchedAssignment>();
  #byId = new Map<string, WatchedBroker>();

  constructor(broker: string) {
    this.#broker = broker;
  }

  /** Takes a push in; answers what changed, `null` while a snapshot or a revision is not yet whole. */
  take(push: BrokerPush): ViewUpdate | null {
    switch (push.type) {
      case 'watch.resync':
        this.#gathering = null;
        return null;
      case 'watch.progress':
        this.revision = Math.max(this.revision, push.revision);
        return null;
      case 'watch.snapshot':
        return this.#gather(push);
      case 'watch.changes':
        return this.#apply(push);
    }
  }

  /** A connection ended: what a half-received snapshot held is void. */
  interrupt(): void {
    this.#gathering = null;
  }

  #gather(push: Extract<BrokerPush, { type: 'watch.snapshot' }>): ViewUpdate | null {
    this.#gathering ??= { assignments: new Map(), brokers: new Map() };
    for (const row of push.assignments) this.#gathering.assignments.set(row.shard, row);
    for (const row of push.brokers) this.#gathering.brokers.set(row.id, row);
    if (!push.done) return null;
    this.#shards = this.#gathering.assignments;
    this.#byId = this.#gathering.brokers;
    this.#gathering = null;
    this.#publish(push.revision);
    return { kind: 'all' };
  }

  #apply(push: Extract<BrokerPush, { type: 'watch.changes' }>): ViewUpdate {
    const shards: string[] = [];
    const brokers: string[] = [];
    for (const change of push.changes) {
      switch (change.kind) {
        case 'assignment': {
          const row = change.assignment;
          if (namesBroker(row, this.#broker)) this.#shards.set(row.shard, row);
          else this.#shards.delete(row.shard);
          shards.push(row.shard);
          break;
        }
        case 'removed':
          this.#shards.delete(change.shard);
          shards.push(change.shard);
          break;
        case 'broker':
          this.#byId.set(change.broker.id, change.broker);
          brokers.push(change.broker.id);
          break;
        case 'brokerRemoved':
          this.#byId.delete(change.id);
          brokers.push(change.id);
          break;
      }
    }
    // A revision that comes in parts is whole, and may be resumed from, with its last.
    this.#publish(push.more === true ? this.revision : push.revision);
    return { kind: 'some', shards, brokers };
  }

  #publish(revision: number): void {
    this.assignments = this.#shards;
    this.brokers = this.#byId;
    this.revision = Math.max(this.revision, revision);
  }
}

function namesBroker(row: WatchedAssignment, broker: string): boolean {
  return row.replicas.includes(broker) || row.move?.to === broker;
}
