import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  COMMITTED_ROW_BYTES,
  MAX_BROKERS,
  MAX_PLACED_STATE_BYTES,
  MAX_RESOURCES,
  MAX_SHARDS,
  MAX_STAGED_BYTES,
  MAX_STATE_BYTES,
  SHARD_BYTES,
} from '../../../src/command/index.ts';
import {
  canonicalValue,
  ClusterState,
  encodeSnapshot,
  hashRow,
  IMPORT_EXPIRY_MS,
  MAX_SESSION_BYTES,
} from '../../../src/state/index.ts';
import { MAX_SNAPSHOT_BYTES } from '../../../src/wire/peer-messages.ts';
import { assignmentRow, brokerRow, decided, Harness, importOf, resource } from './harness.ts';
import { prepare, runScript, scriptArbitrary } from './script.ts';

/** One entry's worth of staged rows. */
const PART = { resources: Array.from({ length: 200 }, (_, i) => resource(`r${i}`, { labels: long('x') })) };

function long(letter: string): Record<string, string> {
  return { text: letter.repeat(4_000) };
}

/** A harness whose state takes nearly all it may. */
function full(): Harness {
  const h = new Harness();
  h.register('b1');
  h.create('s', { shards: 2, replicationFactor: 1 });
  for (let i = 0; i < 4; i += 1) h.create(`wide${i}`, { shards: 100_000 });
  h.create('rest', { shards: 99_900 });
  h.ok(importOf(PART, { importId: '1' })[0]);
  const few = { resources: PART.resources.slice(0, 5) };
  for (let part = 1; h.do({ ...importOf(few, { importId: '1' })[0], part } as never).ok; part += 1);
  return h;
}

describe('the bytes of the state', () => {
  it('are what its snapshot takes, and little more, whatever was asked', () => {
    fc.assert(
      fc.property(scriptArbitrary, (script) => {
        const h = new Harness();
        prepare(h);
        runScript(h, script);
        const { byteLength } = h.machine.snapshot();
        expect(h.state.bytes).toBeGreaterThanOrEqual(byteLength);
        expect(h.state.bytes).toBeLessThan(2_100 + byteLength * 1.4);
        const again = new Harness();
        again.machine.restore(h.machine.snapshot(), h.state.appliedIndex);
        expect(again.state.bytes).toBe(h.state.bytes);
      }),
      { numRuns: 40 },
    );
  });

  it('of a row count every value and every letter, whatever its length', () => {
    const value = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 3 },
        fc.constantFrom(null, true, false),
        fc.maxSafeNat(),
        fc.nat(70_000),
        fc.string({ unit: 'binary', maxLength: 300 }),
        fc.string({ maxLength: 40 }),
        fc.array(tie('value'), { maxLength: 20 }),
        fc.dictionary(
          fc.string({ minLength: 1 }).filter((key) => key !== '__proto__'),
          tie('value'),
          { maxKeys: 20 },
        ),
      ),
    })).value;
    fc.assert(
      fc.property(value, (drawn) => {
        const state = new ClusterState();
        const before = encodeSnapshot(state).byteLength;
        state.sessions.open(1);
        const empty = encodeSnapshot(state).byteLength;
        state.sessions.keep(1, 1, { ok: true, revision: 1, value: canonicalValue(drawn) });
        const row = canonicalValue({ session: 1, n: 1, result: { ok: true, revision: 1, value: drawn } });
        expect(before).toBeLessThan(empty);
        expect(hashRow('', row).bytes).toBeGreaterThanOrEqual(encodeSnapshot(state).byteLength - empty);
      }),
    );
  });
});

