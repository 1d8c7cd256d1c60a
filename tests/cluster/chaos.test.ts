import { describe, expect, it } from 'vitest';
import { diskFull, restored } from '../chaos/faults/index.ts';
import { playRound } from '../chaos/round.ts';

describe('acknowledged records on real processes', () => {
  it.each([diskFull, restored])('outlive a broker fault: $name', async (fault) => {
    const { failures, acknowledged, said } = await playRound(fault, 1);
    expect(failures, said).toEqual([]);
    expect(acknowledged).toBeGreaterThan(0);
  });
});
