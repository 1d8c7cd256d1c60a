import fc from 'fast-check';
import type { Move } from '../../../placement/index.ts';
import {
  MAX_COUNTER,
  type Command,
  type CommandResult,
  type PlacementRow,
} from '../../../src/command/index.ts';
import type { AssignmentRow } from '../../../src/state/index.ts';
import { assignmentRow, brokerRow, decided, importOf, resource, type Harness } from './harness.ts';

/** One drawn deed: what to do, and numbers that choose among what there is when it is done. */
export interface Deed {
  readonly deed: (typeof DEEDS)[number];
  readonly a: number;
  readonly b: number;
  readonly c: number;
}

const DEEDS = [
  'register',
  'registerEmpty',
  'down',
  'drain',
  'removeBroker',
  'create',
  'alter',
  'delete',
  'place',
  'place',
  'place',
  'step',
  'step',
  'step',
  'step',
  'wild',
  'report',
  'report',
  'confirm',
  'policy',
  'abandon',
  'import',
  'session',
  'retry',
  'noop',
] as const;

const deed = fc.record({
  deed: fc.constantFrom(...DEEDS),
  a: fc.nat(1_000),
  b: fc.nat(1_000),
  c: fc.nat(1_000),
});

export const scriptArbitrary: fc.Arbitrary<readonly Deed[]> = fc.array(deed, {
  minLength: 20,
  maxLength: 120,
});

const BROKERS = ['b1', 'b2', 'b3', 'b4'] as const;
const NAMES = ['s', 't', 'a/b'] as const;

const pick = <T>(items: readonly T[], n: number): T => {
  const item = items[n % items.length];
  if (item === undefined) throw new Error('nothing to pick from');
  return item;
};

/** Most deeds need something to be done to. */
export function prepare(h: Harness): void {
  for (const id of ['b1', 'b2', 'b3']) h.register(id);
  h.create('s', { shards: 3 });
  h.ok({ type: 'setPolicy', expectedRevision: null, patch: { maxConcurrentMoves: 2 } });
}

/** Runs drawn deeds against a harness; `after` sees each one's result. */
export function runScript(
  h: Harness,
  script: readonly Deed[],
  after: (command: Command | null, result: CommandResult | null) => void = () => undefined,
): void {
  const sessions: number[] = [];
  for (const [i, drawn] of script.entries()) {
    h.timeMs += drawn.c;
    if (drawn.deed === 'noop') {
      h.append('noop', new Uint8Array());
      after(null, null);
      continue;
    }
    for (const { command, request } of commandsOf(h, drawn, i, sessions)) {
      const result = h.do(command, request);
      if (command.type === 'openSession') sessions.push(h.state.appliedIndex);
      after(command, result);
    }
  }
}

interface Asked {
  readonly command: Command;
  readonly request: { readonly session: number; readonly n: number } | null;
}

