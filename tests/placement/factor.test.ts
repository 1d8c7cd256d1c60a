import { describe, expect, it } from 'vitest';
import {
  operator,
  plan,
  simulate,
  type ClusterFile,
  type Phase,
  type ZonePolicy,
} from '../../placement/index.ts';
import { assignment, broker, brokers, clusterOf, resource } from './support/rows.ts';

/** The phase after the replication factor of `stream:x` was set. */
function setFactor(file: ClusterFile, replicationFactor: number): Phase {
  const action = { type: 'setResource', resource: 'stream:x', patch: { replicationFactor } } as const;
  const events = [{ action, afterMs: null, source: action }];
  const { phases } = simulate(file, { events, maxPasses: 2_000 }, { plan, ...operator });
  const phase = phases[1];
  if (phase?.settled !== true) throw new Error('not settled');
  return phase;
}

function racks(letters: string, zonePolicy: ZonePolicy): ClusterFile {
  return clusterOf({
    brokers: letters.split('').map((zone, i) => broker(`b${i}`, { zone })),
    resources: [resource('x', 60, { replicationFactor: 2 })],
    policy: { zonePolicy, maxConcurrentMoves: 4 },
  });
}

describe('raising a replication factor', () => {
  // Where every new copy went to the zone that was missing, the lone broker of one held all shards and kept them.
  const level: ZonePolicy[] = ['broker', 'majority'];
  it.each(level)('under %s deals the new copies level, and moves none afterwards', (policy) => {
    const phase = setFactor(racks('AAAAAAAAAABBBBBBBBBBC', policy), 4);
    expect(phase.levels.maxCopySpreadPerResource).toBeLessThanOrEqual(1);
    expect(phase.moves.filter(({ reason }) => reason !== 'restore')).toEqual([]);
  });

  it('under zone spans every zone all the same', () => {
    const phase = setFactor(racks('AABBC', 'zone'), 4);
    expect(phase.levels.minZonesPerShard).toBe(3);
    expect(phase.unspread).toEqual([]);
  });
});

describe('lowering a replication factor', () => {
  // `y` is uneven once and for all, and evened before the last copy of `x` had gone its totals were evened anew.
  it('by more than one drops all surplus before any copy is levelled', () => {
    const ids = ['b1', 'b2', 'b3'];
    const file = clusterOf({
      brokers: brokers(...ids),
      resources: [resource('x', 6, { replicationFactor: 3 }), resource('y', 6, { replicationFactor: 2 })],
      assignments: [
        ...Array.from({ length: 6 }, (_, i) =>
          assignment(`stream:x/${i}`, [...ids.slice(i % 3), ...ids.slice(0, i % 3)]),
        ),
        ...Array.from({ length: 6 }, (_, i) => {
          const leader = ids[i % 3] ?? '';
          return assignment(`stream:y/${i}`, [leader, leader === 'b1' ? 'b2' : 'b1']);
        }),
      ],
      policy: { paused: true },
    });
    const paused = setFactor(file, 1).cluster;
    const { phases } = simulate(
      { ...paused, policy: { ...paused.policy, paused: false } },
      { events: [], maxPasses: 200 },
      { plan, ...operator },
    );
    const steps = phases[0]?.steps ?? [];
    const lastDrop = Math.max(...steps.filter(({ step }) => step === 'drop').map(({ pass }) => pass));
    const firstJoin = Math.min(...steps.filter(({ step }) => step === 'join').map(({ pass }) => pass));
    expect(lastDrop).toBe(2);
    expect(firstJoin).toBeGreaterThanOrEqual(lastDrop);
  });
});
