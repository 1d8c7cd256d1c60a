import { describe, expect, it } from 'vitest';
import { operator, plan, simulate, type Broker, type SimStep } from '../../placement/index.ts';
import { assignment, broker, clusterOf, resource } from './support/rows.ts';

const draining = { lifecycle: 'draining', drain: true } as const;

interface Case {
  readonly title: string;
  readonly brokers: readonly Broker[];
  /** Name (of a stream, where it says nothing else), shards, replication factor, and whether it has no log. */
  readonly resources: readonly (readonly [string, number, number, 'ephemeral'?])[];
  /** Shard, then its set, the leader first. */
  readonly sets: readonly (readonly [string, readonly string[]])[];
  /** Slots for copies and for hand-overs; one of each where none are named. */
  readonly slots?: number;
  /** Copies in sync, by shard; all where not named. */
  readonly inSync?: Readonly<Record<string, readonly string[]>>;
}

const CASES: readonly Case[] = [
  {
    title: 'a drained leadership waits until followers have made way on its target',
    brokers: [broker('b0', { weight: 4, maxShards: 2 }), broker('b1', draining), broker('b4'), broker('b5')],
    resources: [
      ['r0', 2, 2],
      ['r1', 2, 1],
    ],
    sets: [
      ['r0/0', ['b0', 'b4']],
      ['r0/1', ['b5', 'b0']],
      ['r1/0', ['b1']],
      ['r1/1', ['b1']],
    ],
  },
  {
    title: 'no target is a broker that new shards have just filled',
    brokers: [
      broker('b3', { weight: 4, maxShards: 3 }),
      broker('b4', draining),
      broker('b5'),
      broker('b9', { weight: 2 }),
    ],
    resources: [
      ['r0', 3, 3],
      ['r1', 1, 1],
      ['r4', 1, 2],
    ],
    sets: [
      ['r1/0', ['b5']],
      ['r4/0', ['b4', 'b5']],
    ],
  },
  {
    title: 'a remainder that a full broker cannot take is not counted on it',
    brokers: [
      broker('b3'),
      broker('b4', { weight: 2 }),
      broker('b5', { weight: 4 }),
      broker('b6', { weight: 4 }),
      broker('b7', { weight: 4 }),
      broker('b8'),
      broker('b9', { weight: 4, maxShards: 1 }),
      broker('b11'),
    ],
    resources: [
      ['r2', 5, 1],
      ['r3', 2, 4],
    ],
    sets: [
      ['r3/0', ['b7', 'b8', 'b6', 'b9']],
      ['r3/1', ['b7', 'b9', 'b6', 'b8']],
    ],
  },
  {
    title: 'a copy out of sync keeps no leadership without a log from its broker',
    brokers: [
      broker('b0', { weight: 3 }),
      broker('b1'),
      broker('b2', draining),
      broker('b3'),
      broker('b4', { weight: 3 }),
    ],
    resources: [['r1', 3, 4, 'ephemeral']],
    sets: [
      ['r1/0', ['b2', 'b3', 'b4', 'b0']],
      ['r1/1', ['b2', 'b3', 'b4', 'b0']],
      ['r1/2', ['b2', 'b3', 'b0', 'b4']],
    ],
    inSync: { 'r1/0': ['b2'] },
  },
  {
    slots: 2,
    title: 'a leadership without a log goes where it has a copy, which takes no room',
    brokers: [broker('b6', { weight: 4, maxShards: 2 }), broker('b8'), broker('b9', draining)],
    resources: [['r1', 3, 2, 'ephemeral']],
    sets: [
      ['r1/0', ['b9', 'b8']],
      ['r1/1', ['b9', 'b6']],
      ['r1/2', ['b9', 'b8']],
    ],
  },
  {
    title: 'a drained leadership waits for a target that levelling makes room on',
    brokers: [broker('b0'), broker('b3', draining), broker('b4', { weight: 4, maxShards: 3 }), broker('b5')],
    resources: [
      ['r1', 2, 1],
      ['r3', 3, 2],
    ],
    sets: [
      ['r1/0', ['b3']],
      ['r1/1', ['b3']],
      ['r3/0', ['b3', 'b4']],
      ['r3/1', ['b4', 'b3']],
      ['r3/2', ['b4', 'b0']],
    ],
    slots: 2,
  },
  {
    title: 'a drained leadership waits for the copies of shards that still move themselves',
    brokers: [
      broker('b1', { weight: 4, maxShards: 3 }),
      broker('b2'),
      broker('b5', draining),
      broker('b7', { weight: 3 }),
    ],
    resources: [
      ['r0', 4, 2, 'ephemeral'],
      ['cache:r2', 3, 1],
    ],
    sets: [
      ['r0/0', ['b1', 'b7']],
      ['r0/1', ['b5', 'b2']],
      ['r0/2', ['b7', 'b5']],
      ['r0/3', ['b5', 'b7']],
      ['cache:r2/0', ['b5']],
      ['cache:r2/1', ['b5']],
      ['cache:r2/2', ['b5']],
    ],
  },
  {
    title: 'a leadership waits where a new shard, once there is room, would send it on',
    brokers: [
      broker('b0', { weight: 4, maxShards: 7, zone: 'z1' }),
      broker('b1', { zone: 'z1' }),
      broker('b2', draining),
      broker('b3', { weight: 3 }),
    ],
    resources: [
      ['r0', 5, 3],
      ['r1', 2, 2],
      ['r2', 1, 2],
    ],
    sets: [
      ['r1/0', ['b0', 'b1']],
      ['r1/1', ['b0', 'b1']],
      ['r2/0', ['b2', 'b0']],
    ],
  },
  {
    title: 'a drained leadership waits for a restore after which there is room',
    brokers: [
      broker('b0', { weight: 3, maxShards: 3 }),
      broker('b1'),
      broker('b2', { lifecycle: 'down', downSinceMs: 0 }),
      broker('b3', { weight: 4 }),
      broker('b8'),
      broker('b9', draining),
    ],
    resources: [
      ['r1', 5, 3, 'ephemeral'],
      ['r3', 2, 2],
    ],
    sets: [
      ['r1/0', ['b8', 'b9', 'b3']],
      ['r1/1', ['b9', 'b8', 'b3']],
      ['r1/2', ['b3', 'b0', 'b2']],
      ['r1/3', ['b2', 'b3', 'b1']],
      ['r1/4', ['b2', 'b3', 'b0']],
      ['r3/0', ['b3', 'b9']],
      ['r3/1', ['b2', 'b1']],
    ],
  },
];

