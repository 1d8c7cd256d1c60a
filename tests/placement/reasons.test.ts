import { describe, expect, it } from 'vitest';
import { plan, type ClusterFile, type Plan } from '../../placement/index.ts';
import { assignment, broker, brokers, clusterOf, NO_REPORTS, resource, snapshot } from './support/rows.ts';

/** What people are told: that each names what decided, with its numbers (the codes are in codes.test.ts). */

function planned(file: ClusterFile): Plan {
  const { version: _version, ...rows } = file;
  return plan(snapshot(rows), NO_REPORTS);
}

describe('a drain that cannot go on', () => {
  const draining = broker('d', { lifecycle: 'draining', drain: true });
  const five = Array.from({ length: 5 }, (_, i) => assignment(`stream:x/${i}`, ['d']));

  it('for want of room says so, who is full, and how many shards wait for room', () => {
    const { waiting } = planned(
      clusterOf({
        brokers: [draining, broker('b1', { maxShards: 0 }), broker('b2', { maxShards: 0 })],
        resources: [resource('x', 5)],
        assignments: five,
      }),
    );
    expect(waiting).toHaveLength(5);
    expect(waiting[4]).toEqual({
      shard: 'stream:x/4',
      reason: 'no_room',
      detail:
        'd is draining and leads it; no live broker holds a copy; outside its set at maxShards: b1 0 of 0, b2 0 of 0; ' +
        'room for 1 copy is missing; 5 shards wait for room in all',
    });
  });

  it('for want of room for a follower counts that too', () => {
    const { waiting } = planned(
      clusterOf({
        brokers: [draining, broker('b1'), broker('b2', { maxShards: 0 })],
        resources: [resource('x', 2, { replicationFactor: 2 })],
        assignments: [0, 1].map((i) => assignment(`stream:x/${i}`, ['b1', 'd'])),
      }),
    );
    expect(waiting.map(({ reason }) => reason)).toEqual(['no_room', 'no_room']);
    expect(waiting[0]?.detail).toBe(
      'every live broker outside the set is full: b2 at maxShards 0; room for 1 copy is missing; 2 shards wait for room in all',
    );
  });

  it('but for a copy out of sync lacks more than room', () => {
    const { waiting } = planned(
      clusterOf({
        brokers: [draining, broker('b1'), broker('b2', { maxShards: 0 })],
        resources: [resource('x', 1, { replicationFactor: 2 })],
        assignments: [assignment('stream:x/0', ['d', 'b1'], { inSync: ['d'] })],
      }),
    );
    expect(waiting).toMatchObject([{ reason: 'no_destination' }]);
    expect(waiting[0]?.detail).toContain('live but out of sync: b1; outside its set at maxShards: b2 0 of 0');
  });
});

describe('a decision names what decided', () => {
  it('of the copy too many: the rule that sets it apart, and which would go next', () => {
    const { steps } = planned(
      clusterOf({
        brokers: brokers('b1', 'b2', 'b3'),
        resources: [resource('x', 3, { replicationFactor: 2 })],
        assignments: [
          assignment('stream:x/0', ['b1', 'b2', 'b3'], { inSync: ['b1', 'b2'] }),
          assignment('stream:x/1', ['b2', 'b1']),
          assignment('stream:x/2', ['b3', 'b1']),
        ],
      }),
    );
    expect(steps[0]?.why).toEqual({
      rule: 'which_copy_goes',
      detail:
        '3 copies for a replication factor of 2; b3 (live) goes: it is out of sync, b2 live and in sync',
      rejected: [],
      runnerUp: 'b2',
    });
  });

  it('of a copy too many among equals: how far each is above its part', () => {
    const { steps } = planned(
      clusterOf({
        brokers: brokers('b1', 'b2', 'b3'),
        resources: [resource('x', 3)],
        assignments: [
          assignment('stream:x/0', ['b1', 'b2', 'b3']),
          assignment('stream:x/1', ['b2']),
          assignment('stream:x/2', ['b3', 'b2']),
        ],
      }),
    );
    expect(steps[0]?.why.detail).toBe(
      '3 copies for a replication factor of 1; b2 (live) goes: ' +
        'it is further above its part of stream:x: 3 (part 1 to 1) against 2 (part 1 to 1)',
    );
  });

  it('of a zone over its limit: both zones, what they hold and may, and who cannot take the copy', () => {
    const rack = (id: string, zone: string) => broker(id, { zone });
    const { steps } = planned(
      clusterOf({
        brokers: [rack('a1', 'a'), rack('a2', 'a'), rack('a3', 'a'), rack('b1', 'b')],
        resources: [resource('x', 1, { replicationFactor: 2, zonePolicy: 'zone' })],
        assignments: [assignment('stream:x/0', ['a1', 'a2'])],
      }),
    );
    expect(steps).toMatchObject([{ step: 'join', to: 'b1' }]);
    expect(steps[0]?.why).toEqual({
      rule: 'zone_missing',
      detail:
        'zone a holds 2 copies of it, its limit is 1; zone b holds none; the shard spans 2 zones instead of 1',
      rejected: [
        { broker: 'a1', by: 'holds a copy' },
        { broker: 'a2', by: 'holds a copy' },
        { broker: 'a3', by: 'zone a is at its limit of 1' },
      ],
      runnerUp: null,
    });
  });

  it('of a leadership: what the brokers it does not go to lead', () => {
    const { steps } = planned(
      clusterOf({
        brokers: brokers('b1', 'b2', 'b3'),
        resources: [resource('x', 6, { replicationFactor: 2 })],
        assignments: Array.from({ length: 6 }, (_, i) => assignment(`stream:x/${i}`, ['b1', 'b2'])),
      }),
    );
    expect(steps[0]).toMatchObject({ step: 'stage', from: 'b1', to: 'b2' });
    expect(steps[0]?.why.rejected).toEqual([{ broker: 'b3', by: 'leads 0, 0 in all; a copy must be made' }]);
    expect(steps[0]?.why.runnerUp).toBe('b3');
  });
});
