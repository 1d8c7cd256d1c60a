import { resourceKey, shardKey, splitShard } from '../../placement/index.ts';
import {
  labelsProblem,
  MAX_RESOURCES,
  MAX_SHARDS,
  notAShard,
  parseShard,
  SHARD_BYTES,
  type Command,
} from '../command/index.ts';
import type { ClusterState, ResourceRow } from '../state/index.ts';
import { bytesOf, growthProblem } from './growth.ts';
import { done, refuse, type Outcome, type Sliced } from './outcome.ts';
import { isServing } from './row.ts';

type Of<T extends Command['type']> = Extract<Command, { type: T }>;

export function createResource(state: ClusterState, { resource }: Of<'createResource'>): Outcome {
  const key = resourceKey(resource);
  if (state.resources.has(key)) return refuse('already_exists', `${key} exists already`);
  if (state.resources.size >= MAX_RESOURCES) {
    return refuse('limit_exceeded', `the cluster has ${MAX_RESOURCES} resources, its limit`);
  }
  if (state.shardCount + resource.shards > MAX_SHARDS)
    return tooManyShards(state.shardCount + resource.shards);
  const full = growthProblem(state, key, bytesOf(resource) + resource.shards * SHARD_BYTES);
  if (full !== null) return full;
  state.putResource({ ...resource, createdRevision: state.appliedIndex });
  return done({ resource: key });
}

export function alterResource(state: ClusterState, command: Of<'alterResource'>): Outcome {
  const key = resourceKey(command);
  const row = state.resources.get(key);
  if (row === undefined) return unknownResource(key);
  const conflict = revisionConflict(row, command.expectedRevision);
  if (conflict !== null) return conflict;
  const shards = command.shards ?? row.shards;
  if (shards < row.shards) {
    return refuse('invalid_argument', `${key} has ${row.shards} shards: their number can only be raised`);
  }
  const total = state.shardCount + shards - row.shards;
  if (total > MAX_SHARDS) return tooManyShards(total);
  const labels = patchLabels(row.labels, command.labels ?? {});
  const problem = labelsProblem(key, labels);
  if (problem !== null) return refuse(problem.code, problem.message);
  const longer = bytesOf(labels) - bytesOf(row.labels);
  const full = growthProblem(state, key, Math.max(0, longer) + (shards - row.shards) * SHARD_BYTES);
  if (full !== null) return full;
  state.putResource({
    ...row,
    shards,
    labels,
    replicationFactor: command.replicationFactor ?? row.replicationFactor,
    zonePolicy: command.zonePolicy === undefined ? row.zonePolicy : command.zonePolicy,
  });
  return done({ resource: key });
}

/** The resource and every assignment of it go with this one entry. */
export function* deleteResource(state: ClusterState, command: Of<'deleteResource'>): Sliced<Outcome> {
  const key = resourceKey(command);
  const row = state.resources.get(key);
  if (row === undefined) return unknownResource(key);
  const conflict = revisionConflict(row, command.expectedRevision);
  if (conflict !== null) return conflict;
  for (let number = 0; number < row.shards; number++) {
    state.deleteAssignment(shardKey(row, number));
    yield;
  }
  state.deleteResource(key);
  return done({ shards: row.shards });
}

/** Gives a durable shard's log up: its assignment goes, and the next pass places it empty. */
export function abandonShard(state: ClusterState, command: Of<'abandonShard'>): Outcome {
  const { shard, expectedGeneration } = command;
  if (parseShard(shard) === null) return refuse('invalid_argument', notAShard(shard));
  const row = state.assignments.get(shard);
  if (row === undefined) return refuse('not_found', `${shard} has no assignment`);
  if (expectedGeneration !== null && expectedGeneration !== row.generation) {
    return refuse('stale', `${shard} is at generation ${row.generation}, not ${expectedGeneration}`);
  }
  const serving = row.inSync.find((id) => isServing(state, id));
  // Nobody ever served a shard that was never confirmed: it holds nothing.
  if (serving !== undefined && row.served !== 'never') {
    return refuse('refused', `${shard}: broker ${serving} holds an in-sync copy, nothing has to be given up`);
  }
  state.beginPhase();
  state.deleteAssignment(shard);
  return done({ shard });
}

/** The resource that a shard is part of; `undefined`: there is none, or its shards are fewer. */
export function resourceOf(state: ClusterState, shard: string): ResourceRow | undefined {
  const { resource, number } = splitShard(shard);
  const row = state.resources.get(resource);
  return row !== undefined && number < row.shards ? row : undefined;
}

function revisionConflict(row: ResourceRow, expected: number | null): Outcome | null {
  return expected === null || expected === row.revision
    ? null
    : refuse(
        'conflict',
        `${resourceKey(row)} is at revision ${row.revision}, not ${expected}: read it again`,
      );
}

function patchLabels(
  labels: Readonly<Record<string, string>>,
  patch: Readonly<Record<string, string | null>>,
): Record<string, string> {
  const merged = new Map(Object.entries(labels));
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) merged.delete(key);
    else merged.set(key, value);
  }
  return Object.fromEntries(merged);
}

function unknownResource(key: string): Outcome {
  return refuse('not_found', `there is no resource ${key}`);
}

function tooManyShards(total: number): Outcome {
  return refuse('limit_exceeded', `${total} shards in all would pass the cluster's limit of ${MAX_SHARDS}`);
}
