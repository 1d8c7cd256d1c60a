import { applyAll } from '../../support/apply-all.ts';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { plan, type Broker, type Snapshot } from '../../../placement/index.ts';
import { Machine } from '../../../src/apply/index.ts';
import {
  COMMAND_VERSION,
  encodeCommand,
  type Command,
  type CommandResult,
  type PlacementRow,
  type RowResult,
} from '../../../src/command/index.ts';
import { rowOf } from '../../../src/control/placement-rows.ts';
import type { StateView } from '../../../src/state/index.ts';
import { ChangeRing } from '../../../src/watch/index.ts';
import { NO_REPORTS, policy } from '../../placement/support/rows.ts';
import { randomCluster } from '../../placement/support/random-cluster.ts';
import { assignmentRow, brokerRow, Harness, importOf, resource } from './harness.ts';

const snapshotOf = (state: StateView): Snapshot => ({
  nowMs: state.timeMs,
  brokers: [...state.brokers.values()],
  resources: [...state.resources.values()],
  assignments: state.assignments.list(),
  policy: state.policy,
  firstRegisteredAtMs: state.firstRegisteredAtMs,
  phase: state.phase,
});

/** What a leader decided of the state as it was. */
const decisions = (h: Harness): PlacementRow[] =>
  plan(snapshotOf(h.state), NO_REPORTS).steps.flatMap((step) => rowOf(step, h.state) ?? []);

/** Applies what was decided, whatever has happened since. */
const write = (h: Harness, rows: readonly PlacementRow[]): RowResult[] =>
  rows.length === 0 ? [] : (h.ok({ type: 'placement', rows: [...rows] }) as RowResult[]);

/** The same log on two more members: at one go, and over a snapshot taken in its middle. */
function sameEverywhere(h: Harness): void {
  const results = (machine: Machine, from: number, to: number): (CommandResult | null)[] =>
    applyAll(machine, h.log.slice(from, to));
  const whole = new Machine(new ChangeRing());
  const all = results(whole, 0, h.log.length);
  expect(whole.view.stateHash).toBe(h.state.stateHash);
  const middle = h.log.length >> 1;
  const first = new Machine(new ChangeRing());
  const before = results(first, 0, middle);
  const restored = new Machine(new ChangeRing());
  restored.restore(first.snapshot(), first.view.appliedIndex);
  expect([...before, ...results(restored, middle, h.log.length)]).toEqual(all);
  expect(restored.view.stateHash).toBe(h.state.stateHash);
}

/** Six shards on b1 and b2, all led by b1; b3 is empty: leaderships are handed to b2, and copied to b3. */
function lopsided(b3: Partial<Broker> = {}): Harness {
  const h = new Harness();
  h.timeMs = 60_000;
  const assignments = Array.from({ length: 6 }, (_, i) => assignmentRow(`stream:s/${i}`, ['b1', 'b2']));
  const rows = {
    brokers: [brokerRow('b1'), brokerRow('b2'), brokerRow('b3', b3)],
    resources: [resource('s', { shards: 6 })],
    assignments,
  };
  const slots = { maxConcurrentMoves: 2, maxConcurrentHandovers: 4 };
  for (const command of importOf(rows, { policy: policy(slots) })) h.ok(command);
  return h;
}

const register = (id: string, storeId: string): Command => ({
  type: 'registerBroker',
  broker: { id, zone: null, addresses: {}, maxShards: null, weight: 1, labels: {}, storeId, starts: null },
});

