import fc from 'fast-check';
import type { Assignment, Broker, ClusterFile, Resource, ZonePolicy } from '../../../placement/index.ts';
import { assignment, broker, clusterOf, resource } from './rows.ts';

/** What a random cluster may hold; each property asks for what it is about. */
export interface Shape {
  readonly brokers: number;
  readonly resources: number;
  readonly shards: number;
  readonly weights?: boolean;
  readonly zones?: boolean;
  readonly caps?: boolean;
  /** Draining and down brokers. */
  readonly troubles?: boolean;
  /** Copies that are not in sync. */
  readonly outOfSync?: boolean;
  /** Resources not placed yet. */
  readonly fresh?: boolean;
  readonly ephemeral?: boolean;
  /** Every set is on the same few brokers, or leads by one: how lopsided it may be. */
  readonly skewed?: boolean;
  /** Shards of which a move was given up. */
  readonly failed?: boolean;
}

/** xorshift32: choices that only shape the data, from one number that fast-check prints. */
export function dice(seed: number): (below: number) => number {
  let x = (seed ^ 0x9e3779b9) | 1;
  return (below) => {
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    return (x >>> 0) % below;
  };
}

export function randomCluster(shape: Shape): fc.Arbitrary<ClusterFile> {
  return fc
    .record({
      brokers: fc.integer({ min: 1, max: shape.brokers }),
      resources: fc.array(
        fc.record({
          shards: fc.integer({ min: 1, max: shape.shards }),
          replicationFactor: fc.integer({ min: 1, max: 4 }),
          placed: shape.fresh === true ? fc.boolean() : fc.constant(true),
          durable: shape.ephemeral === true ? fc.boolean() : fc.constant(true),
        }),
        { minLength: 1, maxLength: shape.resources },
      ),
      zones: fc.integer({ min: 0, max: shape.zones === true ? 4 : 0 }),
      policy: fc.record({
        zonePolicy: fc.constantFrom<ZonePolicy>('broker', 'zone', 'majority'),
        maxConcurrentMoves: fc.integer({ min: 1, max: 4 }),
        maxConcurrentHandovers: fc.integer({ min: 1, max: 4 }),
        maxMovesPerBroker: fc.constantFrom(null, 1, 2),
      }),
      seed: fc.nat(),
    })
    .map(({ brokers: count, resources, zones, policy, seed }) => {
      const roll = dice(seed);
      const rows = Array.from({ length: count }, (_, i) => randomBroker(shape, roll, i, zones));
      const list = resources.map((fields, i) =>
        resource(`r${i}`, fields.shards, {
          kind: i % 3 === 2 ? 'cache' : 'stream',
          replicationFactor: Math.min(fields.replicationFactor, count),
          durable: fields.durable,
        }),
      );
      const held = new Map<string, number>();
      const assignments = list.flatMap((row, i) =>
        resources[i]?.placed === true ? randomSets(shape, roll, row, rows, held) : [],
      );
      return clusterOf({ brokers: capped(shape, roll, rows, held), resources: list, assignments, policy });
    });
}

function randomBroker(shape: Shape, roll: (below: number) => number, i: number, zones: number): Broker {
  const trouble = shape.troubles === true && i > 0 ? roll(8) : 7;
  const lifecycle = trouble === 0 ? 'down' : trouble === 1 ? 'draining' : 'live';
  return broker(`b${i}`, {
    zone: zones > 0 ? `z${roll(zones)}` : null,
    weight: shape.weights === true ? 1 + roll(4) : 1,
    lifecycle,
    drain: lifecycle === 'draining',
    downSinceMs: lifecycle === 'down' ? 0 : null,
  });
}

/** Caps between what a broker holds already and some room above. */
function capped(
  shape: Shape,
  roll: (below: number) => number,
  rows: readonly Broker[],
  held: ReadonlyMap<string, number>,
): Broker[] {
  if (shape.caps !== true) return [...rows];
  return rows.map((row) => (roll(3) === 0 ? { ...row, maxShards: (held.get(row.id) ?? 0) + roll(12) } : row));
}

function randomSets(
  shape: Shape,
  roll: (below: number) => number,
  row: Resource,
  rows: readonly Broker[],
  held: Map<string, number>,
): Assignment[] {
  // A lopsided resource keeps to a few brokers, the first of which leads most of it.
  const window = shape.skewed === true ? Math.max(row.replicationFactor, 1 + roll(rows.length)) : rows.length;
  const offset = roll(rows.length);
  const pool = Array.from({ length: window }, (_, i) => rows[(offset + i) % rows.length]?.id ?? '');
  const bias = shape.skewed === true ? 1 + roll(4) : 1;
  return Array.from({ length: row.shards }, (_, number) => {
    const set = pick(roll, pool, row.replicationFactor, bias);
    for (const id of set) held.set(id, (held.get(id) ?? 0) + 1);
    const shard = `${row.kind}:${row.name}/${number}`;
    const failedMoves = shape.failed === true && roll(6) === 0 ? 1 + roll(2) : 0;
    return withSync(shape, roll, assignment(shard, set, { failedMoves }), rows);
  });
}

/** `count` different brokers; a bias above 1 favours the front of the pool. */
function pick(
  roll: (below: number) => number,
  pool: readonly string[],
  count: number,
  bias: number,
): string[] {
  const left = [...pool];
  const set: string[] = [];
  while (set.length < count && left.length > 0) {
    let at = roll(left.length);
    for (let i = 1; i < bias; i++) at = Math.min(at, roll(left.length));
    set.push(...left.splice(at, 1));
  }
  return set;
}

function withSync(
  shape: Shape,
  roll: (below: number) => number,
  row: Assignment,
  rows: readonly Broker[],
): Assignment {
  const down = rows.filter((b) => b.lifecycle === 'down').map((b) => b.id);
  const serving = row.inSync.filter((id) => !down.includes(id));
  const inSync = serving.length > 0 ? serving : row.inSync;
  const lags = shape.outOfSync === true && inSync.length > 1 && roll(6) === 0;
  return { ...row, inSync: lags ? inSync.slice(0, 1 + roll(inSync.length - 1)) : inSync };
}
