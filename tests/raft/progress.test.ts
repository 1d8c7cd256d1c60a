import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { checkedLimits } from '../../raft/limits.ts';
import { Progress } from '../../raft/progress.ts';

describe('progress of a peer', () => {
  test('hazard 17: whatever it answers, in whatever order, next stays above match and the window is counted right', () => {
    const step = fc.tuple(fc.nat(6), fc.nat(20), fc.nat(20));
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const progress = new Progress(5);
        for (const [kind, a, b] of steps) {
          if (kind === 0) progress.backOff(a, b);
          else if (kind === 1) progress.acknowledge(a);
          else if (kind === 2) progress.becomeReplicate();
          else if (kind === 3) progress.becomeProbe();
          else if (kind === 4) progress.becomeSnapshot(a);
          else if (kind === 5) progress.startOver(a);
          else if (progress.state === 'replicate') progress.inflight.add((progress.next += 1) - 1, b);
          expect(progress.next).toBeGreaterThan(progress.match);
          expect(progress.inflight.count).toBeLessThanOrEqual(progress.next - 1 - progress.match);
        }
      }),
    );
  });

  test('an answer frees all that was sent up to it', () => {
    const progress = new Progress(1);
    progress.becomeReplicate();
    for (const last of [3, 6, 9]) progress.inflight.add(last, 100);
    progress.acknowledge(6);
    expect(progress.status(checkedLimits())).toMatchObject({
      match: 6,
      inflightMessages: 1,
      inflightBytes: 100,
    });
    expect(progress.isPaused(1, 1_000)).toBe(true);
    expect(progress.isPaused(2, 101)).toBe(false);
    expect(progress.isPaused(2, 100)).toBe(true);
  });

  test('a snapshot that fails is followed by a probe from where it would have reached', () => {
    const progress = new Progress(4);
    progress.becomeSnapshot(20);
    expect(progress.isPaused(9, 9)).toBe(true);
    progress.becomeProbe();
    expect(progress).toMatchObject({ state: 'probe', match: 0, next: 21 });
  });
});
