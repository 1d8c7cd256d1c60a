import { describe, expect, it } from 'vitest';
import { DEFAULT_POLICY } from '../../../placement/index.ts';
import type { Entry } from '../../../raft/index.ts';
import { Machine } from '../../../src/apply/index.ts';
import { ROWS_PER_SLICE } from '../../../src/apply/machine.ts';
import { encodeCommand, type Command } from '../../../src/command/index.ts';
import type { ChangeSet, CommandResult } from '../../../src/state/index.ts';
import { ChangeRing } from '../../../src/watch/index.ts';
import { applyAll } from '../../support/apply-all.ts';
import { assignmentRow, brokerRow, Harness, importOf, resource } from './harness.ts';

/** Rows of the one long entry of each case: several slices, and no whole number of them. */
const ROWS = 4 * ROWS_PER_SLICE + 50;
const SHARDS = Array.from({ length: ROWS }, (_, n) => `stream:wide/${n}`);

/** Every shard on b1 and b2, led by b1. */
function wide(): Harness {
  const h = new Harness();
  const rows = {
    brokers: ['b1', 'b2'].map((id) => brokerRow(id, { incarnation: 1 })),
    resources: [resource('wide', { shards: ROWS, replicationFactor: 2 })],
    assignments: SHARDS.map((shard) => assignmentRow(shard, ['b1', 'b2'])),
  };
  for (const command of importOf(rows)) h.ok(command);
  for (const id of ['b1', 'b2']) h.register(id);
  return h;
}

function entryOf(index: number, command: Command, timeMs: number): Entry {
  const envelope = { version: 1, timeMs, request: null, inTerm: null, command };
  return { index, term: 1, kind: 'command', data: encodeCommand(envelope) };
}

interface Applied {
  readonly results: readonly (CommandResult | null)[];
  readonly turns: number;
  /** Changes, in all, of each set that watchers were told. */
  readonly told: readonly number[];
}

/** Applies one entry turn by turn; checks after each that readers see the state before it or after it. */
function applyInTurns(h: Harness, command: Command): Applied {
  const { machine, state } = h;
  const told: number[] = [];
  const unsubscribe = h.ring.subscribe(
    state.revision,
    (set: ChangeSet) => told.push(set.changes.length),
    () => undefined,
  );
  const { stateHash, appliedIndex, revision, timeMs, maxGeneration } = state;
  const before = { stateHash, appliedIndex, revision, timeMs, maxGeneration };
  const rows = state.assignments.list();
  const brokers = [...state.brokers.values()];
  const copies = new Map(state.copies);
  const moving = new Map(state.moving);
  const entry = entryOf(appliedIndex + 1, command, timeMs + 5);
  let turns = 0;
  let results: (CommandResult | null)[] = [];
  while (results.length === 0) {
    results = machine.apply([entry]);
    turns += 1;
    expect(machine.isPartWay).toBe(results.length === 0);
    if (results.length > 0) break;
    expect(told).toEqual([]);
    expect(state).toMatchObject(before);
    expect(state.assignments.size).toBe(rows.length);
    expect(state.assignments.list()).toEqual(rows);
    expect([...state.brokers.values()]).toEqual(brokers);
    expect(new Map(state.copies)).toEqual(copies);
    expect(new Map(state.moving)).toEqual(moving);
    expect(() => machine.snapshotParts()).toThrow(/half applied/);
  }
  h.log.push(entry);
  unsubscribe();
  return { results, turns, told };
}

const COMMANDS: readonly (readonly [string, Command, number])[] = [
  [
    'a registration with another store',
    {
      type: 'registerBroker',
      broker: {
        ...{ id: 'b1', zone: null, addresses: {}, maxShards: null, weight: 1, labels: {} },
        storeId: 'another',
        starts: null,
      },
    },
    ROWS + 1,
  ],
  [
    'a registration with the same store',
    {
      type: 'registerBroker',
      broker: {
        ...{ id: 'b2', zone: null, addresses: {}, maxShards: null, weight: 1, labels: {} },
        storeId: 'store-b2',
        starts: null,
      },
    },
    ROWS + 1,
  ],
  [
    'a broker that is down',
    { type: 'setLifecycle', broker: 'b2', incarnation: 2, lifecycle: 'down', silentSinceMs: 0 },
    ROWS + 1,
  ],
  [
    'a resource deleted',
    { type: 'deleteResource', kind: 'stream', name: 'wide', expectedRevision: null },
    ROWS + 1,
  ],
  [
    'a long confirm',
    {
      type: 'confirm',
      broker: 'b1',
      incarnation: 2,
      shards: SHARDS.map((shard) => ({ shard, generation: 2 })),
    },
    ROWS,
  ],
  [
    'a long report',
    {
      type: 'report',
      broker: 'b1',
      incarnation: 2,
      shards: SHARDS.map((shard) => ({ shard, generation: 2, inSync: ['b1'], drained: false })),
    },
    ROWS,
  ],
];

