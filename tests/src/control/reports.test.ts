import { describe, expect, it } from 'vitest';
import { DEFAULT_POLICY } from '../../../placement/index.ts';
import { ReportBook } from '../../../src/control/reports.ts';
import type { AssignmentRow, BrokerRow } from '../../../src/state/index.ts';

const ROW: AssignmentRow = {
  shard: 'stream:orders/0',
  leader: 'b1',
  replicas: ['b1', 'b2'],
  inSync: ['b1'],
  generation: 5,
  epoch: 5,
  state: 'active',
  failedMoves: 0,
  move: {
    role: 'leader',
    from: 'b1',
    to: 'b2',
    step: 'staged',
    reason: 'balance',
    copied: true,
    drops: null,
    startedAtMs: 100,
    progressAtMs: 100,
  },
} as unknown as AssignmentRow;

const NOBODY = {
  leasedUntilMs: new Map<string, number>(),
  unheard: new Set<string>(),
  unconfirmed: new Map(),
};

const brokers = (incarnation: number): Map<string, BrokerRow> =>
  new Map([['b2', { id: 'b2', incarnation } as unknown as BrokerRow]]);

describe('progress of a move, by the offsets that its leader reports', () => {
  function reporting(incarnation = 1) {
    const book = new ReportBook(1_000);
    return (nowMs: number, offset: number, patch: { row?: AssignmentRow; incarnation?: number } = {}) => {
      const row = patch.row ?? ROW;
      const registered = brokers(patch.incarnation ?? incarnation);
      book.note(
        { shard: row.shard, generation: row.generation, leaderOffset: 900, followers: { b2: offset } },
        row,
        { destination: registered.get('b2'), nowMs, policy: DEFAULT_POLICY },
      );
      return book.view([row], registered, NOBODY).shards.get(row.shard)?.progressAtMs;
    };
  }

  it('is made where the offset of the copy rises, and not by a report that repeats it', () => {
    const progressAfter = reporting();
    expect(progressAfter(2_000, 10)).toBe(2_000);
    expect(progressAfter(3_000, 10)).toBe(2_000);
    expect(progressAfter(4_000, 11)).toBe(4_000);
    // A copy that was cut back has made progress only once it is past where it was.
    expect(progressAfter(5_000, 4)).toBe(4_000);
    expect(progressAfter(6_000, 11)).toBe(4_000);
    expect(progressAfter(7_000, 12)).toBe(7_000);
  });

  it('is not made by another generation of the row, and begins again with another process or another move', () => {
    const progressAfter = reporting();
    progressAfter(2_000, 10);
    expect(progressAfter(3_000, 10, { row: { ...ROW, generation: 6 } })).toBe(2_000);
    expect(progressAfter(4_000, 10, { incarnation: 2 })).toBe(4_000);
    const { move } = ROW;
    if (move === null) throw new Error('the row has a move');
    const again = { ...ROW, move: { ...move, startedAtMs: 4_500 } };
    expect(progressAfter(5_000, 10, { row: again, incarnation: 2 })).toBe(5_000);
  });
});
