import {
  clusterProblems,
  MAX_KEPT_COUNTER,
  MAX_STAGED_BYTES,
  type ClusterRows,
  type Command,
} from '../command/index.ts';
import type { Assignment } from '../../placement/index.ts';
import type { ClusterState } from '../state/index.ts';
import { fileTime, ImportedTimes } from './import-times.ts';
import { bytesOf, growthProblem } from './growth.ts';
import { done, refuse, type Outcome, type Sliced } from './outcome.ts';

type Of<T extends Command['type']> = Extract<Command, { type: T }>;

/** Keeps one part; no reader sees it until the closing entry. */
export function importPart(state: ClusterState, { type: _type, ...part }: Of<'importPart'>): Outcome {
  const bytes = bytesOf(part);
  const staged = state.imports.bytes + bytes;
  if (staged > MAX_STAGED_BYTES) {
    const message = `staged imports would take ${staged} bytes, at most ${MAX_STAGED_BYTES} are kept: commit or abort one (import.list)`;
    return refuse('limit_exceeded', message);
  }
  const full = growthProblem(state, `part ${part.part} of import ${part.importId}`, bytes);
  if (full !== null) return full;
  state.imports.stage(part, { index: state.appliedIndex, timeMs: state.timeMs });
  return done({ part: part.part });
}

export function abortImport(state: ClusterState, { importId }: Of<'abortImport'>): Outcome {
  if (!state.imports.has(importId)) {
    return refuse('not_found', `there is no import ${importId}: it was committed, aborted, or has expired`);
  }
  state.imports.drop(importId);
  return done({ importId });
}

/** Makes the staged parts the state, all of them or nothing: every check comes before the first write. */
export function* importCommit(state: ClusterState, command: Of<'importCommit'>): Sliced<Outcome> {
  const { importId, parts: count, overwrite } = command;
  const parts = state.imports.collect(importId, count);
  if (parts === null) {
    return refuse('not_found', `import ${importId} has not exactly the parts 0 to ${count - 1}: begin again`);
  }
  const used = state.brokers.size + state.resources.size;
  if (used > 0 && !overwrite) {
    const what = `${state.brokers.size} brokers and ${state.resources.size} resources`;
    return refuse('refused', `the cluster is in use (${what}): ask for overwrite to replace them`);
  }
  const rows: ClusterRows = {
    brokers: parts.flatMap((part) => part.brokers),
    resources: parts.flatMap((part) => part.resources),
    // A million rows; `flatMap` takes them one by one.
    assignments: new Array<Assignment>().concat(...parts.map((part) => part.assignments)),
  };
  const problem = yield* clusterProblems(rows);
  if (problem !== null) return refuse(problem.code, problem.message);
  const times = new ImportedTimes(yield* fileTime(rows, command.timeMs), state.timeMs);
  state.imports.drop(importId);
  yield* replace(state, rows, times);
  state.setPolicy(command.policy);
  const { brokers, resources, assignments } = rows;
  return done({ brokers: brokers.length, resources: resources.length, assignments: assignments.length });
}

function* replace(state: ClusterState, rows: ClusterRows, times: ImportedTimes): Sliced<void> {
  const generations = rebase(
    state.maxGeneration,
    rows.assignments.map((row) => row.generation),
  );
  for (const { shard } of state.assignments.list()) {
    state.deleteAssignment(shard);
    yield;
  }
  for (const key of [...state.resources.keys()]) {
    state.deleteResource(key);
    yield;
  }
  for (const id of [...state.brokers.keys()]) state.deleteBroker(id);
  const incarnations = rebase(
    state.header.incarnationFloor,
    rows.brokers.map((row) => row.incarnation),
  );
  for (const broker of rows.brokers) {
    state.putBroker({
      ...broker,
      registeredAtMs: times.registeredAt(broker.registeredAtMs),
      downSinceMs: broker.downSinceMs === null ? null : times.at(broker.downSinceMs),
      incarnation: incarnations(broker.incarnation),
      addresses: {},
      labels: {},
      storeId: null,
      starts: null,
      imported: true,
    });
  }
  if (rows.brokers.length > 0) {
    const earliestMs = rows.brokers.reduce((least, b) => Math.min(least, b.registeredAtMs), Infinity);
    state.noteRegistration(times.registeredAt(earliestMs));
  }
  for (const resource of rows.resources) {
    state.putResource({ ...resource, createdRevision: state.appliedIndex });
    yield;
  }
  // What moved elsewhere moved in another phase, and what failed failed at brokers that have yet to register here.
  for (const { moved: _moved, failures: _failures, ...row } of rows.assignments) {
    const { move } = row;
    state.putAssignment({
      ...row,
      move: move && {
        ...move,
        startedAtMs: times.at(move.startedAtMs),
        progressAtMs: times.at(move.progressAtMs),
      },
      generation: generations(row.generation),
      epoch: generations(row.epoch),
      drained: false,
      stagedIncarnation: move && (state.brokers.get(move.to)?.incarnation ?? null),
      served: 'leader',
      decision: null,
    });
    yield;
  }
}

/**
 * The number that an imported row starts from. A cluster that has counted before starts every row one above what it has ever
 * used: no broker, watcher or session can mistake an imported row for one it has seen, and no round of export and import
 * adds more than one. An unused cluster keeps the file's numbers, unless they leave too little to count on.
 */
function rebase(used: number, given: readonly number[]): (value: number) => number {
  const highest = given.reduce((most, value) => Math.max(most, value), 0);
  return used === 0 && highest <= MAX_KEPT_COUNTER ? (value) => value : () => used + 1;
}
