import { describe, expect, it } from 'vitest';
import { operator, plan, planFile, simulate, type ClusterFile, type Move } from '../../placement/index.ts';
import { lookAhead, type Candidate, type Played } from '../../placement/lookahead.ts';
import { assignment, broker, clusterOf, NO_REPORTS, resource, snapshot } from './support/rows.ts';

/** b4 is to lead most, and full until a follower of r3/0 leaves it. */
const FILE = clusterOf({
  brokers: [
    broker('b0'),
    broker('b3', { lifecycle: 'draining', drain: true }),
    broker('b4', { weight: 4, maxShards: 3 }),
    broker('b5'),
  ],
  resources: [resource('r1', 2, { replicationFactor: 1 }), resource('r3', 3, { replicationFactor: 2 })],
  assignments: [
    assignment('stream:r1/0', ['b3']),
    assignment('stream:r1/1', ['b3']),
    assignment('stream:r3/0', ['b3', 'b4']),
    assignment('stream:r3/1', ['b4', 'b3']),
    assignment('stream:r3/2', ['b4', 'b0']),
  ],
  policy: { maxConcurrentMoves: 2, maxConcurrentHandovers: 1 },
});

/** b2's copies are made anew 300 s after it went down; only then can b0 give one away and take a leadership. */
const LOST = clusterOf({
  brokers: [
    broker('b0', { weight: 3, maxShards: 3 }),
    broker('b1'),
    broker('b2', { lifecycle: 'down', downSinceMs: 0 }),
    broker('b3', { weight: 4 }),
    broker('b8'),
    broker('b9', { lifecycle: 'draining', drain: true }),
  ],
  resources: [
    resource('r1', 5, { replicationFactor: 3, durable: false }),
    resource('r3', 2, { replicationFactor: 2 }),
  ],
  assignments: [
    assignment('stream:r1/0', ['b8', 'b9', 'b3']),
    assignment('stream:r1/1', ['b9', 'b8', 'b3']),
    assignment('stream:r1/2', ['b3', 'b0', 'b2']),
    assignment('stream:r1/3', ['b2', 'b3', 'b1']),
    assignment('stream:r1/4', ['b2', 'b3', 'b0']),
    assignment('stream:r3/0', ['b3', 'b9']),
    assignment('stream:r3/1', ['b2', 'b1']),
  ],
});

/** A copy on its way from the lost b2 to b3. */
const JOINING: Move = {
  role: 'follower',
  from: 'b2',
  to: 'b3',
  step: 'joining',
  reason: 'restore',
  copied: true,
  drops: 'b2',
  startedAtMs: 0,
  progressAtMs: 0,
};

function after(passes: number, file: ClusterFile = FILE): ClusterFile {
  const phase = simulate(file, { events: [], maxPasses: passes }, { plan, ...operator }).phases[0];
  if (phase === undefined) throw new Error('no phase');
  return phase.cluster;
}

function starts(file: ClusterFile): string[] {
  return planFile(file, { plan })
    .steps.filter(({ step }) => step === 'stage' || step === 'join')
    .map(({ shard, role, to }) => `${shard} ${role} to ${to}`);
}

describe('what would be made good', () => {
  it('waits while other moves go on, and says where it would go', () => {
    const { steps, waiting } = planFile(FILE, { plan });
    expect(steps.map(({ step, shard }) => `${step} ${shard}`)).toEqual([
      'stage stream:r1/0',
      'stage stream:r3/0',
    ]);
    expect(waiting).toEqual([
      {
        shard: 'stream:r1/1',
        reason: 'moves_again',
        detail: 'its leadership would go to b0 now and to b4 later; it waits while other moves go on',
      },
    ]);
  });

  it('starts once there is room where it stays, and nothing waits at the end', () => {
    const { phases } = simulate(FILE, { events: [], maxPasses: 100 }, { plan, ...operator });
    expect(phases[0]?.settled).toBe(true);
    expect(phases[0]?.waiting).toEqual([]);
    const moved = phases[0]?.moves.filter(({ shard }) => shard === 'stream:r1/1');
    expect(moved?.map(({ from, to }) => `${from} to ${to}`)).toEqual(['b3 to b4']);
  });

  it('waits for no move that has failed before: it may fail for ever', () => {
    const { policy, assignments, ...rest } = after(3, LOST);
    const withMove = (failedMoves: number): string[] =>
      starts({
        ...rest,
        policy: { ...policy, maxConcurrentMoves: 2 },
        assignments: assignments.map((row) =>
          row.shard === 'stream:r3/1'
            ? { ...row, failedMoves, replicas: [...row.replicas, 'b3'], move: JOINING }
            : row,
        ),
      });
    expect(withMove(0)).toEqual([]);
    expect(withMove(1)).toEqual(['stream:r1/1 leader to b8']);
  });

  it('waits for a deadline where nothing moves', () => {
    const seen: (number | null)[] = [];
    const noting: typeof plan = (rows, reports) => {
      const made = plan(rows, reports);
      const waits = made.waiting.some(({ reason }) => reason === 'moves_again');
      const idle = made.steps.length === 0 && rows.assignments.every((row) => row.move === null);
      if (waits && idle) seen.push(made.nextDeadlineMs);
      return made;
    };
    const { settled } = simulate(LOST, { events: [], maxPasses: 100 }, { plan: noting, ...operator });
    expect({ settled, seen }).toEqual({ settled: true, seen: [300_000] });
  });
});

/** Decides what a test says, and counts how often it is asked. */
class Script {
  firsts = 0;
  laters = 0;
  readonly #facts: Partial<Candidate>;
  readonly #later: Partial<Played>;

  constructor(facts: Partial<Candidate>, later: Partial<Played> = {}) {
    this.#facts = facts;
    this.#later = later;
  }

  run(): Candidate {
    return lookAhead(snapshot(FILE), {
      first: () => {
        this.firsts++;
        return { steps: [], nextDeadlineMs: null, isTight: true, shardCount: 5, ...this.#facts };
      },
      later: ({ nowMs }) => {
        this.laters++;
        return { steps: [], nextDeadlineMs: nowMs + 1, ...this.#later };
      },
    });
  }
}

describe('what is played', () => {
  const { steps } = plan(snapshot(FILE), NO_REPORTS);
  const laters = (facts: Partial<Candidate>): number => {
    const script = new Script(facts);
    script.run();
    expect(script.firsts).toBe(1);
    return script.laters;
  };

  it('is nothing where no move starts, or no broker lacks room', () => {
    expect(laters({})).toBe(0);
    expect(laters({ steps, isTight: false })).toBe(0);
  });

  it('is 256 passes of a small cluster, 16,384 shards in all of a larger one, nothing of one above 1,024 shards', () => {
    expect(laters({ steps })).toBe(256);
    expect(laters({ steps, shardCount: 64 })).toBe(256);
    expect(laters({ steps, shardCount: 65 })).toBe(252);
    expect(laters({ steps, shardCount: 1_024 })).toBe(16);
    expect(laters({ steps, shardCount: 1_025 })).toBe(0);
  });

  it('ends where nothing is wanted any more', () => {
    const script = new Script({ steps }, { nextDeadlineMs: null });
    script.run();
    expect(script.laters).toBeLessThan(5);
  });

  it('does not mind a step that no longer fits its row', () => {
    const stale = steps.map((step) => ({ ...step, expect: step.expect + 7 }));
    expect(new Script({ steps: stale }, { nextDeadlineMs: null }).run().steps).toBe(stale);
  });
});
