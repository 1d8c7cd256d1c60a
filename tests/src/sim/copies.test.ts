import { describe, expect, it } from 'vitest';
import { CopyChecks, type RunningBroker } from '../../../src/sim/copy-checks.ts';
import { RecordChecks } from '../../../src/sim/record-checks.ts';
import type { AssignmentRow } from '../../../src/state/index.ts';

const SHARD = 'stream:s/0';
const row = (generation: number, inSync: readonly string[]): AssignmentRow => ({
  shard: SHARD,
  leader: 'b1',
  replicas: ['b1', 'b2'],
  inSync,
  generation,
  epoch: 1,
  state: 'active',
  failedMoves: 0,
  move: null,
  drained: false,
  stagedIncarnation: null,
  served: 'leader',
  decision: null,
  revision: 1,
});

/** Two brokers, each with so many records. */
function world(ends: Record<string, number>) {
  const records = new RecordChecks();
  const serving: Record<string, string[]> = { b1: [], b2: [] };
  const registered = new Set(Object.keys(ends));
  const brokers = new Map<string, RunningBroker>(
    Object.keys(ends).map((id) => [
      id,
      {
        description: id,
        get isRegistered() {
          return registered.has(id);
        },
        get serving() {
          return serving[id] ?? [];
        },
        endOf: () => ends[id] ?? 0,
      },
    ]),
  );
  return { records, serving, registered, ends, checks: new CopyChecks(records, () => brokers) };
}

describe('CopyChecks', () => {
  it('two brokers that serve a shard at the same instant', () => {
    const { checks, serving } = world({ b1: 0, b2: 0 });
    serving['b1'] = [SHARD];
    serving['b2'] = ['stream:s/1'];
    checks.look();
    serving['b2'] = ['stream:s/1', SHARD];
    expect(() => checks.look()).toThrow('b1 and b2 both serve stream:s/0');
  });

  it('a copy that counts as in sync and lacks what was acknowledged, once it does or once that is', () => {
    const { checks, records, ends } = world({ b1: 1, b2: 0 });
    checks.applied(row(1, ['b1']));
    records.acknowledged(SHARD, 0, 'a', 'b1');
    checks.acknowledged(SHARD);
    const lacks = 'b2 counts as in sync of stream:s/0 at generation 2 and holds 0 records of 1 acknowledged';
    expect(() => checks.applied(row(2, ['b1', 'b2']))).toThrow(lacks);
    ends['b2'] = 1;
    checks.applied(row(3, ['b1', 'b2']));
    records.acknowledged(SHARD, 1, 'b', 'b1');
    ends['b1'] = 2;
    expect(() => checks.acknowledged(SHARD)).toThrow('b2 counts as in sync');
  });

  it('goes by the newest row that any member has applied, and by brokers that have registered', () => {
    const { checks, records, registered } = world({ b1: 1, b2: 0 });
    records.acknowledged(SHARD, 0, 'a', 'b1');
    checks.applied(row(2, ['b1']));
    checks.applied(row(1, ['b1', 'b2']));
    registered.delete('b2');
    checks.applied(row(3, ['b1', 'b2', 'gone']));
    registered.add('b2');
    expect(() => checks.acknowledged(SHARD)).toThrow('at generation 3');
  });

  it('expects nothing of a shard whose last in-sync copy a fault has emptied, and everything otherwise', () => {
    const lost = (prepare: (w: ReturnType<typeof world>) => void) => {
      const w = world({ b1: 1, b2: 1 });
      w.records.acknowledged(SHARD, 0, 'a', 'b1');
      prepare(w);
      w.checks.applied(row(2, ['b2']));
      return w.records.acknowledgedEnd(SHARD) === 0;
    };
    const dies = ({ checks, registered }: ReturnType<typeof world>): void => {
      checks.wiped('b2');
      registered.delete('b2');
    };
    expect(lost(dies)).toBe(true);
    expect(lost(({ checks }) => checks.wiped('b2'))).toBe(false);
    expect(lost(({ registered }) => void registered.delete('b2'))).toBe(false);
    const w = world({ b1: 1, b2: 1 });
    w.records.acknowledged(SHARD, 0, 'a', 'b1');
    dies(w);
    w.checks.applied(row(2, ['b1', 'b2']));
    w.checks.applied(row(3, ['b1']));
    expect(w.records.acknowledgedEnd(SHARD)).toBe(1);
  });

  it('at rest, what in-sync copies have on disk', () => {
    const { checks, records } = world({ b1: 1, b2: 1 });
    checks.applied(row(1, ['b1', 'b2']));
    records.acknowledged(SHARD, 0, 'a', 'b1');
    const stored = (b2: readonly string[]) =>
      new Map([
        ['b1', new Map([[SHARD, ['a']]])],
        ['b2', new Map([[SHARD, b2]])],
      ]);
    checks.atRest(stored(['a', 'not acknowledged']));
    expect(() => checks.atRest(stored([]))).toThrow('b2 keeps 0 records of stream:s/0, 1 were acknowledged');
    expect(() => checks.atRest(stored(['z']))).toThrow('stream:s/0 has z at 0 on b2, and had a');
  });

  it('a client that is told it was served by a broker that may not serve', () => {
    const { checks } = world({ b1: 1 });
    checks.served('b1', 'read', SHARD, true);
    expect(() => checks.served('b1', 'read', SHARD, false)).toThrow(
      'b1 answers read of stream:s/0 and may not serve it any more',
    );
  });

  it('expects of a broker whose disk went back what it expects of any, once it has registered', () => {
    const { checks, records, registered } = world({ b1: 0, b2: 1 });
    checks.applied(row(1, ['b1', 'b2']));
    records.acknowledged(SHARD, 0, 'a', 'b2');
    registered.delete('b1');
    checks.wiped('b1');
    registered.add('b1');
    checks.look();
    registered.delete('b1');
    checks.applied(row(2, ['b1']));
    expect(records.acknowledgedEnd(SHARD)).toBe(1);
  });
});
