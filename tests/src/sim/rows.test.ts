import { describe, expect, it } from 'vitest';
import { RowChecks } from '../../../src/sim/row-checks.ts';
import { ShardMap, type AssignmentRow, type BrokerRow, type StateView } from '../../../src/state/index.ts';

const row = (patch: Partial<AssignmentRow>): AssignmentRow => ({
  shard: 'stream:s/0',
  leader: 'b1',
  replicas: ['b1', 'b2'],
  inSync: ['b1', 'b2'],
  generation: 5,
  epoch: 5,
  state: 'active',
  failedMoves: 0,
  move: null,
  drained: false,
  stagedIncarnation: null,
  served: 'leader',
  decision: null,
  revision: 1,
  ...patch,
});

function rowsOf(...rows: AssignmentRow[]): ShardMap<AssignmentRow> {
  const map = new ShardMap<AssignmentRow>();
  for (const each of rows) map.set(each.shard, each);
  return map;
}

/** Checks one change against a state of which only what they look at is there. */
function change(before: AssignmentRow, after: AssignmentRow, maxShards: number | null = null): () => void {
  const broker = { id: 'b1', maxShards } as BrokerRow;
  const state = {
    assignments: rowsOf(after, row({ shard: 'stream:s/1' })),
    brokers: new Map([['b1', broker]]),
  } as unknown as StateView;
  const changes = [{ kind: 'assignment' as const, assignment: after, previous: before }];
  return () => new RowChecks(state).applied({ revision: 2, changes });
}

describe('RowChecks', () => {
  it('takes a write that counts, and a change of leader to a copy in sync at a new epoch', () => {
    expect(change(row({}), row({ generation: 6 }))).not.toThrow();
    expect(change(row({}), row({ leader: 'b2', generation: 6, epoch: 6 }), 2)).not.toThrow();
  });

  it('a generation or an epoch that goes back', () => {
    expect(change(row({}), row({ generation: 4, epoch: 4 }))).toThrow('goes back from generation 5');
    expect(change(row({}), row({ generation: 6, epoch: 4 }))).toThrow('epoch 5');
  });

  it('a shard that begins at a generation that was used before', () => {
    const state = {
      assignments: rowsOf(row({ shard: 'stream:s/1', generation: 7 })),
      brokers: new Map(),
    } as unknown as StateView;
    const begins = (generation: number) => (): void => {
      const assignment = row({ generation, epoch: generation });
      checks.applied({ revision: 2, changes: [{ kind: 'assignment', assignment, previous: null }] });
    };
    const checks = new RowChecks(state);
    expect(begins(7)).toThrow('stream:s/0 begins at generation 7, 7 was used before');
    expect(begins(8)).not.toThrow();
    expect(begins(8)).toThrow('8 was used before');
  });

  it('a leader given its shard without a new epoch, or without being in sync', () => {
    expect(change(row({}), row({ leader: 'b2', generation: 6 }))).toThrow('without a new epoch');
    const before = row({ inSync: ['b1'] });
    expect(change(before, row({ leader: 'b2', generation: 6, epoch: 6 }))).toThrow('was not in sync');
  });

  it('a cap that is passed', () => {
    expect(change(row({}), row({ generation: 6 }), 1)).toThrow('b1 holds 2 copies, its cap is 1');
  });
});
