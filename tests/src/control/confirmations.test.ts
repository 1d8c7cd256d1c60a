import { beforeEach, describe, expect, it } from 'vitest';
import { Confirmations } from '../../../src/control/confirmations.ts';
import { decided, Harness } from '../apply/harness.ts';

let h: Harness;
let awaited: Confirmations;

beforeEach(() => {
  h = new Harness();
  h.register('b1');
  h.create('s');
  h.place({ next: decided(['b1']) });
  awaited = new Confirmations();
});

const overdue = (nowMs: number) => [...awaited.overdue(h.state, nowMs, 10_000)];

describe('leaders that have not confirmed', () => {
  it('are overdue so long after they were named, and no more once they have', () => {
    awaited.note(h.assignment(), 1_000);
    expect(overdue(10_999)).toEqual([]);
    expect(overdue(11_000)).toEqual([['stream:s/0', 'never']]);
    h.confirm('b1');
    expect(overdue(11_000)).toEqual([]);
    awaited.note(h.assignment(), 12_000);
    expect(overdue(99_000)).toEqual([]);
  });

  it('have their time anew at each epoch, not at each write', () => {
    awaited.note(h.assignment(), 0);
    awaited.note({ ...h.assignment(), generation: 99 }, 9_000);
    expect(overdue(10_000)).toHaveLength(1);
    h.register('b1');
    awaited.note(h.assignment(), 9_500);
    expect(overdue(10_000)).toEqual([]);
  });

  it('are found among what was there as a leadership began', () => {
    awaited.begin(h.state);
    awaited.turn(h.state, 5_000);
    expect(overdue(15_000)).toHaveLength(1);
  });
});
