import { beforeEach, describe, expect, it } from 'vitest';
import { DEFAULT_POLICY } from '../../../placement/index.ts';
import { commandProblem, type Command } from '../../../src/command/index.ts';
import { decided, Harness, resource } from './harness.ts';

let h: Harness;

beforeEach(() => {
  h = new Harness();
  for (const id of ['b1', 'b2']) h.register(id);
  h.create('s', { shards: 2, labels: { team: 'a' } });
});

const alter = (over: object): Command => ({
  type: 'alterResource',
  kind: 'stream',
  name: 's',
  expectedRevision: null,
  ...over,
});

const row = () => {
  const found = h.state.resources.get('stream:s');
  if (found === undefined) throw new Error('stream:s is gone');
  return found;
};

describe('creating', () => {
  it('keeps the revision it was created at, and is refused a second time', () => {
    expect(row()).toMatchObject({ createdRevision: 3, revision: 3, shards: 2 });
    expect(h.refused({ type: 'createResource', resource: resource('s') })).toMatchObject({
      code: 'already_exists',
    });
    h.ok({ type: 'createResource', resource: resource('s', { kind: 'cache' }) });
    expect([...h.state.resources.keys()]).toEqual(['stream:s', 'cache:s']);
  });

  it.each<[string, object, string]>([
    ['a name with a space', { name: 'a b' }, 'invalid_argument'],
    ['no shards', { shards: 0 }, 'invalid_argument'],
    ['too many shards', { shards: 100_001 }, 'limit_exceeded'],
    ['no copies', { replicationFactor: 0 }, 'invalid_argument'],
    ['too many copies', { replicationFactor: 17 }, 'limit_exceeded'],
    ['labels over 4 KiB', { labels: { a: 'x'.repeat(4_096) } }, 'limit_exceeded'],
  ])('refuses %s', (_what, over, code) => {
    expect(h.refused({ type: 'createResource', resource: resource('t', over) }).code).toBe(code);
    expect(h.state.resources.size).toBe(1);
  });

  it('stops at the most shards a cluster may have', () => {
    for (let i = 0; i < 4; i++) h.create(`big${i}`, { shards: 100_000 });
    expect(
      h.refused({ type: 'createResource', resource: resource('big9', { shards: 100_000 }) }),
    ).toMatchObject({
      code: 'limit_exceeded',
      message: expect.stringMatching(/limit of 500000/),
    });
    expect(h.refused(alter({ shards: 100_001 })).code).toBe('limit_exceeded');
    h.ok({ type: 'deleteResource', kind: 'stream', name: 'big0', expectedRevision: null });
    h.create('big9', { shards: 100_000 });
  });
});

describe('altering', () => {
  it('raises shards, never lowers them', () => {
    h.ok(alter({ shards: 5 }));
    expect(row().shards).toBe(5);
    expect(h.refused(alter({ shards: 4 }))).toMatchObject({
      code: 'invalid_argument',
      message: expect.stringMatching(/only be raised/),
    });
  });

  it('changes what it names and leaves the rest', () => {
    h.ok(alter({ replicationFactor: 1, zonePolicy: 'majority' }));
    expect(row()).toMatchObject({
      replicationFactor: 1,
      zonePolicy: 'majority',
      shards: 2,
      createdRevision: 3,
    });
    h.ok(alter({ zonePolicy: null }));
    expect(row()).toMatchObject({ replicationFactor: 1, zonePolicy: null });
  });

  it('sets and removes labels one by one, inside their limit together', () => {
    h.ok(alter({ labels: { tier: 'gold', team: null } }));
    expect(row().labels).toEqual({ tier: 'gold' });
    h.ok(alter({ labels: { a: 'x'.repeat(3_000) } }));
    expect(h.refused(alter({ labels: { b: 'x'.repeat(2_000) } })).code).toBe('limit_exceeded');
    expect(Object.keys(row().labels)).toEqual(['tier', 'a']);
  });

  it('is a conflict at another revision than expected', () => {
    expect(h.refused(alter({ expectedRevision: 2, shards: 3 })).code).toBe('conflict');
    h.ok(alter({ expectedRevision: 3, shards: 3 }));
    expect(h.refused({ type: 'deleteResource', kind: 'stream', name: 's', expectedRevision: 3 }).code).toBe(
      'conflict',
    );
  });

  it('of what is not there is not found', () => {
    expect(h.refused(alter({ name: 't' })).code).toBe('not_found');
    expect(
      h.refused({ type: 'deleteResource', kind: 'stream', name: 't', expectedRevision: null }).code,
    ).toBe('not_found');
  });
});

