import { compareStrings, type Levels } from '../../placement/index.ts';
import type { AssignmentRow, StateView } from '../state/index.ts';
import { perRevision } from './rpc-per-revision.ts';

/**
 * Leaders and copies as they stand. A broker has a column when it is live or still holds something;
 * spreads are taken over live brokers only, since no other is meant to hold its share.
 */
export const countLevels = perRevision((state): Levels => countAll(state).levels());

/** The figures alone: with thousands of resources the rows of `countLevels` cost more than counting. */
export const countSpreads = perRevision((state): Spreads => countAll(state).spreads());

const countAll = perRevision((state): LevelCount => {
  const count = new LevelCount(state);
  for (const row of state.assignments.values()) count.add(row);
  return count;
});

export interface Spreads extends Omit<Levels, 'leaders' | 'leadersTotal' | 'copiesTotal'> {
  /** Resources whose leaders are two or more apart. */
  readonly resourcesOutOfLevel: number;
}

interface ResourceCount {
  readonly leaders: Int32Array;
  readonly copies: Int32Array;
}

/** Counts by broker number: this walks every copy of the cluster, and objects with keys are ten times slower. */
class LevelCount {
  readonly #ids: readonly string[];
  readonly #numbers: ReadonlyMap<string, number>;
  /** The zone of each broker, numbered; one without a zone is a zone of its own. */
  readonly #zones: readonly number[];
  readonly #live: readonly number[];
  readonly #resources: ReadonlyMap<string, ResourceCount>;
  readonly #total: ResourceCount;
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
    const keys = [...state.resources.keys()].sort(compareStrings);
    this.#resources = new Map(keys.map((key) => [key, this.#zero()]));
    this.#total = this.#zero();
  }

  add({ shard, leader, replicas }: AssignmentRow): void {
    const resource = this.#resources.get(shard.slice(0, shard.lastIndexOf('/')));
    const seen: number[] = [];
    for (const id of replicas) {
      const number = this.#numbers.get(id);
      if (number === undefined) continue;
      increment(this.#total.copies, number);
      if (resource !== undefined) increment(resource.copies, number);
      const zone = this.#zones[number] ?? 0;
      if (!seen.includes(zone)) seen.push(zone);
      if (id !== leader) continue;
      increment(this.#total.leaders, number);
      if (resource !== undefined) increment(resource.leaders, number);
    }
    this.#minZones = Math.min(this.#minZones, seen.length);
  }

  levels(): Levels {
    const resources = [...this.#resources];
    const shown = this.#ids.flatMap((id, number): [string, number][] =>
      this.#live.includes(number) || (this.#total.copies[number] ?? 0) > 0 ? [[id, number]] : [],
    );
    const record = (counts: Int32Array): Record<string, number> =>
      Object.fromEntries(shown.map(([id, number]) => [id, counts[number] ?? 0]));
    const { resourcesOutOfLevel: _figure, ...spreads } = this.spreads();
    return {
      leaders: Object.fromEntries(resources.map(([key, { leaders }]) => [key, record(leaders)])),
      leadersTotal: record(this.#total.leaders),
      copiesTotal: record(this.#total.copies),
      ...spreads,
    };
  }

  spreads(): Spreads {
    let maxLeaderSpreadPerResource = 0;
    let maxCopySpreadPerResource = 0;
    let resourcesOutOfLevel = 0;
    for (const { leaders, copies } of this.#resources.values()) {
      const spread = this.#spread(leaders);
      if (spread >= 2) resourcesOutOfLevel += 1;
      maxLeaderSpreadPerResource = Math.max(maxLeaderSpreadPerResource, spread);
      maxCopySpreadPerResource = Math.max(maxCopySpreadPerResource, this.#spread(copies));
    }
    return {
      maxLeaderSpreadPerResource,
      leaderSpreadTotal: this.#spread(this.#total.leaders),
      copySpreadTotal: this.#spread(this.#total.copies),
      maxCopySpreadPerResource,
      minZonesPerShard: this.#minZones === Infinity ? 0 : this.#minZones,
      resourcesOutOfLevel,
    };
  }

  #zero(): ResourceCount {
    return { leaders: new Int32Array(this.#ids.length), copies: new Int32Array(this.#ids.length) };
  }

  #spread(counts: Int32Array): number {
    let most = -Infinity;
    let least = Infinity;
    for (const number of this.#live) {
      const count = counts[number] ?? 0;
      if (count > most) most = count;
      if (count < least) least = count;
    }
    return most === -Infinity ? 0 : most - least;
  }
}

function increment(counts: Int32Array, number: number): void {
  counts[number] = (counts[number] ?? 0) + 1;
}
