import { describe, expect, it } from 'vitest';
import {
  abandonRefusal,
  explainShard,
  operatorCancel,
  operatorMove,
  type Assignment,
  type Broker,
  type Move,
  type MoveRequest,
  type Policy,
} from '../../placement/index.ts';
import { assignment, broker, NO_REPORTS, resource, snapshot } from './support/rows.ts';

const ROWS = [
  broker('b1', { zone: 'a' }),
  broker('b2', { zone: 'b' }),
  broker('b3', { zone: 'b' }),
  broker('b4', { zone: 'c', maxShards: 0 }),
  broker('b5', { zone: 'c', lifecycle: 'down', downSinceMs: 0 }),
];
const MOVE: Move = {
  role: 'leader',
  from: 'b1',
  to: 'b3',
  step: 'staged',
  reason: 'operator',
  copied: true,
  drops: null,
  startedAtMs: 0,
  progressAtMs: 0,
};

function at(
  fields: Partial<Assignment> = {},
  options: { rows?: Broker[]; policy?: Partial<Policy>; factor?: number } = {},
) {
  return snapshot({
    brokers: options.rows ?? ROWS,
    resources: [resource('s', 2, { replicationFactor: options.factor ?? 2 })],
    assignments: [assignment('stream:s/0', ['b1', 'b2'], { generation: 5, ...fields })],
    policy: options.policy ?? {},
  });
}

function request(fields: Partial<MoveRequest>): MoveRequest {
  return { shard: 'stream:s/0', role: 'leader', from: null, to: 'b3', ...fields };
}

describe('a move by hand', () => {
  it('stages a leadership, paused or not, and says what it does to the zones', () => {
    const answer = operatorMove(at({}, { policy: { paused: true } }), NO_REPORTS, request({}));
    expect(answer).toMatchObject({
      zonesBefore: 2,
      zonesAfter: 2,
      step: {
        step: 'stage',
        to: 'b3',
        reason: 'operator',
        copies: true,
        expect: 5,
        next: { move: { drops: 'b2' } },
      },
    });
  });

  it('hands over to an in-sync copy without copying', () => {
    expect(operatorMove(at(), NO_REPORTS, request({ to: 'b2' }))).toMatchObject({ step: { copies: false } });
  });

  it('moves a copy, the named one goes', () => {
    const answer = operatorMove(at(), NO_REPORTS, request({ role: 'follower', from: 'b2' }));
    expect(answer).toMatchObject({
      step: { step: 'join', from: 'b2', to: 'b3', next: { move: { drops: 'b2' } } },
    });
  });

  it.each<[string, Partial<MoveRequest>, Partial<Assignment>, string]>([
    ['an unknown shard', { shard: 'stream:s/9' }, {}, 'stream:s/9 is no shard'],
    ['an unknown resource', { shard: 'stream:t/0' }, {}, 'stream:t/0 is no shard'],
    ['a shard not placed', { shard: 'stream:s/1' }, {}, 'not placed'],
    ['an unknown broker', { to: 'b9' }, {}, 'no broker b9'],
    ['a broker that is not live', { to: 'b5' }, {}, 'b5 is down'],
    ['a broker at its cap', { to: 'b4' }, {}, 'b4 is at maxShards 0'],
    ['the leader itself', { to: 'b1' }, {}, 'b1 leads it already'],
    ['a copy out of sync', { to: 'b2' }, { inSync: ['b1'] }, 'not in sync'],
    [
      'a shard that moves',
      {},
      { replicas: ['b1', 'b2', 'b3'], move: MOVE },
      'a leader move to b3 is in flight',
    ],
    [
      'a leader that is down',
      {},
      { leader: 'b5', replicas: ['b5', 'b2'], inSync: ['b2'] },
      'b5 (down) does not serve',
    ],
    ['a follower without a name', { role: 'follower' }, {}, 'name the one that goes'],
    ['a follower that holds nothing', { role: 'follower', from: 'b4' }, {}, 'b4 holds no copy'],
    ['the leader as a follower', { role: 'follower', from: 'b1' }, {}, 'b1 leads it'],
    ['a destination with a copy', { role: 'follower', from: 'b2', to: 'b2' }, {}, 'holds a copy already'],
  ])('refuses %s', (_what, asked, row, why) => {
    expect(operatorMove(at(row), NO_REPORTS, request(asked))).toEqual({
      refused: expect.stringContaining(why),
    });
  });

  it.each([
    ['maxConcurrentMoves', 'b3'],
    ['maxMovesPerBroker', 'b3'],
    ['maxConcurrentHandovers', 'b2'],
  ])('refuses where no slot is free by %s', (limit, to) => {
    const answer = operatorMove(at({}, { policy: { [limit]: 0 } }), NO_REPORTS, request({ to }));
    expect(answer).toEqual({ refused: expect.stringContaining(limit) });
  });
});

