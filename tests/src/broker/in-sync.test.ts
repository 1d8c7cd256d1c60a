import { describe, expect, it } from 'vitest';
import {
  afterEvent,
  openInSync,
  REPLICA_LAG_MS,
  requiredCopies,
  setToReport,
  type InSyncEvent,
  type InSyncState,
} from '../../../src/broker/in-sync.ts';

const ROW = { generation: 5, replicas: ['b1', 'b2', 'b3'], inSync: ['b1', 'b2'] };

function after(state: InSyncState, ...events: InSyncEvent[]): InSyncState {
  return events.reduce(afterEvent, state);
}

const open = (end: number): InSyncState => openInSync({ self: 'b1', row: ROW, end, nowMs: 0 });
const attached = (copy: string, end: number, nowMs = 0): InSyncEvent => ({
  type: 'attached',
  copy,
  end,
  nowMs,
});
const acked = (copy: string, end: number, nowMs: number): InSyncEvent => ({
  type: 'acked',
  copy,
  end,
  nowMs,
});
const appended = (end: number, nowMs: number): InSyncEvent => ({ type: 'appended', end, nowMs });
const reported = (...inSync: string[]): InSyncEvent => ({ type: 'reported', inSync });
const answered = (accepted: boolean): InSyncEvent => ({ type: 'answered', generation: 5, accepted });

describe('the copies that a leader requires', () => {
  it('are those of every report at this generation that may have been applied', () => {
    const lost = after(open(0), reported('b1', 'b2', 'b3'), answered(false));
    expect(requiredCopies(lost)).toEqual(['b1', 'b2', 'b3']);
    // A second report without that copy, refused: the first may still be on its way.
    expect(requiredCopies(after(lost, reported('b1'), answered(false)))).toEqual(['b1', 'b2', 'b3']);
    expect(requiredCopies(after(lost, reported('b1'), answered(true)))).toEqual(['b1']);
  });

  it('stay in doubt after a report of the same set, which makes no generation', () => {
    const lost = after(open(0), reported('b1', 'b2', 'b3'), answered(false));
    const same = after(lost, reported('b2', 'b1'), answered(true));
    expect(same.row.generation).toBe(5);
    expect(requiredCopies(same)).toEqual(['b1', 'b2', 'b3']);
  });

  it('are those of the newest row, whatever older rows and answers come later', () => {
    const row = { ...ROW, generation: 7 };
    const newer = after(open(0), reported('b1', 'b2', 'b3'), { type: 'row', row, nowMs: 0 });
    expect(requiredCopies(newer)).toEqual(['b1', 'b2']);
    const old = { ...ROW, generation: 6, inSync: ['b1'] };
    expect(after(newer, { type: 'row', row: old, nowMs: 0 })).toBe(newer);
    expect(after(newer, reported('b1'), answered(true)).row.generation).toBe(7);
  });
});

describe('the set that a leader reports', () => {
  it('takes in a copy only while it is attached and holds everything', () => {
    expect(setToReport(after(open(3), attached('b3', 2)), 0)).toBeNull();
    const whole = after(open(3), attached('b3', 3));
    expect(setToReport(whole, 0)).toEqual(['b1', 'b2', 'b3']);
    expect(setToReport(after(whole, { type: 'detached', copy: 'b3' }), 0)).toBeNull();
  });

  it('waits for the answer to the last report', () => {
    const waiting = after(open(0), reported('b1', 'b2', 'b3'), attached('b3', 0));
    expect(setToReport(waiting, REPLICA_LAG_MS * 2)).toBeNull();
    expect(setToReport(after(waiting, answered(false)), 0)).toEqual(['b1', 'b2', 'b3']);
  });

  it('names a copy again that a lost report may have added, though it is gone, and then takes it out', () => {
    const lost = after(
      open(0),
      attached('b2', 0),
      reported('b1', 'b2', 'b3'),
      answered(false),
      appended(1, 0),
      acked('b2', 1, 0),
    );
    expect(lost.acknowledged).toBe(0);
    expect(setToReport(lost, 0)).toEqual(['b1', 'b2', 'b3']);
    const known = after(lost, reported('b1', 'b2', 'b3'), answered(true));
    expect(setToReport(known, REPLICA_LAG_MS)).toBeNull();
    expect(setToReport(known, REPLICA_LAG_MS + 1)).toEqual(['b1', 'b2']);
  });

  it('leaves out a copy by how long it has lacked a record, not by when it last said something', () => {
    const idle = after(open(0), attached('b2', 0));
    const late = after(idle, appended(1, 60_000));
    expect(setToReport(late, 60_000 + REPLICA_LAG_MS)).toBeNull();
    expect(setToReport(late, 60_001 + REPLICA_LAG_MS)).toEqual(['b1']);
    // It caught up in between: what it lacks now is new.
    const again = after(late, acked('b2', 1, 65_000), appended(2, 69_000));
    expect(setToReport(again, 69_000 + REPLICA_LAG_MS)).toBeNull();
    expect(setToReport(again, 69_001 + REPLICA_LAG_MS)).toEqual(['b1']);
  });

  it('keeps a copy that fetches steadily and is never quite whole under load', () => {
    let state = after(open(0), attached('b2', 0));
    for (let second = 0; second < 60; second++) {
      const nowMs = second * 1_000;
      state = after(state, appended(second + 2, nowMs), acked('b2', second + 1, nowMs + 500));
      expect(setToReport(state, nowMs + 500)).toBeNull();
    }
    // One that stands still, or fetches ever slower than records come, is out in the end.
    expect(setToReport(after(state, appended(100, 60_000), acked('b2', 62, 69_000)), 80_000)).toEqual(['b1']);
  });

  it('leaves out a copy that never reached the leader, counted from the opening or its last registration', () => {
    expect(setToReport(open(1), REPLICA_LAG_MS)).toBeNull();
    expect(setToReport(open(1), REPLICA_LAG_MS + 1)).toEqual(['b1']);
    const back = after(open(1), attached('b2', 1), { type: 'forgotten', copy: 'b2', nowMs: 30_000 });
    expect(setToReport(back, 30_000 + REPLICA_LAG_MS)).toBeNull();
    expect(setToReport(back, 30_001 + REPLICA_LAG_MS)).toEqual(['b1']);
  });
});