describe('the limits of the state', () => {
  it('leave room in a snapshot for what grows by itself', () => {
    expect(MAX_STATE_BYTES).toBeLessThan(MAX_PLACED_STATE_BYTES);
    expect(MAX_PLACED_STATE_BYTES).toBeLessThanOrEqual(MAX_SNAPSHOT_BYTES * 0.875);
    expect(MAX_SHARDS * SHARD_BYTES).toBeLessThanOrEqual(MAX_STATE_BYTES);
    const rows = MAX_BROKERS + MAX_RESOURCES + MAX_SHARDS;
    expect(MAX_STAGED_BYTES + rows * COMMITTED_ROW_BYTES).toBeLessThanOrEqual(MAX_STATE_BYTES);
    expect(MAX_SESSION_BYTES).toBeLessThan(MAX_STATE_BYTES / 4);
  });

  it('count a shard as what its row takes, and a staged row as what it takes once committed', () => {
    const h = new Harness();
    const brokers = ['broker-01', 'broker-02', 'broker-03'];
    for (const id of brokers) h.register(id);
    h.create('team-12/orders-345', { shards: 90_000, replicationFactor: 3 });
    const before = h.state.bytes;
    const detail = 'placed on the brokers with the fewest copies: broker-01 leads';
    const shard = 'stream:team-12/orders-345/89999';
    expect(h.place({ shard, next: decided(brokers), detail }).result).toBe('accepted');
    expect(h.state.bytes - before).toBeLessThanOrEqual(SHARD_BYTES);
    const row = assignmentRow('stream:s/1', ['b1'], { generation: 2_000_000 });
    const other = new Harness();
    const [part, commit] = importOf({
      brokers: [brokerRow('b1')],
      resources: [resource('s', { shards: 2 })],
      assignments: [row],
    });
    other.ok(part);
    const staged = other.state.bytes;
    other.ok(commit);
    expect(other.state.bytes - staged).toBeLessThanOrEqual(3 * COMMITTED_ROW_BYTES);
  });
});

describe('a state that is full', () => {
  it('refuses what makes it larger, says how large it is, and takes what keeps it going', () => {
    const h = full();
    expect(h.state.bytes).toBeLessThanOrEqual(MAX_STATE_BYTES);
    const refusals = [
      { type: 'createResource', resource: resource('new', { labels: long('n'), shards: 90 }) },
      { type: 'alterResource', kind: 'stream', name: 's', expectedRevision: null, shards: 92 },
      importOf(PART, { importId: '2' })[0],
    ] as const;
    for (const command of refusals) {
      expect(h.refused(command)).toMatchObject({
        code: 'limit_exceeded',
        message: expect.stringMatching(/bytes/),
      });
    }
    const { incarnation } = h.register('b1');
    expect(h.place({ next: decided(['b1']) }).result).toBe('accepted');
    expect(h.confirm('b1')).toBe('accepted');
    h.ok({ type: 'setLifecycle', broker: 'b1', incarnation, lifecycle: 'down', silentSinceMs: 0 });
    h.ok({ type: 'abortImport', importId: '1' });
    h.create('new', { shards: 90 });
  });
});

describe('staged imports', () => {
  it('are listed, and go when they are aborted or get no part for an hour of cluster time', () => {
    const h = new Harness();
    h.timeMs = 1_000;
    h.ok(importOf(PART, { importId: '7' })[0]);
    const empty = new Harness().state.bytes;
    expect(h.state.stagedImports).toMatchObject([
      { importId: '7', parts: 1, rows: 200, lastPartAtMs: 1_000 },
    ]);
    h.timeMs += IMPORT_EXPIRY_MS - 1;
    h.ok({ ...importOf(PART, { importId: '7' })[0], part: 1 } as never);
    h.timeMs += IMPORT_EXPIRY_MS - 1;
    h.append('noop', new Uint8Array());
    expect(h.state.stagedImports).toHaveLength(1);
    h.timeMs += 1;
    h.ok({ type: 'openSession' });
    expect(h.state.stagedImports).toEqual([]);
    h.ok(importOf(PART, { importId: '8' })[0]);
    h.ok({ type: 'abortImport', importId: '8' });
    expect(h.refused({ type: 'abortImport', importId: '8' }).code).toBe('not_found');
    expect(h.state.bytes - empty).toBeLessThan(200);
  });

  it('have their time from the snapshot too', () => {
    const h = new Harness();
    h.timeMs = 5_000;
    h.ok(importOf(PART, { importId: '7' })[0]);
    const again = new Harness();
    again.machine.restore(h.machine.snapshot(), h.state.appliedIndex);
    expect(again.state.stagedImports).toEqual(h.state.stagedImports);
  });
});

it('sessions whose answers take too much are forgotten, those unused the longest first', () => {
  const state = new ClusterState();
  const answer = { ok: true, revision: 1, value: 'x'.repeat(1024 * 1024) } as const;
  for (let session = 1; session <= 40; session += 1) {
    state.sessions.open(session);
    state.sessions.touch(session, session);
    state.sessions.keep(session, 1, answer);
  }
  expect(state.sessions.bytes).toBeLessThanOrEqual(MAX_SESSION_BYTES);
  expect([...state.sessions.rows.keys()].at(0)).toBe(10);
  expect([...state.sessions.rows.keys()].at(-1)).toBe(40);
});
