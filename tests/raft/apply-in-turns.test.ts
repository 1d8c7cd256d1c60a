import { describe, expect, test } from 'vitest';
import { Applier } from '../../raft/applier.ts';
import type { RaftCore } from '../../raft/core.ts';
import { checkedLimits } from '../../raft/limits.ts';
import type { Entry, Snapshot, StateMachine } from '../../raft/index.ts';
import { VirtualClock } from './support/virtual-clock.ts';

/** Takes `turnsOf(index)` calls for an entry, and as many steps for a restore as the data has bytes. */
class SlowMachine implements StateMachine {
  readonly #turnsOf: (index: number) => number;
  #left = 0;
  state = 0;
  calls = 0;

  constructor(turnsOf: (index: number) => number) {
    this.#turnsOf = turnsOf;
  }

  get isPartWay(): boolean {
    return this.#left > 0;
  }

  apply([entry]: readonly Entry[]): unknown[] {
    if (entry === undefined) return [];
    this.calls += 1;
    this.#left = (this.#left || this.#turnsOf(entry.index)) - 1;
    if (this.#left > 0) return [];
    this.state = entry.index;
    return [`applied ${entry.index}`];
  }

  snapshot(): Uint8Array {
    return Uint8Array.of(this.state);
  }

  restore(_data: Uint8Array, index: number): void {
    this.state = index;
  }

  *restoreInSteps(data: Uint8Array, index: number): Generator<void, void> {
    for (let at = 1; at < data.length; at++) yield;
    this.state = index;
  }
}

function fixture(turnsOf: (index: number) => number, commitIndex: number) {
  const log = { commitIndex, snapshotIndex: 0 };
  const entry = (index: number): Entry => ({ index, term: 1, kind: 'command', data: new Uint8Array(1) });
  const compacted: number[] = [];
  const core = {
    log,
    committedEntries: (after: number): Entry[] =>
      Array.from({ length: log.commitIndex - after }, (_, i) => entry(after + 1 + i)),
    compact: (index: number) => void compacted.push(index),
  };
  const stateMachine = new SlowMachine(turnsOf);
  const applied: string[] = [];
  const applier = new Applier({
    core: core as unknown as RaftCore,
    stateMachine,
    limits: checkedLimits({ snapshotEveryEntries: 1, trailingEntries: 0 }),
    onApplied: ({ index }, result) => void applied.push(`${index}: ${String(result)}`),
  });
  return { applier, stateMachine, applied, compacted, log };
}

function snapshotAt(index: number, steps: number): Snapshot {
  const configuration = { voters: ['n1'], outgoing: [], learners: [], learnersNext: [] };
  return { meta: { index, term: 1, configuration }, data: new Uint8Array(steps) };
}

describe('what takes more than a turn', () => {
  test('an entry is gone on with, and answered once, by the turn that finishes it; no snapshot is taken on the way', () => {
    const { applier, stateMachine, applied } = fixture((index) => (index === 2 ? 3 : 1), 3);
    const seen: [number, boolean, boolean][] = [];
    while (applier.isBehind) {
      applier.applySlice();
      seen.push([applier.appliedIndex, stateMachine.isPartWay, applier.snapshotIsDue]);
    }
    expect(seen).toEqual([
      [1, false, true],
      [1, true, false],
      [1, true, false],
      [2, false, true],
      [3, false, true],
    ]);
    expect(applied).toEqual(['1: applied 1', '2: applied 2', '3: applied 3']);
  });

  test('a snapshot that arrives is read back a step a turn, and nothing is applied or taken meanwhile', () => {
    const { applier, stateMachine, log } = fixture(() => 1, 1);
    applier.applySlice();
    expect(applier.snapshotIsDue).toBe(true);
    applier.restore(snapshotAt(5, 4));
    log.commitIndex = 6;
    for (let step = 1; step < 4; step++) {
      applier.applySlice();
      expect([applier.appliedIndex, stateMachine.calls, applier.isBehind]).toEqual([1, 1, true]);
      expect(applier.snapshotIsDue).toBe(false);
    }
    applier.applySlice();
    expect([applier.appliedIndex, stateMachine.state]).toEqual([5, 5]);
    applier.applySlice();
    expect([applier.appliedIndex, stateMachine.calls, applier.isBehind]).toEqual([6, 2, false]);
  });

  test('a newer snapshot takes the place of one that is being read back', () => {
    const { applier, stateMachine, log } = fixture(() => 1, 0);
    applier.restore(snapshotAt(5, 3));
    applier.applySlice();
    log.commitIndex = 9;
    applier.restore(snapshotAt(9, 2));
    while (applier.isBehind) applier.applySlice();
    expect([applier.appliedIndex, stateMachine.state, stateMachine.calls]).toEqual([9, 9, 0]);
  });

  test('the stored snapshot is read back at the start, a step a turn', async () => {
    const { applier } = fixture(() => 1, 0);
    let turns = 0;
    class CountingClock extends VirtualClock {
      override defer(callback: () => void): void {
        turns += 1;
        super.defer(callback);
      }
    }
    const clock = new CountingClock();
    const restored = applier.restoreStored(snapshotAt(5, 4), clock);
    await clock.settle();
    await restored;
    expect([applier.appliedIndex, turns]).toEqual([5, 3]);
  });
});
