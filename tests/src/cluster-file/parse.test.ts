import { describe, expect, it } from 'vitest';
import { DEFAULT_POLICY } from '../../../placement/index.ts';
import { parseClusterFile, readClusterFile } from '../../../src/cluster-file/index.ts';
import { EvenkeelError } from '../../../src/errors.ts';

const file = (over: object = {}) => ({
  version: 1,
  brokers: [{ id: 'b1' }, { id: 'b2' }],
  resources: [{ name: 's', shards: 2, replicationFactor: 2 }],
  assignments: [{ shard: 'stream:s/0', leader: 'b1', replicas: ['b1', 'b2'] }],
  ...over,
});

const assignment = (over: object) =>
  file({ assignments: [{ shard: 'stream:s/0', leader: 'b1', replicas: ['b1', 'b2'], ...over }] });

const move = (over: object) =>
  assignment({ move: { role: 'leader', from: 'b1', to: 'b2', step: 'staged', reason: 'balance', ...over } });

function problem(json: unknown): string {
  try {
    readClusterFile(json, 'c.json');
  } catch (error) {
    if (error instanceof EvenkeelError) return `${error.code} ${error.message}`;
    throw error;
  }
  return 'accepted';
}

describe('defaults', () => {
  it('fill in every field', () => {
    expect(readClusterFile(file(), 'c.json')).toEqual({
      version: 1,
      brokers: ['b1', 'b2'].map((id) => ({
        id,
        zone: null,
        lifecycle: 'live',
        drain: false,
        maxShards: null,
        weight: 1,
        incarnation: 0,
        registeredAtMs: 0,
        downSinceMs: null,
      })),
      resources: [
        {
          kind: 'stream',
          name: 's',
          shards: 2,
          replicationFactor: 2,
          durable: true,
          zonePolicy: null,
          labels: {},
        },
      ],
      assignments: [
        {
          shard: 'stream:s/0',
          leader: 'b1',
          replicas: ['b1', 'b2'],
          inSync: ['b1', 'b2'],
          generation: 1,
          epoch: 1,
          state: 'active',
          failedMoves: 0,
          move: null,
        },
      ],
      policy: DEFAULT_POLICY,
    });
  });

  it('read drain and lifecycle of each other', () => {
    const { brokers } = readClusterFile(
      file({
        brokers: [
          { id: 'b1', drain: true },
          { id: 'b2', lifecycle: 'draining' },
        ],
      }),
      'c.json',
    );
    expect(brokers).toMatchObject([
      { lifecycle: 'draining', drain: true },
      { lifecycle: 'draining', drain: true },
    ]);
  });

  it('take the epoch from the generation, the state from the fence, what is copied from who is in sync', () => {
    const [row] = readClusterFile(assignment({ generation: 9 }), 'c.json').assignments;
    expect(row).toMatchObject({ generation: 9, epoch: 9 });
    const [fenced] = readClusterFile(move({ step: 'fenced' }), 'c.json').assignments;
    expect(fenced).toMatchObject({ state: 'draining', move: { copied: false, drops: null } });
    const out = { ...move({}).assignments[0], inSync: ['b1'] };
    const [copying] = readClusterFile(file({ assignments: [out] }), 'c.json').assignments;
    expect(copying).toMatchObject({ state: 'active', move: { copied: true } });
  });

  it('keep where moves failed', () => {
    const failures = [{ to: 'b3', times: 2, atMs: 5 }];
    expect(readClusterFile(assignment({ failures }), 'c.json').assignments[0]?.failures).toEqual(failures);
    const twice = [...failures, ...failures];
    expect(() => readClusterFile(assignment({ failures: twice }), 'c.json')).toThrow(/failed twice over/);
  });

  it('keep what has moved in the phase of the file, and of no other', () => {
    const moved = { leader: true, copies: [{ from: 'b1', to: 'b2' }] };
    const read = (over: object, phase?: number) =>
      readClusterFile({ ...assignment({ moved: over }), ...(phase === undefined ? {} : { phase }) });
    expect(read({ leader: true }).assignments[0]?.moved).toEqual({ phase: 0, leader: true, copies: [] });
    expect(read({ phase: 7, ...moved }, 7).assignments[0]?.moved).toEqual({ phase: 7, ...moved });
    expect(read({ phase: 7, ...moved }, 7).phase).toBe(7);
    expect(read({ phase: 6, ...moved }, 7)).not.toHaveProperty('phase');
    expect(read({ phase: 6, ...moved }, 7).assignments[0]).not.toHaveProperty('moved');
  });

  it('keep nothing of what has moved where the brokers, resources or policy were edited since it was printed', () => {
    const moved = { phase: 7, leader: true, copies: [] };
    const printed = readClusterFile({ ...assignment({ moved }), phase: 7 });
    expect(printed.phaseOf).toMatch(/^[0-9a-f]{16}$/);
    expect(readClusterFile(printed)).toEqual(printed);
    const { phase: _, phaseOf: __, ...rest } = printed;
    const { moved: ___, ...row } = printed.assignments[0]!;
    const [first, second] = printed.brokers;
    for (const edit of [
      { brokers: [...printed.brokers, { ...first!, id: 'b3' }] },
      { brokers: [{ ...first!, weight: 2 }, second!] },
      { resources: printed.resources.map((resource) => ({ ...resource, shards: 3 })) },
      { policy: { ...printed.policy, paused: true } },
    ]) {
      expect(readClusterFile({ ...printed, ...edit })).toEqual({ ...rest, ...edit, assignments: [row] });
    }
  });

  it('keep the policy’s other keys where some are given', () => {
    const { policy } = readClusterFile(file({ policy: { maxConcurrentMoves: 5 } }), 'c.json');
    expect(policy).toEqual({ ...DEFAULT_POLICY, maxConcurrentMoves: 5 });
  });
});

