import { describe, expect, it } from 'vitest';
import { parseEvents } from '../../../src/cluster-file/index.ts';
import { EvenkeelError } from '../../../src/errors.ts';

const parse = (events: unknown) => parseEvents(JSON.stringify(events), 'e.json');

function problem(events: unknown): string {
  try {
    parse(events);
  } catch (error) {
    if (error instanceof EvenkeelError) return `${error.code} ${error.message}`;
    throw error;
  }
  return 'accepted';
}

describe('events', () => {
  it('of every kind are read', () => {
    const events = parse([
      { join: { id: 'b4', weight: 2 } },
      { drain: 'b2' },
      { undrain: 'b2' },
      { down: 'b1' },
      { up: 'b1', afterMs: 1000 },
      { remove: 'b1' },
      { create: { name: 'x', shards: 2 } },
      { delete: 'cache:x' },
      { setBroker: { id: 'a2', maxShards: 4 } },
      { setResource: { name: 'x', shards: 24 } },
      { setPolicy: { zonePolicy: 'zone' } },
      { move: { shard: 'stream:x/0', to: 'b3' } },
      { cancel: 'stream:x/0' },
      { inSync: { shard: 'stream:x/*', inSync: ['b1'] } },
    ]);
    expect(events.map(({ action }) => action)).toMatchObject([
      { type: 'join', broker: { id: 'b4', weight: 2, lifecycle: 'live', maxShards: null } },
      { type: 'drain', broker: 'b2' },
      { type: 'undrain', broker: 'b2' },
      { type: 'down', broker: 'b1' },
      { type: 'up', broker: 'b1' },
      { type: 'remove', broker: 'b1' },
      {
        type: 'create',
        resource: { kind: 'stream', name: 'x', shards: 2, replicationFactor: 1, durable: true },
      },
      { type: 'delete', resource: 'cache:x' },
      { type: 'setBroker', id: 'a2', patch: { maxShards: 4 } },
      { type: 'setResource', resource: 'stream:x', patch: { shards: 24 } },
      { type: 'setPolicy', patch: { zonePolicy: 'zone' } },
      { type: 'move', shard: 'stream:x/0', to: 'b3', role: 'leader', from: null },
      { type: 'cancel', shard: 'stream:x/0' },
      { type: 'inSync', shard: 'stream:x/*', inSync: ['b1'] },
    ]);
    expect(events.map(({ afterMs }) => afterMs).filter((ms) => ms !== null)).toEqual([1000]);
    expect(events[4]?.source).toEqual({ up: 'b1', afterMs: 1000 });
  });

  it('change only what they name', () => {
    const [event] = parse([{ setBroker: { id: 'a2', zone: null } }]);
    expect(event?.action).toEqual({ type: 'setBroker', id: 'a2', patch: { zone: null } });
  });

  it.each<[string, unknown, RegExp]>([
    ['no list', { drain: 'b1' }, /expected array/],
    ['no object', ['drain'], /e\.json: \[0\]/],
    ['no event', [{ afterMs: 5 }], /e\.json\[0\]: names no event/],
    [
      'an unknown event',
      [{ drain: 'b1' }, { explode: 'b1' }],
      /e\.json\[1\]: "explode" is not a known event: write one of join/,
    ],
    ['a name every object has', [{ constructor: 'b1' }], /"constructor" is not a known event/],
    ['two at once', [{ drain: 'b1', down: 'b2' }], /e\.json\[0\]: names "down" beside drain/],
    ['a broker that is no string', [{ drain: 7 }], /e\.json\[0\]\.drain: .*expected string/],
    ['a negative delay', [{ up: 'b1', afterMs: -1 }], /e\.json\[0\]\.afterMs/],
    ['an unknown key of a broker', [{ join: { id: 'b4', caps: 1 } }], /join: "caps" is not a known key/],
    ['a broker with a bad id', [{ join: { id: 'b 4' } }], /join: broker id "b 4"/],
    ['a resource of no shards', [{ create: { name: 'x', shards: 0 } }], /create: resource x: 0 shards/],
    ['a delete of no name', [{ delete: 'stream:' }], /"stream:" names no resource/],
    [
      'an unknown setting of a broker',
      [{ setBroker: { id: 'a', lifecycle: 'down' } }],
      /setBroker: "lifecycle"/,
    ],
    ['a weight past its limit', [{ setBroker: { id: 'a', weight: 1001 } }], /weight 1001 must be/],
    [
      'a setting that cannot change',
      [{ setResource: { name: 'x', durable: false } }],
      /setResource: "durable"/,
    ],
    [
      'a factor past its limit',
      [{ setResource: { name: 'x', replicationFactor: 17 } }],
      /replicationFactor 17/,
    ],
    ['an unknown policy', [{ setPolicy: { pace: 1 } }], /setPolicy: "pace"/],
    ['a policy past its limit', [{ setPolicy: { maxConcurrentMoves: 0 } }], /maxConcurrentMoves 0/],
    ['a move of no shard', [{ move: { shard: 'stream:x', to: 'b1' } }], /move: "stream:x" names no shard/],
    ['a move nowhere', [{ move: { shard: 'stream:x/0' } }], /move: to: is missing/],
    ['an in-sync set that is none', [{ inSync: { shard: 'stream:x/0' } }], /inSync: inSync: is missing/],
  ])('with %s are refused by name', (_what, events, message) => {
    expect(problem(events)).toMatch(/^(invalid_argument|limit_exceeded) e\.json/);
    expect(problem(events)).toMatch(message);
  });

  it('that are no JSON are refused', () => {
    expect(() => parseEvents('[', 'e.json')).toThrow(/e\.json is not JSON/);
  });
});
