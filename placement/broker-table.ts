import { compareStrings, type Broker, type Lifecycle } from './model.ts';

/** "No broker", "no zone": every index of a pass is 0 or more. */
export const NONE = -1;
/** `cap` of a broker without `maxShards`: above every number of copies. */
export const NO_CAP = 0x7fffffff;

/** A cluster's brokers through one pass, in the order of their ids; an index is a broker. */
export class BrokerTable {
  readonly rows: readonly Broker[];
  readonly count: number;
  readonly ids: readonly string[];
  readonly weight: Int32Array;
  /** Most copies; NO_CAP where there is none. */
  readonly cap: Int32Array;
  /** Index of its zone; a broker that names none is a zone of its own. */
  readonly zone: Int32Array;
  /** The zones' names in the order of their index; a lone broker's id for its own zone. */
  readonly zoneNames: readonly string[];
  readonly zoneCount: number;
  /** May take shards: live, and nobody asked for it to be emptied. */
  readonly live: Uint8Array;
  /** Answers reads and writes: live or draining. */
  readonly serving: Uint8Array;
  /** Serves what it has and is given none. */
  readonly draining: Uint8Array;
  /** Indices of the live ones, rising. */
  readonly liveList: Int32Array;
  readonly liveWeight: number;
  readonly #index: ReadonlyMap<string, number>;

  constructor(brokers: readonly Broker[]) {
    const rows = [...brokers].sort((a, b) => compareStrings(a.id, b.id));
    const n = rows.length;
    this.rows = rows;
    this.count = n;
    this.ids = rows.map((row) => row.id);
    this.#index = new Map(this.ids.map((id, i) => [id, i]));
    if (this.#index.size !== n) throw new Error('two brokers share an id');
    this.weight = Int32Array.from(rows, (row) => row.weight);
    this.cap = Int32Array.from(rows, (row) => row.maxShards ?? NO_CAP);
    // A named zone and a lone broker's own may read the same: they are kept apart by the first letter.
    const zoneKeys = rows.map((row) => (row.zone === null ? `b${row.id}` : `z${row.zone}`));
    const sorted = [...new Set(zoneKeys)].sort(compareStrings);
    const zoneIndex = new Map(sorted.map((key, i) => [key, i]));
    this.zone = Int32Array.from(zoneKeys, (key) => zoneIndex.get(key) ?? NONE);
    this.zoneNames = sorted.map((key) => key.slice(1));
    this.zoneCount = sorted.length;
    this.live = Uint8Array.from(rows, (row) => (row.lifecycle === 'live' && !row.drain ? 1 : 0));
    this.serving = Uint8Array.from(rows, (row) =>
      row.lifecycle === 'live' || row.lifecycle === 'draining' ? 1 : 0,
    );
    this.draining = Uint8Array.from(this.serving, (serving, i) =>
      serving === 1 && this.live[i] === 0 ? 1 : 0,
    );
    const live: number[] = [];
    let weight = 0;
    for (let i = 0; i < n; i++) {
      if (this.live[i] === 0) continue;
      live.push(i);
      weight += this.weight[i] ?? 0;
    }
    this.liveList = Int32Array.from(live);
    this.liveWeight = weight;
  }

  /** The index of a broker's id. Throws for an id that the snapshot does not hold: rows never name such a one. */
  indexOf(id: string): number {
    const index = this.#index.get(id);
    if (index === undefined) throw new Error(`no broker ${id} in the snapshot`);
    return index;
  }

  /** As indexOf, NONE for an unknown id or `null`. */
  find(id: string | null): number {
    return id === null ? NONE : (this.#index.get(id) ?? NONE);
  }

  /** What it is doing, for people; a live one that is to be emptied is draining. */
  lifecycle(index: number): Lifecycle {
    const row = this.rows[index];
    if (row === undefined) throw new Error(`no broker has the index ${index}`);
    return this.draining[index] === 1 ? 'draining' : row.lifecycle;
  }

  id(index: number): string {
    const id = this.ids[index];
    if (id === undefined) throw new Error(`no broker has the index ${index}`);
    return id;
  }
}