describe('an entry of many rows', () => {
  it.each(COMMANDS)(
    '%s: at most some rows a turn, and nobody sees a part of it',
    (_name, command, changes) => {
      const h = wide();
      const replica = new Machine(new ChangeRing());
      applyAll(replica, h.log);
      // Confirms and reports name the generation that the registrations left.
      const generation = h.assignment('stream:wide/0').generation;
      const named =
        command.type === 'confirm' || command.type === 'report'
          ? ({ ...command, shards: command.shards.map((shard) => ({ ...shard, generation })) } as Command)
          : command;
      const { results, turns, told } = applyInTurns(h, named);
      expect(results[0]).toMatchObject({ ok: true });
      expect(told).toEqual([changes]);
      expect(turns).toBeGreaterThanOrEqual(Math.floor(ROWS / ROWS_PER_SLICE));
      // A member that is asked for all it can in each call ends with the same bytes.
      applyAll(replica, h.log.slice(replica.view.appliedIndex));
      expect(replica.view.stateHash).toBe(h.state.stateHash);
      expect(replica.snapshot()).toEqual(h.machine.snapshot());
    },
  );

  it('an import over a used cluster: checked, removed and written in turns', () => {
    const h = wide();
    const shards = SHARDS.slice(0, ROWS - 7);
    const rows = {
      brokers: [brokerRow('c1')],
      resources: [resource('wide', { shards: ROWS })],
      assignments: shards.map((shard) => assignmentRow(shard, ['c1'])),
    };
    const [part, commit] = importOf(rows, { overwrite: true });
    h.ok(part);
    const { turns } = applyInTurns(h, commit);
    expect(turns).toBeGreaterThanOrEqual(Math.floor((3 * (ROWS - 7)) / ROWS_PER_SLICE));
    expect(h.state.assignments.size).toBe(ROWS - 7);
    expect([...h.state.brokers.keys()]).toEqual(['c1']);
    expect(h.state.policy).toEqual(DEFAULT_POLICY);
  });

  it('leaves a moment between two of them, however many come, in which a snapshot can be taken', () => {
    const h = wide();
    const at = h.state.appliedIndex;
    const [, confirm] = COMMANDS.find(([name]) => name === 'a long confirm') ?? [];
    const entries = [1, 2, 3, 4].map((n) => entryOf(at + n, confirm as Command, 0));
    const moments: number[] = [];
    while (h.state.appliedIndex < at + entries.length) {
      h.machine.apply(entries.slice(h.state.appliedIndex - at));
      if (!h.machine.isPartWay) moments.push(h.state.appliedIndex - at);
    }
    expect(moments).toEqual([1, 2, 3, 4]);
  });

  it('is gone where the process dies half-way: a restart from the snapshot before it applies it whole', () => {
    const h = wide();
    const snapshot = h.machine.snapshot();
    const at = h.state.appliedIndex;
    const [, remove] = COMMANDS.find(([name]) => name === 'a resource deleted') ?? [];
    const entry = entryOf(at + 1, remove as Command, 0);
    expect(h.machine.apply([entry])).toEqual([]);
    const restarted = new Machine(new ChangeRing());
    restarted.restore(snapshot, at);
    applyAll(restarted, [entry]);
    applyAll(h.machine, [entry]);
    expect(restarted.view.stateHash).toBe(h.state.stateHash);
    expect(restarted.snapshot()).toEqual(h.machine.snapshot());
  });

  it('a snapshot that arrives takes the place of what is half applied', () => {
    const h = wide();
    const at = h.state.appliedIndex;
    const ahead = new Machine(new ChangeRing());
    applyAll(ahead, h.log);
    const [, remove] = COMMANDS.find(([name]) => name === 'a resource deleted') ?? [];
    const entry = entryOf(at + 1, remove as Command, 0);
    applyAll(ahead, [entry]);
    expect(h.machine.apply([entry])).toEqual([]);
    h.machine.restore(ahead.snapshot(), at + 1);
    expect(h.machine.isPartWay).toBe(false);
    expect(h.state.stateHash).toBe(ahead.view.stateHash);
    h.ok({ type: 'openSession' });
    expect(h.state.appliedIndex).toBe(at + 2);
  });
});

describe('many small entries', () => {
  it('are applied a slice a turn', () => {
    const h = new Harness();
    const entries = Array.from({ length: 3 * ROWS_PER_SLICE }, (_, i) =>
      entryOf(i + 1, { type: 'openSession' }, 0),
    );
    expect(h.machine.apply(entries)).toHaveLength(ROWS_PER_SLICE);
    expect(h.state.appliedIndex).toBe(ROWS_PER_SLICE);
  });
});

describe('a snapshot that is read back', () => {
  it('replaces the state with its last step, a few rows a step', () => {
    const h = wide();
    const g = new Harness();
    g.register('b9');
    const steps = g.machine.restoreInSteps(h.machine.snapshot(), h.state.appliedIndex);
    let taken = 0;
    while (steps.next().done !== true) {
      taken += 1;
      expect([...g.state.brokers.keys()]).toEqual(['b9']);
    }
    expect(taken).toBeGreaterThanOrEqual(Math.floor(ROWS / ROWS_PER_SLICE));
    expect(g.machine.snapshot()).toEqual(h.machine.snapshot());
    expect(g.state.stateHash).toBe(h.state.stateHash);
  });
});
