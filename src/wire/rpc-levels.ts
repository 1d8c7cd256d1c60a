import type { Clock } from '../../raft/index.ts';
import { compareStrings, NO_CAP, shares, type Levels, type Shares } from '../../placement/index.ts';
import type { AssignmentRow, StateView } from '../state/index.ts';
import { inSlices, perRevisionInSlices } from './rpc-per-revision.ts';

/**
 * Leaders and copies as they stand. A broker has a column when it is live or still holds something;
 * spreads are taken over live brokers only, since no other is meant to hold its share.
 */
export const countLevels = perRevisionInSlices(async (state, clock): Promise<Levels> =>
  (await countAll(state, clock)).levels(clock),
);

/** The figures alone: with thousands of resources the rows of `countLevels` cost more than counting. */
export const countSpreads = perRevisionInSlices(async (state, clock): Promise<Spreads> =>
  (await countAll(state, clock)).spreads(clock),
);

const countAll = perRevisionInSlices(async (state, clock): Promise<LevelCount> => {
  const count = new LevelCount(state);
  // Rows are immutable: a list of them is the state as it is now.
  await inSlices(state.assignments.list(), clock, (row) => count.add(row));
  return count;
});

/** Brokers that the records of one slice name: two or three milliseconds. */
const NAMES_PER_SLICE = 5_000;
/** Resources of one slice where each one's brokers are compared. */
const SPREADS_PER_SLICE = 500;

export interface Spreads extends Omit<Levels, 'leaders' | 'leadersTotal' | 'copiesTotal'> {
  /** Resources of which some broker leads more or less than its share by weight and cap. */
  readonly resourcesOutOfLevel: number;
}

/** Counts by broker number: this walks every copy of the cluster, and objects with keys are ten times slower. */
class LevelCount {
  readonly #ids: readonly string[];
  readonly #numbers: ReadonlyMap<string, number>;
  /** The zone of each broker, numbered; one without a zone is a zone of its own. */
  readonly #zones: readonly number[];
  readonly #live: readonly number[];
  /** Those that are live, and those that drain. */
  readonly #serving: readonly number[];
  /** By broker: what its share of a resource follows from. */
  readonly #field: Parameters<typeof shares>[1];
  readonly #shares = new Map<number, Shares>();
  /** Where a resource's row begins in the two tables; the totals are their last row. */
  readonly #rowOf = new Map<string, number>();
  readonly #totals: number;
  readonly #leaders: Int32Array;
  readonly #copies: Int32Array;
  #minZones = Infinity;

