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
  return counterProblem(`assignment ${shard}`, { generation, failedMoves, ...moveTimes(move), phase });
}

/** What a decided row brings along; its generation is counted where it is written. */
export function decidedCountersProblem(
  shard: string,
  { failedMoves, move }: Pick<Assignment, 'failedMoves' | 'move'>,
): Problem | null {
  return counterProblem(`placement of ${shard}`, { failedMoves, ...moveTimes(move) });
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
