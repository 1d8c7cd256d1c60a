import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../../raft/support/virtual-clock.ts';
import { countSpreads } from '../../../src/wire/rpc-levels.ts';
import { Harness } from '../apply/harness.ts';

/** One resource led as often by each broker as given; the figure alone. */
async function outOfLevel(
  brokers: Readonly<Record<string, { leads: number; weight?: number; maxShards?: number; drain?: boolean }>>,
): Promise<number> {
  const h = new Harness();
  for (const [id, { weight = 1, maxShards = null }] of Object.entries(brokers)) {
    h.register(id, { weight, maxShards });
  }
  const leaders = Object.entries(brokers).flatMap(([id, { leads }]) => Array<string>(leads).fill(id));
  h.create('r', { shards: leaders.length });
  for (const [i, leader] of leaders.entries()) {
    const [replicas, inSync] = [[leader], [leader]];
    const next = { leader, replicas, inSync, state: 'active', failedMoves: 0, move: null } as const;
    expect(h.place({ shard: `stream:r/${i}`, next })).toMatchObject({ result: 'accepted' });
  }
  for (const [id, { drain = false }] of Object.entries(brokers)) {
    if (drain) h.ok({ type: 'setDrain', broker: id, drain });
  }
  return (await countSpreads(h.state, new VirtualClock())).resourcesOutOfLevel;
}

describe('resources out of level', () => {
  it('are those of which a broker leads more or less than its share by weight', async () => {
    expect(await outOfLevel({ b1: { leads: 2 }, b2: { leads: 1 } })).toBe(0);
    expect(await outOfLevel({ b1: { leads: 3 }, b2: { leads: 1 } })).toBe(1);
    expect(await outOfLevel({ b1: { leads: 4, weight: 4 }, b2: { leads: 1 } })).toBe(0);
    expect(await outOfLevel({ b1: { leads: 3, weight: 4 }, b2: { leads: 2 } })).toBe(1);
  });

  it('count a broker at its cap as level, and one that drains as not until it leads nothing', async () => {
    expect(await outOfLevel({ b1: { leads: 1, maxShards: 1 }, b2: { leads: 5 } })).toBe(0);
    expect(await outOfLevel({ b1: { leads: 1, drain: true }, b2: { leads: 2 } })).toBe(1);
    expect(await outOfLevel({ b1: { leads: 0, drain: true }, b2: { leads: 3 } })).toBe(0);
  });
});