  constructor(state: StateView) {
    this.#ids = [...state.brokers.keys()].sort(compareStrings);
    this.#numbers = new Map(this.#ids.map((id, number) => [id, number]));
    const zones = new Map<string, number>();
    this.#zones = this.#ids.map((id) => {
      const zone = state.brokers.get(id)?.zone ?? null;
      const name = zone === null ? `broker ${id}` : `zone ${zone}`;
      const number = zones.get(name) ?? zones.size;
      zones.set(name, number);
      return number;
    });
    this.#live = this.#ids.flatMap((id, number) =>
      state.brokers.get(id)?.lifecycle === 'live' ? [number] : [],
    );
    const brokers = this.#ids.length;
    const rows = this.#ids.map((id) => state.brokers.get(id));
    this.#serving = rows.flatMap((row, number) =>
      row?.lifecycle === 'live' || row?.lifecycle === 'draining' ? [number] : [],
    );
    this.#field = {
      live: Uint8Array.from(rows, (row) => (row?.lifecycle === 'live' && !row.drain ? 1 : 0)),
      weight: Int32Array.from(rows, (row) => row?.weight ?? 0),
      cap: Int32Array.from(rows, (row) => row?.maxShards ?? NO_CAP),
    };
    for (const key of state.resources.keys()) this.#rowOf.set(key, this.#rowOf.size * brokers);
    this.#totals = this.#rowOf.size * brokers;
    this.#leaders = new Int32Array(this.#totals + brokers);
    this.#copies = new Int32Array(this.#totals + brokers);
  }

  add({ shard, leader, replicas }: AssignmentRow): void {
    const row = this.#rowOf.get(shard.slice(0, shard.lastIndexOf('/')));
    const seen: number[] = [];
    for (const id of replicas) {
      const number = this.#numbers.get(id);
      if (number === undefined) continue;
      increment(this.#copies, this.#totals + number);
      if (row !== undefined) increment(this.#copies, row + number);
      const zone = this.#zones[number] ?? 0;
      if (!seen.includes(zone)) seen.push(zone);
      if (id !== leader) continue;
      increment(this.#leaders, this.#totals + number);
      if (row !== undefined) increment(this.#leaders, row + number);
    }
    this.#minZones = Math.min(this.#minZones, seen.length);
  }

  async levels(clock: Clock): Promise<Levels> {
    const live = new Set(this.#live);
    const shown = this.#ids.flatMap((id, number): [string, number][] =>
      live.has(number) || (this.#copies[this.#totals + number] ?? 0) > 0 ? [[id, number]] : [],
    );
    const record = (counts: Int32Array, row: number): Record<string, number> =>
      Object.fromEntries(shown.map(([id, number]) => [id, counts[row + number] ?? 0]));
    const { resourcesOutOfLevel: _figure, ...spreads } = await this.spreads(clock);
    const leaders: Record<string, Record<string, number>> = {};
    const keys = [...this.#rowOf.keys()].sort(compareStrings);
    await inSlices(
      keys,
      clock,
      (key) => (leaders[key] = record(this.#leaders, this.#rowOf.get(key) ?? 0)),
      Math.max(1, Math.floor(NAMES_PER_SLICE / Math.max(1, shown.length))),
    );
    return {
      leaders,
      leadersTotal: record(this.#leaders, this.#totals),
      copiesTotal: record(this.#copies, this.#totals),
      ...spreads,
    };
  }

  async spreads(clock: Clock): Promise<Spreads> {
    let maxLeaderSpreadPerResource = 0;
    let maxCopySpreadPerResource = 0;
    let resourcesOutOfLevel = 0;
    const look = (row: number): void => {
      if (!this.#isLevel(row)) resourcesOutOfLevel += 1;
      maxLeaderSpreadPerResource = Math.max(maxLeaderSpreadPerResource, this.#spread(this.#leaders, row));
      maxCopySpreadPerResource = Math.max(maxCopySpreadPerResource, this.#spread(this.#copies, row));
    };
    await inSlices([...this.#rowOf.values()], clock, look, SPREADS_PER_SLICE);
    return {
      maxLeaderSpreadPerResource,
      leaderSpreadTotal: this.#spread(this.#leaders, this.#totals),
      copySpreadTotal: this.#spread(this.#copies, this.#totals),
      maxCopySpreadPerResource,
      minZonesPerShard: this.#minZones === Infinity ? 0 : this.#minZones,
      resourcesOutOfLevel,
    };
  }

  /** Shards whose leader is gone are nobody's share until they have another. */
  #isLevel(row: number): boolean {
    let total = 0;
    for (const number of this.#serving) total += this.#leaders[row + number] ?? 0;
    let share = this.#shares.get(total);
    if (share === undefined) this.#shares.set(total, (share = shares(total, this.#field)));
    const { floor, ceiling } = share;
    return this.#serving.every((number) => {
      const led = this.#leaders[row + number] ?? 0;
      return led >= (floor[number] ?? 0) && led <= (ceiling[number] ?? 0);
    });
  }

  #spread(counts: Int32Array, row: number): number {
    let most = -Infinity;
    let least = Infinity;
    for (const number of this.#live) {
      const count = counts[row + number] ?? 0;
      if (count > most) most = count;
      if (count < least) least = count;
    }
    return most === -Infinity ? 0 : most - least;
  }
}

function increment(counts: Int32Array, number: number): void {
  counts[number] = (counts[number] ?? 0) + 1;
}
