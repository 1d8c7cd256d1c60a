import { describe, expect, it } from 'vitest';
import type { Step, WaitingRow } from '../../../placement/index.ts';
import { passPlanOf } from '../../../src/control/plan-summary.ts';

describe('what is kept of a plan', () => {
  it('counts its lists by reason, the first reason first, each with its first row', () => {
    const row = (shard: string, reason: string): WaitingRow => ({ shard, reason, detail: `${shard} waits` });
    const a = row('stream:s/0', 'no_room');
    const b = row('stream:s/1', 'settling');
    const steps = [{}, {}, {}] as Step[];
    const made = passPlanOf({
      steps,
      waiting: [a, b, row('stream:s/2', 'no_room'), row('stream:s/3', 'no_room')],
      unplaceable: [b],
      unspread: [],
      conflicts: [],
      minimumLeaderMoves: 4,
      nextDeadlineMs: null,
      get levels(): never {
        throw new Error('nobody asks for the levels');
      },
    });
    expect(made.steps).toBe(steps);
    const { waiting, unplaceable, ...figures } = made.summary;
    expect([...waiting]).toEqual([
      ['no_room', { count: 3, first: a }],
      ['settling', { count: 1, first: b }],
    ]);
    expect([...unplaceable]).toEqual([['settling', { count: 1, first: b }]]);
    expect(figures).toEqual({
      steps: 3,
      unspread: new Map(),
      minimumLeaderMoves: 4,
      nextDeadlineMs: null,
    });
  });
});
