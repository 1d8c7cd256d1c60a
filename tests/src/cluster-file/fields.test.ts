import { describe, expect, it } from 'vitest';
import { parseEvents, readClusterFile } from '../../../src/cluster-file/index.ts';
import { EvenkeelError } from '../../../src/errors.ts';

/** A row with every field; each is made wrong in every way that its type has. */
const CLUSTER = {
  version: 1,
  timeMs: 9,
  brokers: [
    {
      id: 'b1',
      zone: 'a',
      lifecycle: 'live',
      drain: false,
      maxShards: 9,
      weight: 1,
      incarnation: 1,
      registeredAtMs: 0,
      downSinceMs: null,
    },
    { id: 'b2' },
  ],
  resources: [
    {
      kind: 'stream',
      name: 's',
      shards: 2,
      replicationFactor: 2,
      durable: true,
      zonePolicy: 'broker',
      labels: { a: 'x' },
    },
  ],
  assignments: [
    {
      shard: 'stream:s/0',
      leader: 'b1',
      replicas: ['b1', 'b2'],
      inSync: ['b1', 'b2'],
      generation: 4,
      epoch: 4,
      state: 'active',
      failedMoves: 0,
      move: {
        role: 'leader',
        from: 'b1',
        to: 'b2',
        step: 'staged',
        reason: 'balance',
        copied: false,
        drops: null,
        startedAtMs: 0,
        progressAtMs: 0,
      },
    },
  ],
  policy: {
    maxConcurrentMoves: 1,
    maxMovesPerBroker: 1,
    maxConcurrentHandovers: 1,
    paused: false,
    zonePolicy: 'broker',
    restoreAfterMs: 300_000,
    moveTimeoutMs: 1_800_000,
    moveStallMs: 120_000,
    fenceTimeoutMs: 10_000,
    fenceMaxLagRecords: 1_000,
    settleMs: 10_000,
    passIntervalMs: 1_000,
  },
};

const EVENTS = {
  join: { ...CLUSTER.brokers[0], id: 'b3' },
  create: { ...CLUSTER.resources[0], name: 't' },
  setBroker: { id: 'b1', zone: 'a', maxShards: 4, weight: 2 },
  setResource: {
    kind: 'stream',
    name: 's',
    shards: 3,
    replicationFactor: 1,
    zonePolicy: 'zone',
    labels: { a: 'x' },
  },
  setPolicy: CLUSTER.policy,
  move: { shard: 'stream:s/0', to: 'b2', role: 'follower', from: 'b1' },
  inSync: { shard: 'stream:s/0', inSync: ['b1'] },
};

/** Where `null` stands for something: no zone, no cap, the cluster's policy, no copy. */
const NULLABLE = [
  'zone',
  'maxShards',
  'downSinceMs',
  'zonePolicy',
  'move',
  'from',
  'drops',
  'maxMovesPerBroker',
];
/** Without these a row means nothing. */
const REQUIRED: Readonly<Record<string, readonly string[]>> = {
  file: ['version', 'brokers', 'resources'],
  broker: ['id'],
  resource: ['name', 'shards'],
  assignment: ['shard', 'leader', 'replicas'],
  'move in flight': ['role', 'to', 'step', 'reason'],
  join: ['id'],
  create: ['name', 'shards'],
  setBroker: ['id'],
  setResource: ['name'],
  move: ['shard', 'to'],
  inSync: ['shard', 'inSync'],
};

/** Wrong values for a field that holds such a one. */
function wrong(value: unknown): unknown[] {
  if (typeof value === 'number' || value === null) return ['1', 1.5, -1, 2 ** 52 + 1, 2 ** 60, [], {}, true];
  if (typeof value === 'boolean') return [0, 'true', []];
  if (typeof value === 'string') return ['', 'no such/ thing', 'x'.repeat(200), 7, ['b1'], {}];
  if (Array.isArray(value)) return ['b1', {}, 7, [...value, 7], [...value, null]];
  return ['x', 7, []];
}

type Row = Readonly<Record<string, unknown>>;

/** Every row that differs from this one in one field, with what was done to it. */
function spoilt(kind: string, row: Row): { what: string; row: Row }[] {
  const found: { what: string; row: Row }[] = [];
  const put = (what: string, bad: Row): number => found.push({ what: `${kind}: ${what}`, row: bad });
  for (const [key, value] of Object.entries(row)) {
    for (const bad of wrong(value)) put(`${key} ${JSON.stringify(bad).slice(0, 40)}`, { ...row, [key]: bad });
    const isPolicy = 'settleMs' in row;
    if (!NULLABLE.includes(key) || (isPolicy && key === 'zonePolicy'))
      put(`${key} null`, { ...row, [key]: null });
    if (!(REQUIRED[kind] ?? []).includes(key)) continue;
    const { [key]: _left, ...rest } = row;
    put(`${key} missing`, rest);
  }
  put('an unknown key', { ...row, nonsense: 1 });
  return found;
}

