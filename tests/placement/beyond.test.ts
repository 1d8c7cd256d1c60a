import { describe, expect, it } from 'vitest';
import { operator, plan, planFile, simulate, type ClusterFile, type Phase } from '../../placement/index.ts';
import { levelBeyondTargets } from '../../placement/level-beyond.ts';
import { Pass } from '../../placement/pass.ts';
import { ShareBook } from '../../placement/share-book.ts';
import { leaderTargets } from '../../placement/targets.ts';
import { View } from '../../placement/view.ts';
import { judgeCalm, judgeHandOvers } from './support/judge.ts';
import { assignment, broker, clusterOf, NO_REPORTS, resource, snapshot } from './support/rows.ts';

function run(file: ClusterFile): Phase {
  const phase = simulate(file, { events: [], maxPasses: 500 }, { plan, ...operator }).phases[0];
  if (phase === undefined) throw new Error('no phase');
  judgeCalm(file, phase);
  judgeHandOvers(phase);
  expect(planFile(phase.cluster, { plan }).steps).toEqual([]);
  return phase;
}

describe('a broker whose cap is below its floors of all resources together', () => {
  it('leads as many as it may hold: what is left of its room is given out too', () => {
    const names = ['r0', 'r1', 'r2', 'r3', 'r4'];
    const { levels, moves } = run(
      clusterOf({
        brokers: [broker('b1'), broker('b2'), broker('b3', { maxShards: 4 })],
        resources: names.map((name) => resource(name, 3)),
      }),
    );
    expect(levels.leadersTotal['b3']).toBe(4);
    expect(moves).toEqual([]);
    expect(levels.leaderSpreadTotal).toBeLessThanOrEqual(2);
    expect(levels.maxLeaderSpreadPerResource).toBeLessThanOrEqual(2);
  });

  it('is to lead those of which it leads the most today', () => {
    const names = ['r0', 'r1', 'r2'];
    const view = new View(
      snapshot({
        brokers: [broker('b1'), broker('b2', { maxShards: 2 })],
        resources: names.map((name) => resource(name, 2)),
        assignments: names.flatMap((name, i) => [
          assignment(`stream:${name}/0`, ['b1']),
          assignment(`stream:${name}/1`, [i === 0 ? 'b1' : 'b2']),
        ]),
      }),
      NO_REPORTS,
    );
    const targets = leaderTargets(view, new ShareBook(view), new Int32Array(names.length));
    expect(names.map((_, r) => targets.of(r, 1))).toEqual([0, 1, 1]);
  });
});

describe('where targets are out of reach, and nothing else moves', () => {
  it('a resource is levelled by a hand-over beyond them', () => {
    const { moves, levels } = run(
      clusterOf({
        brokers: [
          broker('b0', { maxShards: 2 }),
          broker('b1', { maxShards: 2 }),
          broker('b2', { maxShards: 1 }),
        ],
        resources: [resource('r0', 2), resource('r1', 1, { replicationFactor: 2 })],
        assignments: [
          assignment('stream:r0/0', ['b0']),
          assignment('stream:r0/1', ['b0']),
          assignment('stream:r1/0', ['b1', 'b2']),
        ],
      }),
    );
    expect(levels.leaders['stream:r0']).toEqual({ b0: 1, b1: 1, b2: 0 });
    expect(moves.filter(({ role }) => role === 'leader')).toHaveLength(2);
  });

  it('the totals are levelled so too, and the plan says why', () => {
    const file = clusterOf({
      brokers: [broker('b0'), broker('b1', { maxShards: 1 })],
      resources: [resource('r0', 1, { replicationFactor: 2 }), resource('r1', 2)],
      assignments: [
        assignment('stream:r0/0', ['b0', 'b1']),
        assignment('stream:r1/0', ['b0']),
        assignment('stream:r1/1', ['b0']),
      ],
    });
    expect(planFile(file, { plan }).steps).toMatchObject([
      {
        ...{ step: 'stage', shard: 'stream:r0/0', from: 'b0', to: 'b1', reason: 'balance', copies: false },
        why: { rule: 'cluster_beyond_target', detail: expect.stringMatching(/b0 leads 1 .* 3 in all; b1/) },
      },
    ]);
    expect(run(file).levels.leadersTotal).toEqual({ b0: 2, b1: 1 });
  });

  it('very many shards with very many places to go are no trouble', () => {
    const shards = 4_000;
    const view = new View(
      snapshot({
        brokers: Array.from({ length: 50 }, (_, i) => broker(`b${i}`)),
        resources: [resource('r', shards)],
        assignments: Array.from({ length: shards }, (_, n) => assignment(`stream:r/${n}`, ['b0'])),
      }),
      NO_REPORTS,
    );
    const pass = new Pass(view);
    pass.targets = leaderTargets(view, pass.book, new Int32Array(1));
    levelBeyondTargets(pass);
    expect(pass.builder.steps.map(({ from, why }) => [from, why.rule])).toEqual([
      ['b0', 'resource_beyond_target'],
    ]);
  });

  it('nothing goes beyond while a restore is due', () => {
    const file = clusterOf({
      brokers: [
        broker('b0'),
        broker('b1', { maxShards: 1 }),
        broker('b2', { lifecycle: 'down', downSinceMs: 0 }),
      ],
      resources: [
        resource('r0', 1, { replicationFactor: 2 }),
        resource('r1', 2),
        resource('r2', 1, { replicationFactor: 2 }),
      ],
      assignments: [
        assignment('stream:r0/0', ['b0', 'b1']),
        assignment('stream:r1/0', ['b0']),
        assignment('stream:r1/1', ['b0']),
        assignment('stream:r2/0', ['b0', 'b2'], { inSync: ['b0'] }),
      ],
    });
    const made = planFile(file, { plan });
    expect(made.nextDeadlineMs).not.toBeNull();
    expect(made.steps).toEqual([]);
  });
});
