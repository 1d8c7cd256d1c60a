import { describe, expect, it } from 'vitest';
import {
  operator,
  plan,
  simulate,
  type Assignment,
  type ClusterFile,
  type Phase,
} from '../../placement/index.ts';
import { assignment, broker, clusterOf, NO_REPORTS, resource, snapshot } from './support/rows.ts';

/**
 * `kv` has no log, so that each of its shards is handed over at once, as many a pass as there are slots. A copy of `log`
 * takes one of the places on b2, which the shares of leaders know nothing of. Where b1 is draining, b3 leads that and is full.
 */
function cluster(maxShards: number, drains = false): ClusterFile {
  const kv = (number: number): Assignment => assignment(`cache:kv/${number}`, ['b1']);
  return clusterOf({
    brokers: drains
      ? [
          broker('b1', { lifecycle: 'draining', drain: true }),
          broker('b2', { maxShards }),
          broker('b3', { maxShards: 1 }),
        ]
      : [broker('b1'), broker('b2', { maxShards })],
    resources: [
      resource('kv', 4, { kind: 'cache', durable: false }),
      resource('log', 1, { replicationFactor: 2 }),
    ],
    assignments: [kv(0), kv(1), kv(2), kv(3), assignment('stream:log/0', [drains ? 'b3' : 'b1', 'b2'])],
    policy: { maxConcurrentHandovers: 4 },
  });
}

/** What one pass stages of `kv`, by destination. */
function staged(file: ClusterFile): (string | null)[] {
  const { version: _version, ...rows } = file;
  const { steps } = plan(snapshot(rows), NO_REPORTS);
  return steps
    .filter(({ step, shard }) => step === 'stage' && shard.startsWith('cache:'))
    .map(({ to }) => to);
}

/** Throws where a step would pass a cap: the simulated cluster refuses it, as every member would. */
function settled(file: ClusterFile): Phase {
  const phase = simulate(file, { events: [], maxPasses: 200 }, { plan, ...operator }).phases[0];
  if (phase?.settled !== true) throw new Error('not settled');
  return phase;
}

describe('an ephemeral shard moves only where there is room for it, though it copies nothing', () => {
  it.each<[string, number, boolean, number]>([
    ['levelling, one place left of two that are wanted', 2, false, 1],
    ['levelling, none left', 1, false, 0],
    ['levelling, as many as are wanted', 3, false, 2],
    ['a drain, two places left of four', 3, true, 2],
    ['a drain, none left', 1, true, 0],
  ])('%s', (_what, maxShards, drains, moves) => {
    const file = cluster(maxShards, drains);
    expect(staged(file)).toEqual(Array.from({ length: moves }, () => 'b2'));
    const { cluster: end } = settled(file);
    expect(end.assignments.filter(({ replicas }) => replicas.includes('b2'))).toHaveLength(moves + 1);
  });

  it('says that there is no log to copy', () => {
    const { version: _version, ...rows } = cluster(3);
    const [step] = plan(snapshot(rows), NO_REPORTS).steps;
    expect(step?.copies).toBe(false);
    expect(step?.why.detail).toContain('there is no log to copy');
  });
});