/** Leaderships that moved before, and moves that were reversed. */
function faults(steps: readonly SimStep[]): string[] {
  const led = new Set<string>();
  const went = new Set<string>();
  const found: string[] = [];
  for (const { step, shard, role, from, to } of steps) {
    if (step !== 'cutOver' && step !== 'seat') continue;
    if (role === 'leader' && led.has(shard)) found.push(`${shard} to ${to} again`);
    if (role === 'leader') led.add(shard);
    if (went.has(`${shard} ${role} ${to}>${from}`)) found.push(`${shard} back to ${to}`);
    went.add(`${shard} ${role} ${from}>${to}`);
  }
  return found;
}

describe('where caps or copies stand in the way, no leadership moves twice and no copy goes back', () => {
  it.each(CASES)('$title', ({ brokers, resources, sets, inSync, slots = 1 }) => {
    const file = clusterOf({
      brokers: [...brokers],
      resources: resources.map(([name, shards, replicationFactor, ephemeral]) =>
        resource(name.replace('cache:', ''), shards, {
          kind: name.startsWith('cache:') ? 'cache' : 'stream',
          replicationFactor,
          durable: ephemeral === undefined,
        }),
      ),
      assignments: sets.map(([shard, set]) => ({
        ...assignment(shard.startsWith('cache:') ? shard : `stream:${shard}`, [...set]),
        inSync: [...(inSync?.[shard] ?? set)],
      })),
      policy: { maxConcurrentMoves: slots, maxConcurrentHandovers: slots },
    });
    const phase = simulate(file, { events: [], maxPasses: 1_000 }, { plan, ...operator }).phases[0];
    expect(phase?.settled).toBe(true);
    expect(faults(phase?.steps ?? [])).toEqual([]);
  });
});
