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
  /** By resource: how often its shards that count have changed. */
  readonly versions: Int32Array;
  /** The same over all resources. */
  changes = 0;
  readonly #leadersOf: Int32Array;
  readonly #copiesOf: Int32Array;

  constructor(resources: number, brokers: number) {
    this.brokers = brokers;
    this.leaders = new Int32Array(brokers);
    this.copies = new Int32Array(brokers);
    this.held = new Int32Array(brokers);
    this.shards = new Int32Array(resources);
    this.versions = new Int32Array(resources);
    this.#leadersOf = new Int32Array(resources * brokers);
    this.#copiesOf = new Int32Array(resources * brokers);
  }

  leadersOf(resource: number, broker: number): number {
    return this.#leadersOf[resource * this.brokers + broker] ?? 0;
  }

  copiesOf(resource: number, broker: number): number {
    return this.#copiesOf[resource * this.brokers + broker] ?? 0;
  }

  /** By broker: leaders of one resource. A live window into the tally: read, never write. */
  leadersRow(resource: number): Int32Array {
    return this.#leadersOf.subarray(resource * this.brokers, (resource + 1) * this.brokers);
  }

  /** By broker: copies of one resource. A live window into the tally: read, never write. */
  copiesRow(resource: number): Int32Array {
    return this.#copiesOf.subarray(resource * this.brokers, (resource + 1) * this.brokers);
  }

  addLeader(resource: number, broker: number, by: 1 | -1): void {
    const at = resource * this.brokers + broker;
    this.leaders[broker] = (this.leaders[broker] ?? 0) + by;
    this.#leadersOf[at] = (this.#leadersOf[at] ?? 0) + by;
  }

  addCopy(resource: number, broker: number, by: 1 | -1): void {
    const at = resource * this.brokers + broker;
    this.copies[broker] = (this.copies[broker] ?? 0) + by;
    this.#copiesOf[at] = (this.#copiesOf[at] ?? 0) + by;
  }

  addHeld(broker: number, by: 1 | -1): void {
    this.held[broker] = (this.held[broker] ?? 0) + by;
  }

  addShard(resource: number, by: 1 | -1): void {
    this.shards[resource] = (this.shards[resource] ?? 0) + by;
    this.shardsTotal += by;
    this.noteChange(resource);
  }

  noteChange(resource: number): void {
    this.versions[resource] = (this.versions[resource] ?? 0) + 1;
    this.changes++;
  }
}
