import { describe, expect, it } from 'vitest';
import { MAX_FAILURES, plan, type ClusterFile, type Plan } from '../../placement/index.ts';
import { withFailure } from '../../placement/failures.ts';
import { SimCluster } from '../../placement/sim-cluster.ts';
import { assignment, broker, clusterOf, resource } from './support/rows.ts';

const BAD = 'b2';
const HOUR_MS = 3_600_000;

/** A cluster in which no copy on `b2` ever comes into sync, though its broker beats. */
class WithBadBroker {
  readonly cluster: SimCluster;
  /** Moves to the bad broker, by shard. */
  readonly tries = new Map<string, number>();
  last: Plan | null = null;

  constructor(file: ClusterFile) {
    this.cluster = new SimCluster(file);
  }

  /** Until nothing more is due before `untilMs`. */
  run(untilMs: number): void {
    for (let passes = 0; passes < 2_000; passes++) {
      this.cluster.beginPass();
      this.last = plan(this.cluster.snapshot(), this.cluster.reports());
      for (const step of this.last.steps) {
        this.cluster.carryOut(step);
        const { move } = step.next;
        if (move?.to !== BAD) continue;
        this.cluster.arriveAt(step.shard, BAD, Infinity);
        if (step.step === 'stage' || step.step === 'join') this.#count(step.shard);
      }
      if (this.last.steps.length > 0) continue;
      const dueMs = this.last.nextDeadlineMs ?? Infinity;
      const comes = [...this.cluster.assignments.values()].some(
        ({ move }) => move !== null && move.to !== BAD,
      );
      if (comes) continue;
      if (dueMs > untilMs) return;
      this.cluster.nowMs = dueMs;
    }
    throw new Error('it never settled');
  }

  get mostTries(): number {
    return Math.max(0, ...this.tries.values());
  }

  holders(): Set<string> {
    return new Set([...this.cluster.assignments.values()].flatMap(({ replicas }) => replicas));
  }

  #count(shard: string): void {
    this.tries.set(shard, (this.tries.get(shard) ?? 0) + 1);
  }
}

const shards = (count: number, replicas: readonly string[]) =>
  Array.from({ length: count }, (_, n) => assignment(`stream:s/${n}`, replicas));

describe('a shard whose move to one broker failed', () => {
  it('leaves a draining leader for another broker, and is not sent there again', () => {
    for (const count of [1, 2, 7]) {
      const brokers = [
        broker('b1', { lifecycle: 'draining', drain: true }),
        ...['b2', 'b3', 'b4'].map((id) => broker(id)),
      ];
      const w = new WithBadBroker(
        clusterOf({ brokers, resources: [resource('s', count)], assignments: shards(count, ['b1']) }),
      );
      w.run(HOUR_MS / 2);
      expect(w.mostTries).toBeLessThanOrEqual(1);
      expect([...w.holders()].sort()).not.toContain('b1');
      expect(w.holders()).not.toContain(BAD);
    }
  });

  it('has its lost copy restored on another', () => {
    const brokers = [
      ...['b1', 'b2', 'b3', 'b4'].map((id) => broker(id)),
      broker('b5', { lifecycle: 'left', downSinceMs: 0 }),
    ];
    const file = clusterOf({
      brokers,
      resources: [resource('s', 5, { replicationFactor: 2 })],
      assignments: shards(5, ['b1', 'b5']),
      policy: { moveStallMs: 1_000 },
    });
    const w = new WithBadBroker(file);
    w.run(60_000);
    expect(w.holders()).not.toContain('b5');
    for (const { inSync } of w.cluster.assignments.values()) expect(inSync.length).toBeGreaterThanOrEqual(2);
    expect(w.mostTries).toBeLessThanOrEqual(2);
  });

  it('waits where there is no other, after two tries, until the hour is over or the broker has registered anew', () => {
    const brokers = [broker('b1', { lifecycle: 'draining', drain: true }), broker(BAD)];
    const w = new WithBadBroker(
      clusterOf({ brokers, resources: [resource('s', 1)], assignments: shards(1, ['b1']) }),
    );
    w.run(HOUR_MS - 1);
    expect(w.mostTries).toBe(2);
    expect(w.last?.waiting).toMatchObject([{ shard: 'stream:s/0', reason: 'destination_failed' }]);
    w.run(2 * HOUR_MS);
    expect(w.mostTries).toBe(4);
    w.cluster.register(broker(BAD, { incarnation: 2, registeredAtMs: w.cluster.nowMs + 1 }));
    w.cluster.nowMs += 1;
    w.run(w.cluster.nowMs + 1_000_000);
    expect(w.mostTries).toBe(6);
  });

  it('is levelled without end nowhere: two tries a shard and hour at most', () => {
    const brokers = ['b1', BAD, 'b3'].map((id) => broker(id));
    const file = clusterOf({
      brokers,
      resources: [resource('s', 6, { replicationFactor: 2 })],
      assignments: shards(6, ['b1', 'b3']),
      policy: { moveStallMs: 1_000, maxConcurrentMoves: 2 },
    });
    const w = new WithBadBroker(file);
    w.run(HOUR_MS - 1);
    expect(w.mostTries).toBe(2);
  });

  it('forgets the failure once a move of it has finished', () => {
    const brokers = [broker('b1', { lifecycle: 'draining', drain: true }), broker('b3')];
    const failures = [{ to: 'b3', times: 1, atMs: 0 }];
    const [row = assignment('stream:s/0', ['b1'])] = shards(1, ['b1']);
    const w = new WithBadBroker(
      clusterOf({
        brokers,
        resources: [resource('s', 1)],
        assignments: [{ ...row, failedMoves: 1, failures }],
      }),
    );
    w.run(HOUR_MS / 2);
    expect(w.cluster.assignments.get('stream:s/0')).toMatchObject({ leader: 'b3', failedMoves: 0 });
    expect(w.cluster.assignments.get('stream:s/0')).not.toHaveProperty('failures');
  });
});

describe('the failures of a row', () => {
  it('are counted by destination, and the oldest of more than four is dropped', () => {
    const ids = ['a', 'b', 'c', 'd', 'a', 'e'];
    const failures = ids.reduce((list, id, n) => withFailure(list, id, n), withFailure([], 'z', 0));
    expect(failures).toHaveLength(MAX_FAILURES);
    expect(failures).toEqual([
      { to: 'c', times: 1, atMs: 2 },
      { to: 'd', times: 1, atMs: 3 },
      { to: 'a', times: 2, atMs: 4 },
      { to: 'e', times: 1, atMs: 5 },
    ]);
  });
});
