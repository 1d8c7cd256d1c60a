import { describe, expect, it } from 'vitest';
import type { Entry, StateMachine } from '../../../raft/index.ts';
import { COMMAND_VERSION, encodeCommand, type Command } from '../../../src/command/index.ts';
import { checkConditions } from '../../../src/sim/condition-checks.ts';
import { Harness } from '../apply/harness.ts';

const SHARD = 'stream:s/0';
const ALONE = {
  leader: 'b1',
  replicas: ['b1'],
  inSync: ['b1'],
  state: 'assigning',
  failedMoves: 0,
  move: null,
} as const;

/** A state with one shard, and a machine before it that takes whatever it is given. */
function world() {
  const harness = new Harness();
  harness.register('b1');
  harness.create('s', { replicationFactor: 1 });
  harness.place({ shard: SHARD, next: ALONE });
  const generation = harness.state.assignments.get(SHARD)?.generation ?? 0;
  const breaches: string[] = [];
  const fail = (error: Error): void => void breaches.push(error.message);
  const answer = (result: string) => [
    { ok: true, revision: 1, value: [{ shard: SHARD, result, detail: '' }] },
  ];
  const taking = (result: string): StateMachine => ({
    apply: () => answer(result),
    snapshot: () => new Uint8Array(),
    restore: () => {},
  });
  const apply = (command: Command, machine: StateMachine): unknown[] => {
    const envelope = { version: COMMAND_VERSION, timeMs: 0, request: null, inTerm: null, command };
    const entry: Entry = {
      index: harness.state.appliedIndex + 1,
      term: 1,
      kind: 'command',
      data: encodeCommand(envelope),
    };
    return checkConditions(machine, harness.state, fail).apply([entry]);
  };
  const report = (named: number): Command => ({
    type: 'report',
    broker: 'b1',
    incarnation: 1,
    shards: [{ shard: SHARD, generation: named, inSync: null, drained: false }],
  });
  return { harness, generation, breaches, taking, apply, report };
}

describe('checkConditions', () => {
  it('lets pass what names the very generation, what is refused, and what names none', () => {
    const { generation, breaches, taking, apply, report } = world();
    apply(report(generation), taking('accepted'));
    apply(report(generation - 1), taking('stale'));
    apply({ type: 'openSession' }, taking('accepted'));
    expect(breaches).toEqual([]);
  });

  it('a report and a confirm that are taken at another generation', () => {
    const { generation, breaches, taking, apply, report } = world();
    apply(report(generation - 1), taking('accepted'));
    const shards = [{ shard: SHARD, generation: generation + 1 }];
    apply({ type: 'confirm', broker: 'b1', incarnation: 1, shards }, taking('accepted'));
    const taken = `unsafe: entry 4 is taken for ${SHARD} at generation ${generation}, it names`;
    expect(breaches).toEqual([`${taken} ${generation - 1}`, `${taken} ${generation + 1}`]);
  });

  it('an entry that is finished in a later turn, and what comes after it', () => {
    const { harness, generation, breaches, report } = world();
    const turns = [[], ['first'], ['second']];
    const machine: StateMachine = {
      apply: () => turns.shift() ?? [],
      isPartWay: true,
      snapshot: () => new Uint8Array(),
      restore: () => {},
    };
    const envelope = { version: COMMAND_VERSION, timeMs: 0, request: null, inTerm: null };
    const data = encodeCommand({ ...envelope, command: report(generation) });
    const entries = [4, 5].map((index): Entry => ({ index, term: 1, kind: 'command', data }));
    const checked = checkConditions(machine, harness.state, (error) => breaches.push(error.message));
    expect(checked.apply(entries)).toEqual([]);
    expect(checked.isPartWay).toBe(true);
    expect(checked.apply(entries)).toEqual(['first', 'second']);
    expect(breaches).toEqual([]);
  });

  it('leaves the machine as it is: its answers, its snapshots', () => {
    const { harness, generation, breaches, apply, report } = world();
    const { machine } = harness;
    const before = machine.snapshot();
    const checked = checkConditions(machine, harness.state, () => {});
    expect(checked.snapshot()).toEqual(before);
    expect(Buffer.concat([...joined(checked)])).toEqual(Buffer.from(before));
    const [result] = apply(report(generation - 1), machine);
    expect(result).toMatchObject({ ok: true, value: [{ shard: SHARD, result: 'stale' }] });
    expect(breaches).toEqual([]);
  });
});

function* joined(machine: StateMachine): Generator<Uint8Array> {
  const parts = machine.snapshotParts?.();
  for (let part = parts?.next(); part?.done === false; part = parts?.next()) yield part.value;
}
