import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  operator,
  plan,
  planAndFollow,
  simulate,
  type Assignment,
  type ClusterFile,
  type Snapshot,
} from '../../placement/index.ts';
import { dice, randomCluster, type Shape } from './support/random-cluster.ts';
import { assignment, broker, NO_REPORTS, resource, snapshot } from './support/rows.ts';
import { RUNS, SEED } from './support/seed.ts';

const CLUSTERS = 80;
const CHANGES = 40;
const TIMEOUT_MS = 120_000;

const SHAPE: Shape = {
  ...{ brokers: 9, resources: 5, shards: 14, weights: true, zones: true, skewed: true, fresh: true },
  ...{ outOfSync: true, ephemeral: true },
};

type Change = (rows: Assignment[], roll: (below: number) => number) => void;

function change(rows: Assignment[], at: number, to: (row: Assignment) => Partial<Assignment>): void {
  const row = rows[at];
  if (row !== undefined) rows[at] = { ...row, ...to(row), generation: row.generation + 1 };
}

/** What may befall the rows of a settled cluster; most of it is put right at once, or leaves it as level as it was. */
const CHANGES_OF: Readonly<Record<string, Change>> = {
  report: (rows, roll) =>
    change(rows, roll(rows.length), ({ replicas, leader }) => ({
      inSync: replicas.filter((id) => id === leader || roll(3) > 0),
    })),
  leaderBehind: (rows, roll) =>
    change(rows, roll(rows.length), ({ replicas, leader }) => ({
      inSync: replicas.filter((id) => id !== leader),
    })),
  caughtUp: (rows) => rows.forEach((_, at) => change(rows, at, ({ replicas }) => ({ inSync: replicas }))),
  state: (rows, roll) =>
    change(rows, roll(rows.length), () => ({ state: roll(2) > 0 ? 'assigning' : 'active' })),
  failed: (rows, roll) => change(rows, roll(rows.length), () => ({ failedMoves: roll(3) })),
  handOver: (rows, roll) =>
    change(rows, roll(rows.length), ({ inSync, leader }) => ({
      leader: inSync[roll(inSync.length)] ?? leader,
    })),
  /** Two shards of a resource hand over to each other. */
  swap: (rows, roll) => {
    const [a, b] = [roll(rows.length), roll(rows.length)];
    const [x, y] = [rows[a], rows[b]];
    if (x === undefined || y === undefined || a === b) return;
    const same = x.shard.split('/')[0] === y.shard.split('/')[0];
    if (!same || !x.inSync.includes(y.leader) || !y.inSync.includes(x.leader)) return;
    change(rows, a, () => ({ leader: y.leader }));
    change(rows, b, () => ({ leader: x.leader }));
  },
  /** Two shards change sets, and leaders with them: nobody holds more or less than before. */
  exchange: (rows, roll) => {
    const [a, b] = [roll(rows.length), roll(rows.length)];
    const [x, y] = [rows[a], rows[b]];
    if (x === undefined || y === undefined || x.shard.split('/')[0] !== y.shard.split('/')[0]) return;
    change(rows, a, () => ({ leader: y.leader, replicas: y.replicas, inSync: y.inSync }));
    change(rows, b, () => ({ leader: x.leader, replicas: x.replicas, inSync: x.inSync }));
  },
  drop: (rows, roll) =>
    change(rows, roll(rows.length), ({ replicas, inSync, leader }) => {
      const gone = replicas.find((id) => id !== leader);
      return { replicas: replicas.filter((id) => id !== gone), inSync: inSync.filter((id) => id !== gone) };
    }),
  handOverBegins: (rows, roll) =>
    change(rows, roll(rows.length), ({ inSync, leader, move }) => {
      const to = inSync.find((id) => id !== leader);
      if (to === undefined) return { move };
      const times = { startedAtMs: 1, progressAtMs: 1 };
      const rest = { role: 'leader', reason: 'balance', step: 'staged', copied: false, drops: null } as const;
      return { move: { ...rest, from: leader, to, ...times } };
    }),
};

function atRest(file: ClusterFile): Snapshot {
  const end = simulate(file, { events: [], maxPasses: 4_000 }, { plan, ...operator }).phases[0]?.cluster;
  if (end === undefined) throw new Error('no phase');
  return snapshot(end);
}

/** Follows one cluster through changes; answers how often it was seen to want nothing, and how often not. */
function follow(start: Snapshot, seed: number): { still: number; ended: number } {
  const roll = dice(seed);
  const counts = { still: 0, ended: 0 };
  const names = Object.keys(CHANGES_OF);
  const nothing = { ...plan(start, NO_REPORTS), levels: null };
  let now = start;
  let { quiet } = planAndFollow(now, NO_REPORTS);
  for (let i = 0; i < CHANGES; i++) {
    const before = now.assignments;
    const rows = [...before];
    CHANGES_OF[names[roll(names.length)] ?? '']?.(rows, roll);
    now = { ...now, nowMs: now.nowMs + 1_000, assignments: rows };
    const fresh = planAndFollow(now, NO_REPORTS);
    for (const [at, row] of rows.entries()) if (row !== before[at]) quiet?.write(row);
    const still = quiet?.wantsNothing() ?? false;
    // The two ways to find out agree: from what changed, and from everything.
    if (quiet !== null) expect(still).toBe(fresh.quiet !== null);
    if (still) {
      counts.still++;
      expect({ ...fresh.plan, levels: null }).toEqual(nothing);
      expect(fresh.plan.steps).toEqual([]);
      continue;
    }
    counts.ended++;
    // What ended it is put right, as a pass and a broker would.
    now = { ...now, assignments: before };
    ({ quiet } = planAndFollow(now, NO_REPORTS));
  }
  return counts;
}

describe('a cluster that wants nothing, followed row by row', () => {
  const holds = (name: string, shape: Shape, often: number): void => {
    const title = `${name}: wants what a pass from scratch does (${CLUSTERS * RUNS} clusters, seed ${SEED})`;
    it(title, { timeout: TIMEOUT_MS * RUNS }, () => {
      let still = 0;
      let ended = 0;
      fc.assert(
        fc.property(randomCluster(shape), fc.nat(), (file, seed) => {
          const start = atRest(file);
          if (start.assignments.length === 0 || planAndFollow(start, NO_REPORTS).quiet === null) return;
          const counts = follow(start, seed);
          still += counts.still;
          ended += counts.ended;
        }),
        { seed: SEED, numRuns: CLUSTERS * RUNS },
      );
      // Both answers are given often, or the property says little.
      expect(still).toBeGreaterThan(often * CLUSTERS);
      expect(ended).toBeGreaterThan(often * CLUSTERS);
    });
  };
  holds('zones and weights', SHAPE, 5);
  // Where caps bind nothing is followed.
  holds('caps besides', { ...SHAPE, caps: true }, 2);
});

it.each([
  ['down', { lifecycle: 'down', downSinceMs: 1 }],
  ['draining', { lifecycle: 'draining', drain: true }],
] as const)(
  'a cluster with a copy on a broker that is %s wants another one, though nobody can take it',
  (_, gone) => {
    const rows = {
      brokers: [broker('b1'), broker('b2', gone)],
      resources: [resource('orders', 1, { replicationFactor: 2 })],
      assignments: [assignment('stream:orders/0', ['b1', 'b2'])],
    };
    const { plan: made, quiet } = planAndFollow(snapshot({ ...rows, nowMs: 1_000_000_000 }), NO_REPORTS);
    expect(made).toMatchObject({ steps: [], nextDeadlineMs: null });
    expect(quiet).toBeNull();
  },
);
