import { NO_CAP, NONE, type BrokerTable } from '../broker-table.ts';

/**
 * The live brokers, grouped by zone: what copies are shared over. Zones keep their index in the BrokerTable;
 * one without a live broker has no members. A zone of one broker is *lone*: nothing can double up in it.
 */
export class Field {
  readonly brokers: BrokerTable;
  readonly zoneCount: number;
  /** Zones with at least one live broker, rising. */
  readonly zones: Int32Array;
  /** Live brokers, grouped by zone: those of zone `z` are `members[start[z]]` up to `members[start[z + 1]]`. */
  readonly members: Int32Array;
  readonly start: Int32Array;
  /** Zones with two live brokers or more. */
  readonly shared: Int32Array;
  /** By broker: the place of its zone in `shared`; lone brokers are one more group, the last. */
  readonly groupOf: Int32Array;
  readonly groups: number;
  /** Live brokers with a cap, and by broker the place in that list (NONE: no cap). */
  readonly capped: Int32Array;
  readonly cappedIndex: Int32Array;

  constructor(brokers: BrokerTable) {
    this.brokers = brokers;
    this.zoneCount = brokers.zoneCount;
    const sizes = new Int32Array(brokers.zoneCount + 1);
    for (const b of brokers.liveList) {
      const z = brokers.zone[b] ?? 0;
      sizes[z] = (sizes[z] ?? 0) + 1;
    }
    this.start = new Int32Array(brokers.zoneCount + 1);
    const next = new Int32Array(brokers.zoneCount);
    for (let z = 0; z < brokers.zoneCount; z++) {
      next[z] = this.start[z] ?? 0;
      this.start[z + 1] = (this.start[z] ?? 0) + (sizes[z] ?? 0);
    }
    this.members = new Int32Array(brokers.liveList.length);
    for (const b of brokers.liveList) {
      const z = brokers.zone[b] ?? 0;
      this.members[next[z] ?? 0] = b;
      next[z] = (next[z] ?? 0) + 1;
    }
    const all = Array.from({ length: brokers.zoneCount }, (_, z) => z);
    this.zones = Int32Array.from(all.filter((z) => this.size(z) > 0));
    this.shared = Int32Array.from(all.filter((z) => this.size(z) > 1));
    this.groups = this.shared.length + (this.shared.length < this.zones.length ? 1 : 0);
    const groupOfZone = new Int32Array(brokers.zoneCount).fill(this.shared.length);
    this.shared.forEach((z, g) => (groupOfZone[z] = g));
    this.groupOf = brokers.zone.map((z) => groupOfZone[z] ?? 0);
    this.capped = Int32Array.from(brokers.liveList.filter((b) => brokers.cap[b] !== NO_CAP));
    this.cappedIndex = new Int32Array(brokers.count).fill(NONE);
    this.capped.forEach((b, i) => (this.cappedIndex[b] = i));
  }

  /** How many live brokers a zone has. */
  size(z: number): number {
    return (this.start[z + 1] ?? 0) - (this.start[z] ?? 0);
  }

  weight(z: number): number {
    let weight = 0;
    for (let i = this.start[z] ?? 0; i < (this.start[z + 1] ?? 0); i++) {
      weight += this.brokers.weight[this.members[i] ?? 0] ?? 0;
    }
    return weight;
  }
}
