import { describe, expect, it } from 'vitest';
import { shares } from '../../placement/share.ts';

function of(
  total: number,
  weights: number[],
  caps: number[] = weights.map(() => 0x7fffffff),
  live = weights.map(() => 1),
) {
  const { floor, ceiling, capped } = shares(total, {
    live: Uint8Array.from(live),
    weight: Int32Array.from(weights),
    cap: Int32Array.from(caps),
  });
  return { floor: [...floor], ceiling: [...ceiling], capped };
}

describe('shares', () => {
  it('are the same for equal weights, floor and ceiling one apart where it does not divide', () => {
    expect(of(12, [1, 1, 1])).toEqual({ floor: [4, 4, 4], ceiling: [4, 4, 4], capped: false });
    expect(of(13, [1, 1, 1])).toEqual({ floor: [4, 4, 4], ceiling: [5, 5, 5], capped: false });
  });

  it('follow weights', () => {
    expect(of(12, [2, 1, 1])).toEqual({ floor: [6, 3, 3], ceiling: [6, 3, 3], capped: false });
    expect(of(5, [2, 1, 1])).toEqual({ floor: [2, 1, 1], ceiling: [3, 2, 2], capped: false });
  });

  it('leave out who is not live', () => {
    expect(of(12, [1, 1, 1], undefined, [1, 0, 1])).toEqual({
      floor: [6, 0, 6],
      ceiling: [6, 0, 6],
      capped: false,
    });
    expect(of(3, [1], undefined, [0])).toEqual({ floor: [0], ceiling: [0], capped: false });
  });

  it('count a broker at its cap and share what is left, again where that fills another', () => {
    expect(of(12, [1, 1, 1], [2, 9, 9])).toEqual({ floor: [2, 5, 5], ceiling: [2, 5, 5], capped: true });
    // 30 in three parts is 10: the first is cut to 2, then 28 in two is 14, which cuts the second to 11.
    expect(of(30, [1, 1, 1], [2, 11, 99])).toEqual({
      floor: [2, 11, 17],
      ceiling: [2, 11, 17],
      capped: true,
    });
  });

  it('stop at the caps where they hold less than all', () => {
    expect(of(30, [1, 1], [2, 3])).toEqual({ floor: [2, 3], ceiling: [2, 3], capped: true });
  });
});
