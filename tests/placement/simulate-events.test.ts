import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  clusterFile,
  DEFAULT_POLICY,
  operator,
  plan,
  simulate,
  type Broker,
  type ClusterFile,
  type Planner,
  type Resource,
  type SimAction,
  type SimEvent,
} from '../../placement/index.ts';
import { RUNS, SEED } from './support/seed.ts';

const PLANNER: Planner = { plan, ...operator };
const TIMEOUT_MS = 60_000 * RUNS;
const IDS = ['b1', 'b2', 'b3', 'b4', 'b5'] as const;

const zonePolicy = fc.constantFrom('broker' as const, 'zone' as const, 'majority' as const);

const broker = (id: string): fc.Arbitrary<Broker> =>
  fc.record({
    id: fc.constant(id),
    zone: fc.constantFrom(null, 'x', 'y', 'z'),
    lifecycle: fc.constant('live' as const),
    drain: fc.constant(false),
    maxShards: fc.oneof({ weight: 4, arbitrary: fc.constant(null) }, fc.integer({ min: 3, max: 12 })),
    weight: fc.oneof({ weight: 3, arbitrary: fc.constant(1) }, fc.integer({ min: 1, max: 3 })),
    incarnation: fc.constant(1),
    registeredAtMs: fc.constant(0),
    downSinceMs: fc.constant(null),
  });

const resource = (name: string): fc.Arbitrary<Resource> =>
  fc.record({
    kind: fc.constantFrom('stream' as const, 'cache' as const),
    name: fc.constant(name),
    shards: fc.integer({ min: 1, max: 7 }),
    replicationFactor: fc.integer({ min: 1, max: 3 }),
    durable: fc.oneof({ weight: 3, arbitrary: fc.constant(true) }, fc.constant(false)),
    zonePolicy: fc.constant(null),
    labels: fc.constant({}),
  });

const start: fc.Arbitrary<ClusterFile> = fc
  .record({
    brokers: fc.tuple(...IDS.slice(0, 4).map(broker)),
    resources: fc.tuple(resource('r'), resource('q')),
    maxConcurrentMoves: fc.integer({ min: 1, max: 3 }),
    zonePolicy,
  })
  .map(({ brokers, resources, ...policy }) =>
    clusterFile({ brokers, resources, assignments: [], policy: { ...DEFAULT_POLICY, ...policy } }),
  );

const id = fc.constantFrom(...IDS);

/** What may happen; `down` and `up` of one broker are made to alternate when the events are put together. */
const action: fc.Arbitrary<SimAction> = fc.oneof(
  fc.record({ type: fc.constant('down' as const), broker: id }),
  fc.record({ type: fc.constant('down' as const), broker: id }),
  fc.record({ type: fc.constantFrom('drain' as const, 'undrain' as const), broker: id }),
  broker('b5').map((joining): SimAction => ({ type: 'join', broker: joining })),
  resource('new').map((created): SimAction => ({ type: 'create', resource: created })),
  fc.record({
    type: fc.constant('setBroker' as const),
    id,
    patch: fc.oneof(
      fc.record({ weight: fc.integer({ min: 1, max: 3 }) }),
      fc.record({ maxShards: fc.option(fc.integer({ min: 2, max: 15 })) }),
    ),
  }),
  zonePolicy.map((policy): SimAction => ({ type: 'setPolicy', patch: { zonePolicy: policy } })),
);

const events = fc
  .array(fc.record({ action, afterMs: fc.option(fc.nat(400_000), { freq: 3 }) }), { maxLength: 7 })
  .map((drawn): SimEvent[] => {
    const there = new Set<string>(IDS.slice(0, 4));
    const down = new Set<string>();
    const created = new Set<string>();
    const possible: SimEvent[] = [];
    for (const { action: wanted, afterMs } of drawn) {
      let chosen = wanted;
      if (wanted.type === 'join') {
        if (there.has(wanted.broker.id)) continue;
        there.add(wanted.broker.id);
      } else if (wanted.type === 'create') {
        if (created.size > 0) continue;
        created.add(wanted.resource.name);
      } else if (wanted.type === 'down') {
        if (!there.has(wanted.broker)) continue;
        if (down.delete(wanted.broker)) chosen = { type: 'up', broker: wanted.broker };
        else down.add(wanted.broker);
      } else if ('broker' in wanted && typeof wanted.broker === 'string' && !there.has(wanted.broker))
        continue;
      else if (wanted.type === 'setBroker' && !there.has(wanted.id)) continue;
      possible.push({ action: chosen, afterMs, source: chosen });
    }
    return possible;
  });

describe('whatever happens to a cluster', () => {
  const title =
    'every step is one that members would write, every phase ends, and the row order does not matter';
  const clusters = 60 * RUNS;
  it(`${title} (${clusters} clusters, seed ${SEED})`, { timeout: TIMEOUT_MS }, () => {
    fc.assert(
      fc.property(start, events, (file, happening) => {
        const options = { events: happening, maxPasses: 2_000 };
        const result = simulate(file, options, PLANNER);
        expect(result.settled).toBe(true);
        for (const [i, { cluster }] of result.phases.entries()) {
          const before = new Map(result.phases[i - 1]?.cluster.assignments.map((row) => [row.shard, row]));
          for (const row of cluster.assignments) {
            expect(row.generation).toBeGreaterThanOrEqual(before.get(row.shard)?.generation ?? 1);
            expect(new Set(row.replicas).size).toBe(row.replicas.length);
          }
        }
        const last = result.phases.at(-1)?.cluster;
        if (last === undefined) throw new Error('no phase');
        for (const { move } of last.assignments) expect(move).toBeNull();
        const reversed = {
          ...file,
          brokers: [...file.brokers].reverse(),
          resources: [...file.resources].reverse(),
        };
        expect(simulate(reversed, options, PLANNER)).toEqual(result);
      }),
      { seed: SEED, numRuns: clusters },
    );
  });
});
