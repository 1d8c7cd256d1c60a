import { beforeEach, describe, expect, it } from 'vitest';
import { DEFAULT_POLICY, type ShardReport } from '../../../placement/index.ts';
import { ReportBook } from '../../../src/control/reports.ts';
import { decided, Harness, staged } from '../apply/harness.ts';

const NOBODY = {
  leasedUntilMs: new Map<string, number>(),
  unheard: new Set<string>(),
  unconfirmed: new Map(),
};

let h: Harness;
let book: ReportBook;

beforeEach(() => {
  h = new Harness();
  for (const id of ['b1', 'b2']) h.register(id);
  h.create('s');
  h.place({ next: decided(['b1']) });
  h.confirm('b1');
  h.place({
    step: 'stage',
    next: decided(['b1', 'b2'], { inSync: ['b1'], state: 'active', move: staged() }),
  });
  book = new ReportBook(0);
});

/** What the leader says at `nowMs`, and whether a step could rest on it. */
function says(nowMs: number, leaderOffset: number, offset: number): boolean {
  const row = h.assignment();
  const report = { shard: row.shard, generation: row.generation, leaderOffset, followers: { b2: offset } };
  return book.note(report, row, { destination: h.state.brokers.get('b2'), nowMs, policy: DEFAULT_POLICY });
}

function known(): ShardReport | undefined {
  return book.view([h.assignment()], h.state.brokers, NOBODY).shards.get('stream:s/0');
}

describe('the rate of a copy', () => {
  it('is measured over two seconds, and anew after that', () => {
    says(0, 900, 0);
    says(1_000, 900, 50);
    expect(known()).toMatchObject({ lagRecords: 850, copiedPerSecond: null });
    says(2_000, 900, 100);
    expect(known()).toMatchObject({ lagRecords: 800, copiedPerSecond: 50 });
    says(4_000, 900, 120);
    expect(known()?.copiedPerSecond).toBe(10);
  });

  it('wakes a pass when what is missing has come to fit the fence, not before', () => {
    expect(says(0, 900, 0)).toBe(false);
    expect(says(2_000, 900, 100)).toBe(false);
    expect(says(12_000, 900, 600)).toBe(false);
    expect(says(13_000, 900, 650)).toBe(true);
  });

  it('of an earlier move or process says nothing', () => {
    says(0, 900, 0);
    says(2_000, 900, 100);
    h.register('b2', { storeId: 'fresh' });
    says(3_000, 900, 0);
    expect(known()).toMatchObject({ lagRecords: 900, copiedPerSecond: null });
  });
});