describe('a file that is wrong is refused by name', () => {
  it.each<[string, unknown, RegExp]>([
    ['no JSON object', [], /expected object/],
    ['another version', file({ version: 2 }), /version/],
    ['no brokers', { version: 1, resources: [] }, /brokers: is missing/],
    ['an unknown key at the top', file({ nodes: [] }), /"nodes" is not a known key/],
    [
      'an unknown key of a broker',
      file({ brokers: [{ id: 'b1', maxshards: 1 }] }),
      /brokers\[0\]: "maxshards"/,
    ],
    [
      'an unknown key of a resource',
      file({ resources: [{ name: 's', shards: 1, x: 1 }] }),
      /resources\[0\]: "x"/,
    ],
    ['an unknown key of an assignment', assignment({ gen: 1 }), /assignments\[0\]: "gen"/],
    ['an unknown key of a move', move({ why: 'x' }), /assignments\[0\].move: "why"/],
    ['an unknown key of the policy', file({ policy: { pause: true } }), /policy: "pause"/],
    ['a wrong type', file({ brokers: [{ id: 'b1', weight: 'two' }] }), /brokers\[0\].weight: .*number/],
    ['a fraction', file({ brokers: [{ id: 'b1', weight: 1.5 }] }), /brokers\[0\].weight/],
    ['an unsafe integer', assignment({ generation: 2 ** 60 }), /assignments\[0\].generation/],
    ['an unknown lifecycle', file({ brokers: [{ id: 'b1', lifecycle: 'up' }] }), /brokers\[0\].lifecycle/],
    ['a broker twice', file({ brokers: [{ id: 'b1' }, { id: 'b1' }] }), /broker b1 is listed twice/],
    [
      'a resource twice',
      file({
        resources: [
          { name: 's', shards: 2 },
          { name: 's', shards: 2 },
        ],
      }),
      /stream:s is listed twice/,
    ],
    [
      'a shard twice',
      file({ assignments: [...file().assignments, ...file().assignments] }),
      /assigned twice/,
    ],
    ['a broker id with a space', file({ brokers: [{ id: 'b 1' }] }), /broker id "b 1" must begin/],
    ['a zone with a slash', file({ brokers: [{ id: 'b1', zone: 'a/b' }] }), /zone "a\/b"/],
    ['a name with a space', file({ resources: [{ name: 'a b', shards: 1 }] }), /resource name "a b"/],
    ['a name of four segments', file({ resources: [{ name: 'a/b/c/d', shards: 1 }] }), /has 4 segments/],
    ['0 shards', file({ resources: [{ name: 's', shards: 0 }], assignments: [] }), /0 shards, at least 1/],
    ['too many shards', file({ resources: [{ name: 's', shards: 100_001 }] }), /at most 100000/],
    [
      'a replication factor of 0',
      file({ resources: [{ name: 's', shards: 2, replicationFactor: 0 }] }),
      /replicationFactor 0/,
    ],
    [
      'a replication factor above the limit',
      file({ resources: [{ name: 's', shards: 2, replicationFactor: 17 }] }),
      /limit_exceeded .*replicationFactor 17, at most 16/,
    ],
    ['a weight of 0', file({ brokers: [{ id: 'b1', weight: 0 }] }), /weight 0 must be 1 to 1000/],
    ['a negative cap', file({ brokers: [{ id: 'b1', maxShards: -1 }] }), /brokers\[0\].maxShards/],
    [
      'labels over 4 KiB',
      file({ resources: [{ name: 's', shards: 2, labels: { a: 'x'.repeat(4_100) } }] }),
      /labels take/,
    ],
    ['drain under live', file({ brokers: [{ id: 'b1', lifecycle: 'live', drain: true }] }), /"drain": true/],
    ['a shard that is no name', assignment({ shard: 'stream:s' }), /names no shard/],
    ['a shard number with a zero in front', assignment({ shard: 'stream:s/01' }), /names no shard/],
    ['a shard number past the count', assignment({ shard: 'stream:s/2' }), /has 2 shards, the last is 1/],
    ['a shard of no resource', assignment({ shard: 'cache:s/0' }), /there is no resource cache:s/],
    [
      'a leader that holds no copy',
      assignment({ leader: 'b2', replicas: ['b1'] }),
      /leader b2 holds no copy/,
    ],
    ['a copy on an unknown broker', assignment({ replicas: ['b1', 'b9'] }), /names "b9"/],
    ['two copies on a broker', assignment({ replicas: ['b1', 'b1'] }), /two copies/],
    ['in sync without a copy', assignment({ replicas: ['b1'], inSync: ['b1', 'b2'] }), /b2 is in sync/],
    ['an epoch past its generation', assignment({ generation: 2, epoch: 3 }), /epoch 3 must be 1 to/],
    ['a generation of 0', assignment({ generation: 0 }), /epoch 0 must be/],
    ['a fence without a move', assignment({ state: 'draining' }), /fenced without a move/],
    [
      'a move to a broker without a copy',
      file({ assignments: [{ ...move({ to: 'b2' }).assignments[0], replicas: ['b1'] }] }),
      /destination b2 holds no copy/,
    ],
    ['a move that drops a stranger', move({ drops: 'b9' }), /names "b9"/],
    ['a leader move that joins', move({ step: 'joining' }), /cannot be at step joining/],
    ['a leader move from a follower', move({ from: 'b2', to: 'b1' }), /from the leader b1/],
    [
      'a copy that has moved from a stranger',
      assignment({ moved: { copies: [{ from: 'b9', to: 'b2' }] } }),
      /names "b9"/,
    ],
    ['a phase past its limit', assignment({ moved: { phase: 2 ** 52 + 1 } }), /phase/],
    [
      'an unknown key of what has moved',
      assignment({ moved: { led: true } }),
      /assignments\[0\].moved: "led"/,
    ],
    ['a move without a reason', move({ reason: undefined }), /assignments\[0\].move.reason/],
    [
      'a policy past its limit',
      file({ policy: { maxConcurrentMoves: 0 } }),
      /maxConcurrentMoves 0 must be 1/,
    ],
  ])('%s', (_what, json, message) => {
    expect(problem(json)).toMatch(/^(invalid_argument|limit_exceeded) c\.json: /);
    expect(problem(json)).toMatch(message);
  });

  it('that is no JSON', () => {
    expect(() => parseClusterFile('{"version": 1,', 'c.json')).toThrow(/c\.json is not JSON/);
  });

  it('with many faults lists the first five', () => {
    const brokers = Array.from({ length: 8 }, () => ({ id: 1 }));
    expect(problem(file({ brokers }))).toMatch(/brokers\[4\].*and 3 more$/);
  });
});
