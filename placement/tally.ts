import { CountTable } from './count-table.ts';

/**
 * Who leads and who holds how much, kept right by the View's mutators. Moves in flight count as finished.
 * `leaders` and `copies` hold only shards that count (their leader serves, or they were placed or promoted in
 * this pass); `held` holds every copy there is on the broker now, which is what a cap bounds.
 */
export class Tally {
  readonly brokers: number;
  /** By broker: shards it leads. */
  readonly leaders: Int32Array;
  /** By broker: copies, of shards that count, once every move in flight has finished. */
  readonly copies: Int32Array;
  /** By broker: copies now, joining ones and ones about to go included. */
  readonly held: Int32Array;
  /** By resource: its shards that count. */
  readonly shards: Int32Array;
  /** Shards that count, over all resources. */
  shardsTotal = 0;
  readonly #leadersOf: CountTable;
  readonly #copiesOf: CountTable;

  constructor(resources: number, brokers: number) {
    this.brokers = brokers;
    this.leaders = new Int32Array(brokers);
    this.copies = new Int32Array(brokers);
    this.held = new Int32Array(brokers);
    this.shards = new Int32Array(resources);
    this.#leadersOf = new CountTable(resources, brokers);
    this.#copiesOf = new CountTable(resources, brokers);
  }

  leadersOf(resource: number, broker: number): number {
    return this.#leadersOf.at(resource, broker);
  }

  copiesOf(resource: number, broker: number): number {
    return this.#copiesOf.at(resource, broker);
  }

  /** By broker: leaders of one resource. A live window into the tally: read, never write. */
  leadersRow(resource: number): Int32Array {
    return this.#leadersOf.row(resource);
  }

  /** By broker: copies of one resource. A live window into the tally: read, never write. */
  copiesRow(resource: number): Int32Array {
    return this.#copiesOf.row(resource);
  }

  addLeader(resource: number, broker: number, by: 1 | -1): void {
    this.leaders[broker] = (this.leaders[broker] ?? 0) + by;
    this.#leadersOf.add(resource, broker, by);
  }

  addCopy(resource: number, broker: number, by: 1 | -1): void {
    this.copies[broker] = (this.copies[broker] ?? 0) + by;
    this.#copiesOf.add(resource, broker, by);
  }

  addHeld(broker: number, by: 1 | -1): void {
    this.held[broker] = (this.held[broker] ?? 0) + by;
  }

  addShard(resource: number, by: 1 | -1): void {
    this.shards[resource] = (this.shards[resource] ?? 0) + by;
    this.shardsTotal += by;
  }
}