function commandsOf(
  h: Harness,
  { deed: name, a, b, c }: Deed,
  i: number,
  sessions: readonly number[],
): Asked[] {
  const plain = (...commands: Command[]): Asked[] => commands.map((command) => ({ command, request: null }));
  const broker = pick(BROKERS, a);
  const kind = b % 4 === 0 ? 'cache' : 'stream';
  const key = { kind, name: pick(NAMES, b) } as const;
  const rows = [...h.state.assignments.list()];
  switch (name) {
    case 'register':
    case 'registerEmpty': {
      const storeId = name === 'register' ? `store-${broker}` : b % 2 === 0 ? null : `fresh-${i}`;
      const maxShards = c % 5 === 0 ? 3 : null;
      const spec = {
        id: broker,
        zone: null,
        addresses: {},
        maxShards,
        weight: 1 + (c % 3),
        labels: {},
        storeId,
        // Mostly one more than last time, at times not, and at times none.
        starts: storeId === null || c % 4 === 0 ? null : c % 4 === 1 ? 1 : i + 1,
      };
      return plain({ type: 'registerBroker', broker: spec });
    }
    case 'down': {
      const incarnation = (h.state.brokers.get(broker)?.incarnation ?? 1) - (c % 7 === 0 ? 1 : 0);
      const lifecycle = b % 3 === 0 ? 'left' : 'down';
      return plain({
        type: 'setLifecycle',
        broker,
        incarnation: Math.max(0, incarnation),
        lifecycle,
        silentSinceMs: a,
      });
    }
    case 'drain':
      return plain({ type: 'setDrain', broker, drain: b % 2 === 0 });
    case 'removeBroker':
      return plain({ type: 'removeBroker', broker, incarnation: null });
    case 'create':
      return plain({
        type: 'createResource',
        resource: resource(key.name, {
          kind,
          shards: 1 + (a % 3),
          durable: c % 4 !== 0,
          labels: { n: String(a) },
        }),
      });
    case 'alter':
      return plain({
        type: 'alterResource',
        ...key,
        expectedRevision: null,
        shards: 1 + (a % 5),
        labels: { x: String(c) },
      });
    case 'delete':
      return plain({ type: 'deleteResource', ...key, expectedRevision: null });
    case 'place': {
      const shard = `${kind}:${key.name}/${a % 3}`;
      const next = decided([broker, ...(c % 2 === 0 ? [pick(BROKERS, a + 1)] : [])]);
      return plain({ type: 'placement', rows: [h.row({ shard, next })] });
    }
    case 'step':
      return rows.length === 0 ? [] : plain({ type: 'placement', rows: [stepOf(h, pick(rows, a), b)] });
    case 'wild': {
      // Rows that no planner would decide: each must be refused or leave a row that is whole.
      if (rows.length === 0) return [];
      const row = pick(rows, a);
      const next = { ...decided([broker, pick(BROKERS, b), pick(BROKERS, c)]), leader: pick(BROKERS, c) };
      return plain({ type: 'placement', rows: [h.row({ shard: row.shard, next, opensEpoch: a % 2 === 0 })] });
    }
    case 'report': {
      if (rows.length === 0) return [];
      const row = pick(rows, a);
      const inSync = b % 4 === 0 ? null : row.replicas.filter((_, n) => ((c >> n) & 1) === 0);
      const incarnation = h.state.brokers.get(row.leader)?.incarnation ?? 0;
      const generation = row.generation - (c % 9 === 0 ? 1 : 0);
      const shards = [{ shard: row.shard, generation, inSync, drained: b % 2 === 0 }];
      return plain({ type: 'report', broker: b % 11 === 0 ? broker : row.leader, incarnation, shards });
    }
    case 'confirm': {
      if (rows.length === 0) return [];
      const { leader, shard, generation } = pick(rows, a);
      const incarnation = h.state.brokers.get(leader)?.incarnation ?? 0;
      return plain({ type: 'confirm', broker: leader, incarnation, shards: [{ shard, generation }] });
    }
    case 'policy':
      return plain({
        type: 'setPolicy',
        expectedRevision: null,
        patch: { maxConcurrentMoves: a % 4, paused: b % 2 === 0 },
      });
    case 'abandon': {
      if (rows.length === 0) return [];
      const { shard, inSync } = pick(rows, a);
      const downs = inSync.map((id): Command => ({
        type: 'setLifecycle',
        broker: id,
        incarnation: h.state.brokers.get(id)?.incarnation ?? 0,
        lifecycle: 'down',
        silentSinceMs: b,
      }));
      return plain(...(c % 3 === 0 ? [] : downs), { type: 'abandonShard', shard, expectedGeneration: null });
    }
    case 'import': {
      const file = {
        brokers: [brokerRow('b1', { incarnation: a % 7 === 0 ? MAX_COUNTER : a % 3 }), brokerRow('b2')],
        resources: [resource('s', { shards: 2 })],
        assignments: [
          assignmentRow('stream:s/1', ['b1', 'b2'], { generation: b % 7 === 0 ? MAX_COUNTER : 1 + (b % 5) }),
        ],
      };
      const [part, commit] = importOf(file, { importId: `i${i}`, overwrite: c % 2 === 0 });
      return b % 3 === 0 ? plain(part) : plain(part, commit);
    }
    case 'session':
      return plain({ type: 'openSession' });
    case 'retry': {
      const session = sessions.length === 0 ? 1 : pick(sessions, a);
      const command: Command = { type: 'createResource', resource: resource(`r${b % 20}`) };
      return [{ command, request: { session, n: b % 20 } }];
    }
    case 'noop':
      return [];
  }
}

/** The next step of a shard's move, or the start of one, as a planner would decide it. */
function stepOf(h: Harness, row: AssignmentRow, n: number): PlacementRow {
  const { shard, leader, replicas, inSync, failedMoves, move } = row;
  const base = { leader, replicas, inSync, failedMoves, state: row.state, move };
  if (move === null) {
    const to = pick(BROKERS, n);
    const started: Move = {
      role: n % 3 === 0 ? 'follower' : 'leader',
      from: n % 3 === 0 ? null : leader,
      to,
      step: n % 3 === 0 ? 'joining' : 'staged',
      reason: 'balance',
      copied: !replicas.includes(to),
      drops: null,
      startedAtMs: h.state.timeMs,
      progressAtMs: h.state.timeMs,
    };
    const set = replicas.includes(to) ? replicas : [...replicas, to];
    return h.row({
      shard,
      step: n % 3 === 0 ? 'join' : 'stage',
      next: { ...base, replicas: set, move: started },
    });
  }
  if (n % 7 === 0) {
    const next = { ...base, state: 'assigning' as const, move: null, failedMoves: failedMoves + 1 };
    return h.row({ shard, step: 'abandon', opensEpoch: true, next });
  }
  if (move.step === 'joining') return h.row({ shard, step: 'seat', next: { ...base, move: null } });
  if (move.step === 'staged') {
    const next = { ...base, state: 'draining' as const, move: { ...move, step: 'fenced' as const } };
    return h.row({ shard, step: 'fence', opensEpoch: true, next });
  }
  const next = { ...base, leader: move.to, state: 'assigning' as const, move: null };
  return h.row({ shard, step: 'cutOver', opensEpoch: true, next });
}
