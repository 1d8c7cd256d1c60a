import { Packr } from 'msgpackr';
import { describe, expect, it } from 'vitest';
import { DEFAULT_POLICY } from '../../../placement/index.ts';
import {
  COMMAND_VERSION,
  decodeCommand,
  encodeCommand,
  UnknownCommand,
  type Command,
  type CommandEnvelope,
} from '../../../src/command/index.ts';
import { Malformed } from '../../../src/state/index.ts';
import { assignmentRow, brokerRow, decided, resource } from '../apply/harness.ts';

const packr = new Packr({ useRecords: false });

const COMMANDS: readonly Command[] = [
  {
    type: 'registerBroker',
    broker: {
      id: 'b1',
      zone: 'a',
      addresses: { client: 'h:1' },
      maxShards: 3,
      weight: 2,
      labels: { k: 'v' },
      storeId: 'x',
      starts: 3,
    },
  },
  {
    type: 'registerBroker',
    broker: {
      id: 'b1',
      zone: null,
      addresses: {},
      maxShards: null,
      weight: 1,
      labels: {},
      storeId: null,
      starts: null,
    },
  },
  { type: 'setLifecycle', broker: 'b1', incarnation: 4, lifecycle: 'left', silentSinceMs: 2 ** 40 },
  {
    ...{ type: 'setLifecycle', broker: 'b1', incarnation: 4, lifecycle: 'down', silentSinceMs: 0 },
    unheard: ['b2', 'b3'],
  },
  { type: 'setDrain', broker: 'b1', drain: true },
  { type: 'removeBroker', broker: 'b1', incarnation: null },
  { type: 'createResource', resource: resource('a/b/c', { zonePolicy: 'majority', labels: { é: '😀' } }) },
  { type: 'alterResource', kind: 'cache', name: 'c', expectedRevision: null },
  {
    type: 'alterResource',
    kind: 'cache',
    name: 'c',
    expectedRevision: 7,
    shards: 9,
    replicationFactor: 2,
    zonePolicy: null,
    labels: { gone: null, set: 'x' },
  },
  { type: 'deleteResource', kind: 'stream', name: 's', expectedRevision: 2 },
  {
    type: 'placement',
    rows: [
      {
        step: 'stage',
        shard: 'stream:s/0',
        role: 'leader',
        from: 'b1',
        to: 'b2',
        drops: null,
        reason: 'balance',
        copies: true,
        expect: 3,
        requires: [{ broker: 'b2', incarnation: 1, allowDraining: false }],
        opensEpoch: false,
        next: decided(['b1', 'b2'], {
          state: 'active',
          failures: [{ to: 'b3', times: 1, atMs: 9 }],
          move: {
            role: 'leader',
            from: 'b1',
            to: 'b2',
            step: 'staged',
            reason: 'balance',
            copied: true,
            drops: 'b1',
            startedAtMs: 1,
            progressAtMs: 2,
          },
        }),
        resourceRevision: 5,
        rule: 'level',
        detail: 'why',
      },
    ],
  },
  {
    type: 'report',
    broker: 'b1',
    incarnation: 1,
    shards: [
      { shard: 'stream:s/0', generation: 3, inSync: ['b1'], drained: false },
      { shard: 'stream:s/1', generation: 3, inSync: null, drained: true },
    ],
  },
  { type: 'confirm', broker: 'b1', incarnation: 1, shards: [{ shard: 'stream:s/0', generation: 3 }] },
  { type: 'setPolicy', expectedRevision: null, patch: {} },
  { type: 'setPolicy', expectedRevision: 3, patch: { ...DEFAULT_POLICY, maxMovesPerBroker: 4 } },
  { type: 'abandonShard', shard: 'stream:s/0', expectedGeneration: 9 },
  {
    type: 'importPart',
    importId: 'i',
    part: 0,
    brokers: [brokerRow('b1')],
    resources: [resource('s')],
    assignments: [assignmentRow('stream:s/0', ['b1'])],
  },
  { type: 'importCommit', importId: 'i', parts: 1, timeMs: 7, policy: DEFAULT_POLICY, overwrite: true },
  { type: 'openSession' },
];

const envelope = (command: Command): CommandEnvelope => ({
  version: COMMAND_VERSION,
  timeMs: 1_234,
  request: { session: 8, n: 2 },
  inTerm: 6,
  command,
});

describe('an entry', () => {
  it.each(COMMANDS.map((command) => [command.type, command] as const))(
    'of %s comes back as it was',
    (_type, command) => {
      const bytes = encodeCommand(envelope(command));
      expect(decodeCommand(bytes)).toEqual(envelope(command));
      expect(decodeCommand(encodeCommand(decodeCommand(bytes)))).toEqual(envelope(command));
    },
  );

  it('is bytes of its own, and reading it leaves nothing on them', () => {
    const one = encodeCommand(envelope({ type: 'openSession' }));
    const copy = Uint8Array.from(one);
    for (let i = 0; i < 100; i++)
      encodeCommand(envelope({ type: 'removeBroker', broker: 'x'.repeat(100), incarnation: null }));
    decodeCommand(one);
    expect(one.byteLength).toBe(one.buffer.byteLength);
    expect(Object.keys(one)).toEqual(Object.keys(copy));
    expect(one).toEqual(copy);
  });
});