/** Every file that is wrong in one field of one of its rows. */
function spoiltFiles(): { what: string; json: unknown }[] {
  const [broker, second] = CLUSTER.brokers;
  const [resource] = CLUSTER.resources;
  const [assignment] = CLUSTER.assignments;
  if (broker === undefined || resource === undefined || assignment === undefined) throw new Error('no rows');
  const each = (kind: string, row: Row, put: (row: Row) => object) =>
    spoilt(kind, row).map(({ what, row: bad }) => ({ what, json: put(bad) }));
  return [
    ...each('file', CLUSTER, (bad) => bad),
    ...each('broker', broker, (bad) => ({ ...CLUSTER, brokers: [bad, second] })),
    ...each('resource', resource, (bad) => ({ ...CLUSTER, resources: [bad] })),
    ...each('assignment', assignment, (bad) => ({ ...CLUSTER, assignments: [bad] })),
    ...each('move in flight', assignment.move, (bad) => ({
      ...CLUSTER,
      assignments: [{ ...assignment, move: bad }],
    })),
    ...each('policy', CLUSTER.policy, (bad) => ({ ...CLUSTER, policy: bad })),
  ];
}

function answer(read: () => unknown): string {
  try {
    read();
  } catch (error) {
    if (error instanceof EvenkeelError) return `${error.code} ${error.message}`;
    throw error;
  }
  return 'accepted';
}

function isRefused(told: string): boolean {
  return /^(invalid_argument|limit_exceeded) [ce]\.json/.test(told);
}

describe('every field of a cluster file', () => {
  it('is read as it is', () => {
    expect(readClusterFile(CLUSTER, 'c.json')).toMatchObject({
      ...CLUSTER,
      brokers: [CLUSTER.brokers[0], {}],
    });
  });

  it.each(spoiltFiles())('$what is refused by name', ({ what, json }) => {
    const told = answer(() => readClusterFile(json, 'c.json'));
    expect(told).toSatisfy(isRefused);
    const key = what.replace(/^.*: (\w+) .*$/, '$1');
    // Of a text that is wrong the message may quote the text alone.
    if (/(null|missing|\[\]|\{\}|1\.5|-1)$/.test(what)) expect(told).toContain(key);
  });
});

describe('every field of an event', () => {
  it.each(Object.keys(EVENTS) as (keyof typeof EVENTS)[])('%s is read as it is', (name) => {
    expect(answer(() => parseEvents(JSON.stringify([{ [name]: EVENTS[name] }]), 'e.json'))).toBe('accepted');
  });

  it.each(['drain', 'undrain', 'down', 'up', 'remove', 'delete', 'cancel'])(
    '%s of no name is refused',
    (name) => {
      for (const bad of ['', 'no such/ thing', 7, null, ['b1'], {}]) {
        expect(answer(() => parseEvents(JSON.stringify([{ [name]: bad }]), 'e.json'))).toSatisfy(isRefused);
      }
    },
  );

  it.each([{ setBroker: { id: 'b1' } }, { setResource: { name: 's' } }, { setPolicy: {} }])(
    '%j changes nothing and is refused',
    (event) => {
      const told = answer(() => parseEvents(JSON.stringify([event]), 'e.json'));
      expect(told).toMatch(/^invalid_argument e\.json\[0\]\.set\w+: names nothing to change$/);
    },
  );

  it.each([-1, 1.5, 2 ** 31, '5', null, []])('afterMs %j is refused', (afterMs) => {
    const told = answer(() => parseEvents(JSON.stringify([{ drain: 'b1', afterMs }]), 'e.json'));
    expect(told).toMatch(/^invalid_argument e\.json\[0\]\.afterMs: /);
  });

  it.each([{ lifecycle: 'down' }, { lifecycle: 'left' }, { downSinceMs: 5 }])(
    'a broker that joins is up: %j',
    (not) => {
      const told = answer(() => parseEvents(JSON.stringify([{ join: { id: 'b4', ...not } }]), 'e.json'));
      expect(told).toContain('broker b4 joins, so it is up');
    },
  );

  const rows = Object.entries(EVENTS).flatMap(([name, row]) =>
    spoilt(name, row).map(({ what, row: bad }) => ({ what, event: { [name]: bad } })),
  );
  it.each(rows)('$what is refused by name', ({ event }) => {
    expect(answer(() => parseEvents(JSON.stringify([event]), 'e.json'))).toSatisfy(isRefused);
  });
});
