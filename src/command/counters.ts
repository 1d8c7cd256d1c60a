import type { Assignment, Broker, Move } from '../../placement/index.ts';
import { MAX_COUNTER } from './limits.ts';
import { over, type Problem } from './problem.ts';

/** Checked where rows come from outside: a number that the state keeps must not run out. */
export function brokerCountersProblem(broker: Broker): Problem | null {
  const { incarnation, registeredAtMs, downSinceMs } = broker;
  return counterProblem(`broker ${broker.id}`, { incarnation, registeredAtMs, downSinceMs });
}

export function assignmentCountersProblem(assignment: Assignment): Problem | null {
  const { shard, generation, failedMoves, move, moved } = assignment;
  const phase = moved?.phase ?? null;
  return counterProblem(`assignment ${shard}`, {
    ...{ generation, failedMoves, ...moveTimes(move), phase },
    ...failureCounters(assignment),
  });
}

/** What a decided row brings along; its generation is counted where it is written. */
export function decidedCountersProblem(
  shard: string,
  next: Pick<Assignment, 'failedMoves' | 'failures' | 'move'>,
): Problem | null {
  const { failedMoves, move } = next;
  const counters = { failedMoves, ...moveTimes(move), ...failureCounters(next) };
  return counterProblem(`placement of ${shard}`, counters);
}

function failureCounters({ failures = [] }: Pick<Assignment, 'failures'>): Record<string, number> {
  return Object.fromEntries(
    failures.flatMap(({ to, times, atMs }) => [
      [`failures to ${to}`, times],
      [`time of the failure at ${to}`, atMs],
    ]),
  );
}

function moveTimes(move: Move | null): { startedAtMs: number | null; progressAtMs: number | null } {
  return { startedAtMs: move?.startedAtMs ?? null, progressAtMs: move?.progressAtMs ?? null };
}

function counterProblem(what: string, counters: Readonly<Record<string, number | null>>): Problem | null {
  for (const [name, value] of Object.entries(counters)) {
    if (value === null || value <= MAX_COUNTER) continue;
    return over(`${what}: ${name} ${value}, at most ${MAX_COUNTER} is allowed`);
  }
  return null;
}