describe('a decision made of a state that has changed', () => {
  it('is taken where nothing has', () => {
    const h = lopsided();
    const rows = decisions(h);
    expect(rows.filter(({ to }) => to === 'b3')).toHaveLength(2);
    expect(rows.filter(({ to }) => to === 'b2')).toHaveLength(2);
    expect(write(h, rows).every(({ result }) => result === 'accepted')).toBe(true);
    sameEverywhere(h);
  });

  it.each<[string, (h: Harness) => unknown, string, RegExp]>([
    ['drained', (h) => h.ok({ type: 'setDrain', broker: 'b3', drain: true }), 'stale', /b3 is draining/],
    ['registered anew', (h) => h.ok(register('b3', 'x')), 'stale', /b3 is at incarnation 1, decided for 0/],
    [
      'removed',
      (h) => h.ok({ type: 'removeBroker', broker: 'b3', incarnation: null }),
      'stale',
      /b3 is not registered/,
    ],
    [
      'silent',
      (h) =>
        h.ok({
          type: 'setLifecycle',
          broker: 'b3',
          incarnation: 0,
          lifecycle: 'down',
          silentSinceMs: 59_000,
        }),
      'stale',
      /b3 is down/,
    ],
  ])('of a broker that was %s meanwhile is refused, and nothing else', (_, change, code, detail) => {
    const h = lopsided();
    const rows = decisions(h);
    change(h);
    const results = write(h, rows);
    rows.forEach(({ shard, to }, i) => {
      const result = results[i];
      if (to === 'b3') expect(result).toEqual({ shard, result: code, detail: expect.stringMatching(detail) });
      else expect(result).toMatchObject({ shard, result: 'accepted' });
    });
    for (const { replicas } of h.state.assignments.list()) expect(replicas).not.toContain('b3');
    sameEverywhere(h);
  });

  it('of a cap that another row of the same entry has reached is refused', () => {
    // Decided where b3 had room for both, written where it has room for one.
    const rows = decisions(lopsided());
    const h = lopsided({ maxShards: 1 });
    const results = write(h, rows).filter((_, i) => rows[i]?.to === 'b3');
    expect(results.map(({ result }) => result)).toEqual(['accepted', 'limit_exceeded']);
    expect(results[1]?.detail).toMatch(/b3 is at maxShards 1/);
    sameEverywhere(h);
  });

  it('of slots that are taken by now is refused', () => {
    const h = lopsided();
    const rows = decisions(h);
    const patch = { maxConcurrentMoves: 1, maxConcurrentHandovers: 1 };
    h.ok({ type: 'setPolicy', expectedRevision: null, patch });
    const codes = write(h, rows).map(({ result }) => result);
    expect(codes.filter((code) => code === 'accepted')).toHaveLength(2);
    expect(codes.filter((code) => code === 'limit_exceeded')).toHaveLength(2);
    sameEverywhere(h);
  });

  it('of a shard that was written since, or of another life of its resource, is refused', () => {
    const h = lopsided();
    const rows = decisions(h);
    h.ok(register('b2', 'store-b2'));
    for (const { result } of write(h, rows)) expect(result).toBe('stale');
    h.ok({ type: 'deleteResource', kind: 'stream', name: 's', expectedRevision: null });
    h.create('s', { shards: 6 });
    for (const { result } of write(h, rows)) expect(result).not.toBe('accepted');
    expect(h.state.assignments.size).toBe(0);
    sameEverywhere(h);
  });

  it('by a leader that was deposed is refused as a whole, though its entry reached the log', () => {
    const h = lopsided();
    const rows = decisions(h);
    const { stateHash, revision } = h.state;
    const command = { type: 'placement', rows } as const;
    const result = h.append(
      'command',
      encodeCommand({ version: COMMAND_VERSION, timeMs: 60_000, request: null, inTerm: 7, command }),
    );
    expect(result).toMatchObject({ ok: false, error: { code: 'no_leader' } });
    expect(h.state.revision).toBe(revision);
    expect([...h.state.assignments.list()].every(({ move }) => move === null)).toBe(true);
    expect(stateHash).not.toBe('');
    sameEverywhere(h);
  });

  it('never passes a cap or names a broker that takes nothing, whatever came between', () => {
    const shape = {
      brokers: 6,
      resources: 3,
      shards: 10,
      caps: true,
      zones: true,
      fresh: true,
      skewed: true,
    };
    const event = fc.record({
      what: fc.constantFrom('drain', 'anew', 'wiped', 'down', 'plan', 'slots', 'delete'),
      n: fc.nat(5),
    });
    const seen = new Set<string>();
    fc.assert(
      fc.property(randomCluster(shape), fc.array(event, { maxLength: 5 }), (file, events) => {
        const h = new Harness();
        h.timeMs = 60_000;
        const { brokers, resources, assignments, policy: given } = file;
        const rows = { brokers: [...brokers], resources: [...resources], assignments: [...assignments] };
        for (const command of importOf(rows, { policy: given })) h.ok(command);
        const decided = decisions(h);
        for (const { what, n } of events) happen(h, what, n);
        const held = copiesByBroker(h.state);
        const results = write(h, decided);
        const now = copiesByBroker(h.state);
        decided.forEach(({ next, requires }, i) => {
          seen.add(results[i]?.result ?? '');
          if (results[i]?.result !== 'accepted') return;
          for (const { broker, incarnation } of requires) {
            expect(h.state.brokers.get(broker)).toMatchObject({ incarnation, lifecycle: 'live' });
          }
          expect(next.replicas.every((id) => h.state.brokers.has(id))).toBe(true);
        });
        for (const { id, maxShards } of h.state.brokers.values()) {
          if (maxShards === null || (now.get(id) ?? 0) <= (held.get(id) ?? 0)) continue;
          expect(now.get(id)).toBeLessThanOrEqual(maxShards);
        }
        sameEverywhere(h);
      }),
      { numRuns: 150, seed: 1 },
    );
    expect([...seen].sort()).toEqual(expect.arrayContaining(['accepted', 'limit_exceeded', 'stale']));
  });
});

function copiesByBroker(state: StateView): Map<string, number> {
  const held = new Map<string, number>();
  for (const { replicas } of state.assignments.list()) {
    for (const id of replicas) held.set(id, (held.get(id) ?? 0) + 1);
  }
  return held;
}

function happen(h: Harness, what: string, n: number): void {
  const brokers = [...h.state.brokers.values()];
  const broker = brokers[n % brokers.length];
  if (broker === undefined) return;
  const { id, incarnation } = broker;
  switch (what) {
    case 'drain':
      h.ok({ type: 'setDrain', broker: id, drain: !broker.drain });
      return;
    case 'anew':
    case 'wiped': {
      const { zone, maxShards, weight } = broker;
      const storeId = what === 'anew' ? 'kept' : `wiped-${h.log.length}`;
      h.register(id, { zone, maxShards, weight, storeId });
      return;
    }
    case 'down':
      h.ok({ type: 'setLifecycle', broker: id, incarnation, lifecycle: 'down', silentSinceMs: 50_000 });
      return;
    case 'plan':
      write(h, decisions(h).slice(0, n + 1));
      return;
    case 'slots':
      h.ok({ type: 'setPolicy', expectedRevision: null, patch: { maxConcurrentMoves: 1 } });
      return;
    default: {
      const [first] = h.state.resources.values();
      if (first === undefined) return;
      h.ok({ type: 'deleteResource', kind: first.kind, name: first.name, expectedRevision: null });
    }
  }
}
