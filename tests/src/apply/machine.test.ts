import { applyAll } from '../../support/apply-all.ts';
import fc from 'fast-check';
import { Packr } from 'msgpackr';
import { describe, expect, it, vi } from 'vitest';
import type { Entry } from '../../../raft/index.ts';
import { Machine } from '../../../src/apply/index.ts';
import { COMMAND_VERSION, encodeCommand, UnknownCommand } from '../../../src/command/index.ts';
import { decodeSnapshot, encodeSnapshot } from '../../../src/state/index.ts';
import { ChangeRing } from '../../../src/watch/index.ts';
import { prepare, runScript, scriptArbitrary } from './script.ts';
import { decided, Harness, resource } from './harness.ts';

const RUNS = { numRuns: 150 } as const;

function replay(log: readonly Entry[]): Machine {
  const machine = new Machine(new ChangeRing());
  applyAll(machine, log);
  return machine;
}

/** A used cluster: something in every table. */
function used(): Harness {
  const h = new Harness();
  for (const id of ['b2', 'b1', 'b3']) h.register(id, { labels: { z: '1', a: '2' } });
  h.create('s', { shards: 11, labels: { y: '1', b: '2' } });
  for (const n of [10, 2, 0]) h.place({ shard: `stream:s/${n}`, next: decided(['b1', 'b2']) });
  const { session } = h.ok({ type: 'openSession' }) as { session: number };
  h.do({ type: 'createResource', resource: resource('t') }, { session, n: 3 });
  h.do({ type: 'createResource', resource: resource('u') }, { session, n: 2 });
  h.ok({
    type: 'importPart',
    importId: 'i',
    part: 1,
    brokers: [],
    resources: [resource('v')],
    assignments: [],
  });
  h.ok({ type: 'setPolicy', expectedRevision: null, patch: { paused: true } });
  return h;
}

describe('the machine', () => {
  it('counts no-ops and configurations as applied, and answers them with null', () => {
    const h = new Harness();
    expect(h.append('noop', new Uint8Array())).toBeNull();
    expect(h.append('config', new Uint8Array([1, 2]))).toBeNull();
    expect(h.state.appliedIndex).toBe(2);
    expect(h.state.revision).toBe(0);
  });

  it('takes entries in order, each once', () => {
    const h = used();
    const last = h.log.at(-1);
    if (last === undefined) throw new Error('no entry');
    expect(() => applyAll(h.machine, [last])).toThrow(/entries come in order/);
    expect(() => applyAll(h.machine, [{ ...last, index: last.index + 2 }])).toThrow(/entries come in order/);
  });

  it('never lets cluster time fall', () => {
    const h = new Harness();
    h.timeMs = 500;
    h.register('b1');
    h.timeMs = 100;
    h.register('b2');
    expect(h.state.timeMs).toBe(500);
    expect(h.broker('b2').registeredAtMs).toBe(500);
  });

  it('hazard 36: stops at a command of a type or version it does not know, and skips nothing', () => {
    const packr = new Packr({ useRecords: false });
    const envelope = { version: COMMAND_VERSION, timeMs: 0, request: null, inTerm: null };
    const h = used();
    const before = h.machine.snapshot();
    const later = packr.pack({ ...envelope, command: { type: 'splitShard', shard: 'stream:s/0' } });
    expect(() => h.append('command', later)).toThrow(UnknownCommand);
    expect(() => h.append('command', later)).toThrow(/splitShard/);
    const newer = packr.pack({ ...envelope, version: COMMAND_VERSION + 1, command: { type: 'openSession' } });
    expect(() => h.append('command', newer)).toThrow(/upgrade this member/);
    expect(h.machine.snapshot()).toEqual(before);
  });

  it('refuses what a leader decided in a term that is over, and forgets that it was asked', () => {
    const h = new Harness();
    const { session } = h.ok({ type: 'openSession' }) as { session: number };
    const command = { type: 'createResource', resource: resource('s') } as const;
    const envelope = { version: COMMAND_VERSION, timeMs: 0, request: { session, n: 1 }, command };
    const old = h.append('command', encodeCommand({ ...envelope, inTerm: 7 }));
    expect(old).toMatchObject({ ok: false, error: { code: 'no_leader' } });
    const current = h.append('command', encodeCommand({ ...envelope, inTerm: 1 }));
    expect(current).toMatchObject({ ok: true });
  });

  it('takes the hash at every thousandth entry, also across a snapshot', () => {
    const h = new Harness();
    for (let i = 0; i < 999; i++) h.append('noop', new Uint8Array());
    expect(h.state.hashAt).toEqual({ index: 0, hash: '0000000000000000' });
    h.register('b1');
    const at = { index: 1_000, hash: h.state.stateHash };
    expect(h.state.hashAt).toEqual(at);
    h.register('b2');
    expect(h.state.stateHash).not.toBe(at.hash);
    const copy = new Machine(new ChangeRing());
    copy.restore(h.machine.snapshot(), 1_001);
    expect(copy.view.hashAt).toEqual(at);
  });

  it('tells the ring of a restore, and keeps its view', () => {
    const h = used();
    const g = new Harness();
    let lost = 0;
    g.ring.subscribe(
      0,
      () => undefined,
      () => lost++,
    );
    const { view } = g.machine;
    g.machine.restore(h.machine.snapshot(), h.state.appliedIndex);
    expect(lost).toBe(1);
    expect(view.brokers.size).toBe(3);
    expect(g.ring.floor).toBe(h.state.revision);
  });

  it('comes in parts of the state as it was when they were begun, whatever is applied meanwhile', () => {
    const h = used();
    h.create('wide', { shards: 1_300 });
    for (let n = 1_299; n >= 0; n--) h.place({ shard: `stream:wide/${n}`, next: decided(['b1', 'b2']) });
    const whole = h.machine.snapshot();
    const index = h.state.appliedIndex;
    const iterator = h.machine.snapshotParts();
    const parts: Uint8Array[] = [];
    for (let next = iterator.next(); next.done !== true; next = iterator.next()) {
      parts.push(next.value);
      h.register('b1');
      if (parts.length === 3)
        h.ok({ type: 'deleteResource', kind: 'stream', name: 's', expectedRevision: null });
    }
    expect(new Uint8Array(Buffer.concat(parts))).toEqual(whole);
    expect(Math.max(...parts.map((part) => part.length))).toBeLessThan(whole.length / 2);
    const copy = new Machine(new ChangeRing());
    copy.restore(whole, index);
    const shards = copy.view.assignments.list().map(({ shard }) => shard);
    expect(shards.slice(-2)).toEqual(['stream:wide/1298', 'stream:wide/1299']);
    expect(copy.snapshot()).toEqual(whole);
  });

  it('refuses a snapshot that is cut, of a later version, or of another index', () => {
    const h = used();
    const data = h.machine.snapshot();
    const g = new Harness();
    expect(() => g.machine.restore(data.subarray(0, data.length - 1), 1)).toThrow(/cannot be read/);
    expect(() => g.machine.restore(data, 1)).toThrow(/not at 1/);
    const later = Buffer.from(data);
    later[later.indexOf('version') + 'version'.length] = 2;
    expect(() => g.machine.restore(later, h.state.appliedIndex)).toThrow(/format version 2/);
    const extra = Buffer.from(data);
    extra[0] = 0x89;
    expect(() => g.machine.restore(extra, h.state.appliedIndex)).toThrow(/no map of 8 keys/);
    const renamed = Buffer.from(data);
    renamed.write('imqorts', renamed.indexOf('imports'));
    expect(() => g.machine.restore(renamed, h.state.appliedIndex)).toThrow(/"imports" was expected/);
    const longer = Buffer.concat([data, Buffer.from([0])]);
    expect(() => g.machine.restore(longer, h.state.appliedIndex)).toThrow(/bytes follow/);
    expect(g.state.appliedIndex).toBe(0);
  });
});

