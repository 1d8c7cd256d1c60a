import type { Assignment, Broker, Plan, Reports, Resource, Snapshot } from '../placement/index.ts';

export interface Layout {
  readonly name: string;
  readonly brokers: number;
  /** Streams, and shards of each. */
  readonly streams: number;
  readonly shards: number;
  /** Caches of one shard. */
  readonly caches: number;
}

export const LAYOUTS: readonly Layout[] = [
  { name: '1,000 on 10', brokers: 10, streams: 80, shards: 12, caches: 40 },
  { name: '100,000 on 100', brokers: 100, streams: 8_000, shards: 12, caches: 4_000 },
  { name: '1,000,000 on 1,000', brokers: 1_000, streams: 10_000, shards: 100, caches: 0 },
];

export const NO_REPORTS: Reports = {
  shards: new Map(),
  leasedUntilMs: new Map(),
  unheard: new Set(),
  unconfirmed: new Map(),
};
/** Cluster time of every snapshot here: long after the settle window. */
export const NOW_MS = 1_000_000;

export function shardCount({ streams, shards, caches }: Layout): number {
  return streams * shards + caches;
}

export function brokersOf(count: number): Broker[] {
  return Array.from({ length: count }, (_, i) => ({
    id: `b${i + 1}`,
    zone: ['a', 'b', 'c'][i % 3] ?? 'a',
    lifecycle: 'live',
    drain: false,
    maxShards: null,
    weight: 1,
    incarnation: 1,
    registeredAtMs: 0,
    downSinceMs: null,
  }));
}

export function resourcesOf({ streams, shards, caches }: Layout): Resource[] {
  const resource = (kind: Resource['kind'], name: string, count: number): Resource => ({
    ...{ kind, name, shards: count, replicationFactor: 3, durable: true, zonePolicy: null, labels: {} },
  });
  return [
    ...Array.from({ length: streams }, (_, i) => resource('stream', `s${i}`, shards)),
    ...Array.from({ length: caches }, (_, i) => resource('cache', `c${i}`, 1)),
  ];
}

/** The rows that a plan of placements leaves, once every leader has opened its shard. */
export function placedBy(made: Pick<Plan, 'steps'>): Assignment[] {
  return made.steps.map(({ shard, next }) => ({
    ...{ shard, ...next, state: 'active' as const, generation: 1, epoch: 1 },
  }));
}

/** Every twentieth shard is led by the copy on the broker with the lowest number instead. */
export function skewed(rows: readonly Assignment[]): Assignment[] {
  const number = (id: string): number => Number(id.slice(1));
  return rows.map((row, i) => {
    if (i % 20 !== 0) return row;
    const [lowest = row.leader] = [...row.replicas].sort((a, b) => number(a) - number(b));
    return { ...row, leader: lowest };
  });
}

export function withBroker(snapshot: Snapshot, id: string, change: Partial<Broker>): Snapshot {
  return {
    ...snapshot,
    brokers: snapshot.brokers.map((row) => (row.id === id ? { ...row, ...change } : row)),
  };
}

/** What control writes as it declares a broker down: its copies leave `inSync`. */
export function withDead(snapshot: Snapshot, id: string): Snapshot {
  const dead = withBroker(snapshot, id, { lifecycle: 'down', downSinceMs: NOW_MS - 10_000 });
  const assignments = dead.assignments.map((row) =>
    row.inSync.includes(id) ? { ...row, inSync: row.inSync.filter((copy) => copy !== id) } : row,
  );
  return { ...dead, assignments };
}
