import {
  malformed,
  resourceKey,
  type Assignment,
  type Broker,
  type Resource,
} from '../../placement/index.ts';
import { ShardMap } from '../state/index.ts';
import { assignmentCountersProblem, brokerCountersProblem } from './counters.ts';
import { MAX_BROKERS, MAX_RESOURCES, MAX_SHARDS } from './limits.ts';
import { parseShard, quote } from './names.ts';
import { invalid, over, type Problem } from './problem.ts';
import { brokerProblem, notAShard, resourceProblem } from './validate.ts';

export interface ClusterRows {
  readonly brokers: readonly Broker[];
  readonly resources: readonly Resource[];
  readonly assignments: readonly Assignment[];
}

/** What is wrong with the rows of a whole cluster, a cluster file's or an import's; `null`: nothing. */
export function clusterProblem(rows: ClusterRows): Problem | null {
  const checks = clusterProblems(rows);
  let next = checks.next();
  while (next.done !== true) next = checks.next();
  return next.value;
}

/** The same, stopping after every row. */
export function* clusterProblems(rows: ClusterRows): Generator<void, Problem | null, void> {
  const brokers = new Set<string>();
  for (const broker of rows.brokers) {
    const problem = brokerProblem(broker) ?? lifecycleProblem(broker) ?? brokerCountersProblem(broker);
    if (problem !== null) return problem;
    if (brokers.has(broker.id)) return invalid(`broker ${broker.id} is listed twice: leave one of them out`);
    brokers.add(broker.id);
  }
  const resources = new Map<string, Resource>();
  let shards = 0;
  for (const resource of rows.resources) {
    const problem = resourceProblem(resource);
    if (problem !== null) return problem;
    const key = resourceKey(resource);
    if (resources.has(key)) return invalid(`resource ${key} is listed twice: leave one of them out`);
    resources.set(key, resource);
    shards += resource.shards;
    yield;
  }
  const seen = new ShardMap<true>();
  for (const assignment of rows.assignments) {
    const problem = assignmentProblem(assignment, brokers, resources);
    if (problem !== null) return problem;
    if (seen.has(assignment.shard))
      return invalid(`${assignment.shard} is assigned twice: leave one of them out`);
    seen.set(assignment.shard, true);
    yield;
  }
  return (
    tooMany('brokers', brokers.size, MAX_BROKERS) ??
    tooMany('resources', resources.size, MAX_RESOURCES) ??
    tooMany('shards in all', shards, MAX_SHARDS)
  );
}

function lifecycleProblem(broker: Broker): Problem | null {
  const { id, lifecycle, drain } = broker;
  if (lifecycle === 'draining' && !drain) {
    return invalid(`broker ${id} is draining without "drain": true`);
  }
  if (lifecycle === 'live' && drain) {
    return invalid(`broker ${id} has "drain": true and lifecycle "live": write "draining", "down" or "left"`);
  }
  return null;
}

function assignmentProblem(
  assignment: Assignment,
  brokers: ReadonlySet<string>,
  resources: ReadonlyMap<string, Resource>,
): Problem | null {
  const { shard } = assignment;
  const name = parseShard(shard);
  if (name === null) return invalid(`assignment ${notAShard(shard)}`);
  const key = resourceKey(name);
  const resource = resources.get(key);
  if (resource === undefined) return invalid(`assignment ${shard}: there is no resource ${key}`);
  if (name.number >= resource.shards) {
    return invalid(
      `assignment ${shard}: ${key} has ${resource.shards} shards, the last is ${resource.shards - 1}`,
    );
  }
  for (const id of namedBy(assignment)) {
    if (!brokers.has(id))
      return invalid(`assignment ${shard} names ${quote(id)}, which is not among the brokers`);
  }
  const shape = malformed(assignment);
  if (shape !== null) return invalid(`assignment ${shard}: ${shape}`);
  if (assignment.generation < 1 || assignment.epoch < 1 || assignment.epoch > assignment.generation) {
    return invalid(
      `assignment ${shard}: epoch ${assignment.epoch} must be 1 to its generation ${assignment.generation}`,
    );
  }
  return assignmentCountersProblem(assignment);
}

function namedBy({ leader, replicas, inSync, move, moved }: Assignment): string[] {
  const named = [leader, ...replicas, ...inSync];
  if (move !== null) named.push(move.to, ...[move.from, move.drops].filter((id) => id !== null));
  for (const { from, to } of moved?.copies ?? []) named.push(from, to);
  return named;
}

function tooMany(what: string, count: number, limit: number): Problem | null {
  return count <= limit ? null : over(`${count} ${what}, at most ${limit} are allowed`);
}