describe('hazard 22: the same log makes the same bytes', () => {
  it('whatever the order in which maps were filled', () => {
    const h = used();
    const state = decodeSnapshot(h.machine.snapshot());
    const shuffled = decodeSnapshot(h.machine.snapshot());
    const rows = [...shuffled.brokers.values()];
    // Taken out and put back, the first row is the map's last.
    shuffled.begin(shuffled.appliedIndex + 1, 0);
    state.begin(state.appliedIndex + 1, 0);
    const [first] = rows;
    if (first === undefined) throw new Error('no broker');
    shuffled.deleteBroker(first.id);
    shuffled.putBroker(first);
    state.putBroker(first);
    const floor = shuffled.header.incarnationFloor;
    expect([...shuffled.brokers.keys()]).not.toEqual([...state.brokers.keys()]);
    const bytes = (s: typeof state) =>
      Buffer.from(encodeSnapshot(s))
        .toString('latin1')
        .replace(/incarnationFloor./, 'incarnationFloor?');
    expect(floor).toBe(1);
    expect(bytes(shuffled)).toBe(bytes(state));
  });

  it('with keys of labels and addresses in any order', () => {
    const one = new Harness();
    const two = new Harness();
    one.register('b1', { labels: { a: '1', b: '2' }, addresses: { x: 'h:1', y: 'h:2' } });
    two.register('b1', { labels: { b: '2', a: '1' }, addresses: { y: 'h:2', x: 'h:1' } });
    expect(two.state.stateHash).toBe(one.state.stateHash);
    expect(two.machine.snapshot()).toEqual(one.machine.snapshot());
  });

  it('in another time zone and locale', () => {
    const h = used();
    const { TZ: zone, LC_ALL: locale } = process.env;
    const byLocale = vi.spyOn(String.prototype, 'localeCompare').mockImplementation(() => {
      throw new Error('a comparison by locale');
    });
    try {
      process.env['TZ'] = 'Pacific/Kiritimati';
      process.env['LC_ALL'] = 'tr_TR.UTF-8';
      const copy = replay(h.log);
      expect(copy.snapshot()).toEqual(h.machine.snapshot());
      expect(copy.view.stateHash).toBe(h.state.stateHash);
    } finally {
      byLocale.mockRestore();
      for (const [key, value] of [
        ['TZ', zone],
        ['LC_ALL', locale],
      ] as const) {
        if (value === undefined) delete process.env[key];
        else process.env[key] = value;
      }
    }
  });
});

describe('over random commands', () => {
  it('a replay, a restore and a restore in the middle end in the same bytes and hash', () => {
    fc.assert(
      fc.property(scriptArbitrary, fc.nat(), (script, cut) => {
        const h = new Harness();
        prepare(h);
        runScript(h, script);
        const bytes = h.machine.snapshot();
        const replayed = replay(h.log);
        expect(replayed.view.stateHash).toBe(h.state.stateHash);
        expect(replayed.snapshot()).toEqual(bytes);

        const restored = new Machine(new ChangeRing());
        restored.restore(bytes, h.state.appliedIndex);
        expect(restored.view.stateHash).toBe(h.state.stateHash);
        expect(restored.snapshot()).toEqual(bytes);

        const at = cut % (h.log.length + 1);
        const middle = new Machine(new ChangeRing());
        middle.restore(replay(h.log.slice(0, at)).snapshot(), at);
        applyAll(middle, h.log.slice(at));
        expect(middle.view.stateHash).toBe(h.state.stateHash);
        expect(middle.snapshot()).toEqual(bytes);
      }),
      RUNS,
    );
  });
});