/** Every place of a value, with the value there replaced. */
function* mutations(value: unknown, replace: (rest: unknown) => unknown): Generator {
  if (Array.isArray(value)) {
    for (const [i, item] of value.entries()) for (const m of mutations(item, replace)) yield value.with(i, m);
  } else if (typeof value === 'object' && value !== null) {
    for (const [key, item] of Object.entries(value))
      for (const m of mutations(item, replace)) yield { ...value, [key]: m };
  }
  yield replace(value);
}

const pack = (value: unknown) => new Uint8Array(packr.pack(value));

describe('an entry that lies is refused', () => {
  it('with a value of another type in any place', () => {
    for (const command of COMMANDS) {
      const wrong = (value: unknown) =>
        Array.isArray(value) ? 'x' : typeof value === 'object' && value !== null ? [value] : { odd: 1 };
      let places = 0;
      for (const bad of mutations(envelope(command), wrong)) {
        expect(() => decodeCommand(pack(bad)), JSON.stringify(bad)).toThrow(Malformed);
        places++;
      }
      expect(places).toBeGreaterThan(5);
    }
  });

  it('with a field more or less in any map but those of free keys', () => {
    const free = new Set(['labels', 'addresses']);
    const walk = function* (value: unknown, name = ''): Generator {
      if (Array.isArray(value)) {
        for (const [i, item] of value.entries()) for (const m of walk(item)) yield value.with(i, m);
      } else if (typeof value === 'object' && value !== null && !free.has(name)) {
        yield { ...value, surprise: 1 };
        for (const [key, item] of Object.entries(value))
          for (const m of walk(item, key)) yield { ...value, [key]: m };
      }
    };
    for (const command of COMMANDS) {
      for (const bad of walk(envelope(command))) {
        expect(() => decodeCommand(pack(bad)), JSON.stringify(bad)).toThrow(/surprise: is not a known field/);
      }
    }
    const [register] = COMMANDS;
    if (register?.type !== 'registerBroker') throw new Error('not there');
    const { zone: _zone, ...rest } = register.broker;
    expect(() =>
      decodeCommand(pack({ ...envelope(register), command: { ...register, broker: rest } })),
    ).toThrow(/broker.zone: /);
  });

  it.each<[string, unknown]>([
    ['past 2^53', 2 ** 60],
    ['of 64 bits', 2n ** 60n],
    ['with a fraction', 1.5],
    ['below zero', -1],
    ['NaN', Number.NaN],
    ['infinite', Infinity],
  ])('with a number %s', (_what, timeMs) => {
    expect(() => decodeCommand(pack({ ...envelope({ type: 'openSession' }), timeMs }))).toThrow(
      /entry.timeMs: must be/,
    );
  });

  it('cut anywhere, with bytes behind it, or no MessagePack at all', () => {
    const bytes = encodeCommand(envelope(COMMANDS[9] ?? { type: 'openSession' }));
    for (let length = 0; length < bytes.length; length++) {
      expect(() => decodeCommand(bytes.subarray(0, length)), `cut at ${length}`).toThrow(Malformed);
    }
    expect(() => decodeCommand(Uint8Array.from([...bytes, 0]))).toThrow(Malformed);
    expect(() => decodeCommand(Uint8Array.from([0xc1]))).toThrow(Malformed);
  });

  it('nested 20,000 deep', () => {
    const bytes = new Uint8Array(20_001).fill(0x91);
    bytes[20_000] = 0xc0;
    expect(() => decodeCommand(bytes)).toThrow(Malformed);
  });

  it('with __proto__ for a key', () => {
    const text =
      '{"version":1,"timeMs":0,"request":null,"inTerm":null,"command":{"type":"openSession"},"__proto__":{"x":1}}';
    const withProto = pack(new Map(Object.entries(JSON.parse(text) as object)));
    expect(() => decodeCommand(withProto)).toThrow(Malformed);
    expect(({} as { x?: number }).x).toBeUndefined();
  });

  it('of an unknown type or version is told apart: it is a newer member’s', () => {
    const later = { ...envelope({ type: 'openSession' }), command: { type: 'toString' } };
    expect(() => decodeCommand(pack(later))).toThrow(UnknownCommand);
    const version = { ...envelope({ type: 'openSession' }), version: COMMAND_VERSION + 1, more: 1 };
    expect(() => decodeCommand(pack(version))).toThrow(UnknownCommand);
  });
});