describe('deleting', () => {
  it('takes every assignment along in one revision', () => {
    h.place({ shard: 'stream:s/0', next: decided(['b1']) });
    h.place({ shard: 'stream:s/1', next: decided(['b2']) });
    const seen: unknown[] = [];
    h.ring.subscribe(
      h.state.revision,
      (set) => seen.push(set),
      () => undefined,
    );
    h.ok({ type: 'deleteResource', kind: 'stream', name: 's', expectedRevision: null });
    expect(seen).toMatchObject([
      {
        revision: h.state.revision,
        changes: [
          { kind: 'removed', shard: 'stream:s/0' },
          { kind: 'removed', shard: 'stream:s/1' },
          { kind: 'resourceRemoved', resource: 'stream:s' },
        ],
      },
    ]);
    h.ok({ type: 'removeBroker', broker: 'b1', incarnation: null });
  });
});

describe('abandoning a shard', () => {
  const abandon = (expectedGeneration: number | null = null): Command => ({
    type: 'abandonShard',
    shard: 'stream:s/0',
    expectedGeneration,
  });

  it('is refused while an in-sync copy is up, and at another generation', () => {
    h.place({ next: decided(['b1', 'b2']) });
    h.confirm('b1');
    h.ok({ type: 'setLifecycle', broker: 'b1', incarnation: 1, lifecycle: 'down', silentSinceMs: 0 });
    expect(h.refused(abandon())).toMatchObject({
      code: 'refused',
      message: expect.stringMatching(/b2 holds/),
    });
    h.ok({ type: 'setLifecycle', broker: 'b2', incarnation: 1, lifecycle: 'down', silentSinceMs: 0 });
    expect(h.refused(abandon(h.assignment().generation + 1)).code).toBe('stale');
    h.ok(abandon(h.assignment().generation));
    expect(h.state.assignments.has('stream:s/0')).toBe(false);
    expect(h.state.phase).toBe(h.state.appliedIndex);
  });

  it('is done of one that nobody ever served though its copies are up: it holds nothing', () => {
    h.place({ next: decided(['b1', 'b2']) });
    h.ok(abandon(h.assignment().generation));
    expect(h.state.assignments.has('stream:s/0')).toBe(false);
  });

  it('of what is not placed is not found', () => {
    expect(h.refused(abandon()).code).toBe('not_found');
    expect(h.refused({ type: 'abandonShard', shard: 's', expectedGeneration: null }).code).toBe(
      'invalid_argument',
    );
  });
});

describe('the policy', () => {
  it('is changed key by key, at the expected revision', () => {
    expect(h.refused({ type: 'setPolicy', expectedRevision: 9, patch: { paused: true } }).code).toBe(
      'conflict',
    );
    h.ok({ type: 'setPolicy', expectedRevision: 0, patch: { paused: true, maxMovesPerBroker: 2 } });
    expect(h.state.policy).toEqual({ ...DEFAULT_POLICY, paused: true, maxMovesPerBroker: 2 });
    expect(h.state.policyRevision).toBe(h.state.revision);
  });

  it.each<[string, object]>([
    ['no slot', { maxConcurrentMoves: 0 }],
    ['no hand-over', { maxConcurrentHandovers: 0 }],
    ['more slots than allowed', { maxMovesPerBroker: 1_001 }],
    ['passes without a pause', { passIntervalMs: 0 }],
    ['a time past the limit', { restoreAfterMs: 2 ** 31 }],
  ])('refuses %s', (_what, patch) => {
    expect(h.refused({ type: 'setPolicy', expectedRevision: null, patch }).code).toBe('limit_exceeded');
    expect(h.state.policy).toEqual(DEFAULT_POLICY);
  });
});

it.each([
  ['a label with a line break', { team: 'a\nb' }],
  ['a label with an escape', { team: '\u001b]0;title\u0007' }],
  ['a label whose name turns text around', { 'a\u202eb': 'x' }],
])('%s is refused by name, created or altered', (_what, labels) => {
  const h = new Harness();
  const refusal = { code: 'invalid_argument', message: expect.stringContaining('label') };
  expect(h.refused({ type: 'createResource', resource: resource('s', { labels }) })).toMatchObject(refusal);
  h.create('s');
  const alter = { type: 'alterResource', kind: 'stream', name: 's', expectedRevision: null, labels } as const;
  expect(h.refused(alter)).toMatchObject(refusal);
});

it('a label named __proto__, which an entry cannot carry, is refused before it is proposed', () => {
  const labels = JSON.parse('{"__proto__": "x"}') as Record<string, string>;
  const command = { type: 'createResource', resource: resource('s', { labels }) } as const;
  expect(commandProblem(command)).toMatchObject({
    code: 'invalid_argument',
    message: expect.stringContaining('__proto__'),
  });
});