describe('cancelling', () => {
  const moving = { replicas: ['b1', 'b2', 'b3'], inSync: ['b1', 'b2'] };

  it('drops the destination before the fence', () => {
    const answer = operatorCancel(at({ ...moving, move: MOVE }), NO_REPORTS, 'stream:s/0');
    expect(answer).toMatchObject({
      step: {
        step: 'abandon',
        drops: 'b3',
        opensEpoch: false,
        next: { replicas: ['b1', 'b2'], failedMoves: 0 },
      },
    });
  });

  it('gives the shard back to the old leader at a new epoch after it', () => {
    const fenced = { ...moving, state: 'draining', move: { ...MOVE, step: 'fenced' } } as const;
    const answer = operatorCancel(at(fenced), NO_REPORTS, 'stream:s/0');
    expect(answer).toMatchObject({ step: { opensEpoch: true, next: { leader: 'b1', state: 'assigning' } } });
    const rows = [broker('b1', { lifecycle: 'down', downSinceMs: 0 }), ...ROWS.slice(1)];
    expect(operatorCancel(at(fenced, { rows }), NO_REPORTS, 'stream:s/0')).toEqual({
      refused: expect.stringContaining('b1, which led it, is down'),
    });
  });

  it('waits after the fence while the old leader was not heard, and never drops a copy that may be the last', () => {
    const inSync = ['b1', 'b3'];
    const fenced = { ...moving, inSync, state: 'draining', move: { ...MOVE, step: 'fenced' } } as const;
    const silent = { ...NO_REPORTS, unheard: new Set(['b1']), unconfirmed: new Map() };
    expect(operatorCancel(at(fenced), silent, 'stream:s/0')).toEqual({
      refused: expect.stringMatching(/b1, which led it, was not heard .* b3 leads/),
    });
    // Heard a moment ago it may be dead all the same.
    expect(operatorCancel(at(fenced), NO_REPORTS, 'stream:s/0')).toMatchObject({ step: { drops: null } });
    const staged = at({ ...moving, inSync, move: MOVE });
    expect(operatorCancel(staged, silent, 'stream:s/0')).toMatchObject({ step: { drops: null } });
  });

  it('has nothing to do where nothing moves', () => {
    expect(operatorCancel(at(), NO_REPORTS, 'stream:s/0')).toEqual({
      refused: expect.stringContaining('nothing to cancel'),
    });
  });
});

describe('abandoning a log', () => {
  const lost = { leader: 'b5', replicas: ['b5', 'b2'], inSync: ['b5'] };

  it('is refused while a copy that holds all of it serves, or may serve', () => {
    expect(abandonRefusal(at(), NO_REPORTS, 'stream:s/0')).toContain('b1 (live) holds all of it');
    const leased = {
      shards: new Map(),
      leasedUntilMs: new Map([['b5', 10]]),
      unheard: new Set<string>(),
      unconfirmed: new Map(),
    };
    expect(abandonRefusal(at(lost), leased, 'stream:s/0')).toContain('may serve on its lease until 10');
    expect(abandonRefusal(at(lost), NO_REPORTS, 'stream:s/0')).toBeNull();
    const hung = { ...NO_REPORTS, unconfirmed: new Map([['stream:s/0', 'never'] as const]) };
    expect(abandonRefusal(at(), hung, 'stream:s/0')).toBeNull();
    expect(abandonRefusal(at(lost), NO_REPORTS, 'stream:s/1')).toContain('never placed');
  });
});

describe('explaining', () => {
  it('says where a shard is, what comes next and what it waits for', () => {
    const explained = explainShard(at({ inSync: ['b1'] }, { factor: 4 }), NO_REPORTS, 'stream:s/0');
    expect(explained?.place[0]).toContain('b1 leads and serves it: it leads 1 of stream:s');
    expect(explained?.place).toContainEqual(
      expect.stringContaining('b2 (live, zone b) holds a copy out of sync'),
    );
    expect(explained?.next).toMatchObject([{ step: 'join', to: 'b3', reason: 'restore' }]);
    expect(explainShard(at(), NO_REPORTS, 'stream:s/7')).toBeNull();
  });

  it.each([
    [{ state: 'assigning' }, 'does not serve it yet (it has not confirmed'],
    [{ state: 'draining' }, 'takes no writes (it is fenced'],
    [{ inSync: ['b2'] }, 'does not serve it (its copy is not in sync)'],
  ] as const)('says what a client meets where the leader does not serve: %j', (row, text) => {
    expect(explainShard(at(row), NO_REPORTS, 'stream:s/0')?.place[0]).toContain(`b1 leads and ${text}`);
  });
});
