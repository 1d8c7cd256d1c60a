import { describe, expect, it } from 'vitest';
import { drawPlan } from '../../../src/sim/index.ts';
import { ElectionChecks } from '../../../src/sim/election-checks.ts';

const ELECTION_TIMEOUT_MS = 1_000;
const LOOK_MS = 50;

/** Looks through a stretch of time in which somebody leads as `isLed` says. */
function lookThrough(
  checks: ElectionChecks,
  { fromMs, toMs }: { fromMs: number; toMs: number },
  isLed: (nowMs: number) => boolean,
  topology: string | null = 'n1>n2',
  hasConnectedQuorum = true,
): void {
  for (let nowMs = fromMs; nowMs <= toMs; nowMs += LOOK_MS) {
    checks.look({ nowMs, topology, hasConnectedQuorum, isLed: isLed(nowMs) });
  }
}

describe('ElectionChecks', () => {
  it('a connected quorum that finds no leader within eight election timeouts', () => {
    const checks = new ElectionChecks(ELECTION_TIMEOUT_MS);
    lookThrough(checks, { fromMs: 0, toMs: 8_000 }, () => false);
    expect(() => lookThrough(checks, { fromMs: 8_050, toMs: 8_100 }, () => false)).toThrow(
      'no leader for 8050 of the 8050 ms that a connected quorum has lasted: n1>n2',
    );
  });

  it('leaders that are lost again and again, and one that is lost for a moment', () => {
    const leaderless = (partMs: number) => (nowMs: number) => nowMs % 3_000 >= partMs;
    const stable = new ElectionChecks(ELECTION_TIMEOUT_MS);
    lookThrough(stable, { fromMs: 0, toMs: 60_000 }, leaderless(400));
    const flapping = new ElectionChecks(ELECTION_TIMEOUT_MS);
    expect(() => lookThrough(flapping, { fromMs: 0, toMs: 60_000 }, leaderless(1_300))).toThrow('no leader');
  });

  it('time begins again where links change, something else fails, or no quorum is connected', () => {
    const checks = new ElectionChecks(ELECTION_TIMEOUT_MS);
    lookThrough(checks, { fromMs: 0, toMs: 7_000 }, () => false, 'n1>n2');
    lookThrough(checks, { fromMs: 7_050, toMs: 14_000 }, () => false, 'n1>n3');
    lookThrough(checks, { fromMs: 14_050, toMs: 40_000 }, () => false, null);
    lookThrough(checks, { fromMs: 40_050, toMs: 60_000 }, () => false, 'n1>n3', false);
    lookThrough(checks, { fromMs: 60_050, toMs: 67_000 }, () => false, 'n1>n3');
  });
});

describe('lasting topologies', () => {
  it('some seeds have one, and no other fault begins while it lasts', () => {
    const plans = Array.from({ length: 60 }, (_, i) => drawPlan(i + 1, { brokers: false }));
    const lasting = plans.filter(({ actions }) =>
      actions.some(({ type }) => type === 'center' || type === 'flap'),
    );
    expect(lasting.length).toBeGreaterThan(3);
    for (const { actions } of lasting) {
      const found = actions.filter((action) => action.type === 'center' || action.type === 'flap');
      expect(found).toHaveLength(1);
      for (const { atMs, forMs } of found) {
        expect(actions.filter((action) => action.atMs >= atMs && action.atMs < atMs + forMs)).toHaveLength(1);
      }
    }
  });
});
