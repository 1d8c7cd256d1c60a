import { resourceKey } from '../../placement/index.ts';
import type { Entry, StateMachine } from '../../raft/index.ts';
import { commandProblem, decodeCommand, MAX_COUNTER, type Command, type Problem } from '../command/index.ts';
import {
  canonicalValue,
  ClusterState,
  decodeInSteps,
  encodeSnapshot,
  snapshotParts,
  type ChangeSink,
  type CommandResult,
  type StateView,
} from '../state/index.ts';
import { registerBroker, removeBroker, setDrain, setLifecycle } from './broker.ts';
import { abortImport, importCommit, importPart } from './import.ts';
import type { Outcome, Sliced } from './outcome.ts';
import { placement } from './placement.ts';
import { setPolicy } from './policy.ts';
import { confirm, report } from './report.ts';
import { abandonShard, alterResource, createResource, deleteResource } from './resource.ts';
import { once, openSession } from './session.ts';
import { liveView } from './view.ts';

/** Rows, and entries, that one call of `apply` looks at before it leaves the thread to others; twice as many at most. */
export const ROWS_PER_SLICE = 200;

/**
 * The state machine that the log drives. Applying is a pure function of (state, entry): no clock, no chance, no
 * I/O, so that members that applied the same entries hold the same bytes. It is total: a command that does not
 * fit is refused and answered. It throws only for an entry that this version cannot read (hazard 36).
 *
 * An entry of many rows is applied over several calls. Until its last row is written, readers see the state before it
 * and watchers are told nothing; a crash on the way leaves nothing, for only the log and snapshots between entries last.
 */
export class Machine implements StateMachine {
  #state = new ClusterState();
  #running: Sliced<CommandResult | null> | null = null;
  readonly #sink: ChangeSink;
  /** The state as readers see it: always the current one, also after a snapshot was installed. */
  readonly view: StateView = liveView(() => this.#state.shown);

  constructor(sink: ChangeSink) {
    this.#sink = sink;
  }

  /** One `CommandResult` a command entry, `null` for a no-op and a configuration; for as many entries as were finished. */
  apply(entries: readonly Entry[]): (CommandResult | null)[] {
    const results: (CommandResult | null)[] = [];
    let rows = 0;
    for (const entry of entries) {
      if (rows >= ROWS_PER_SLICE) return results;
      const begun = this.#running;
      const running = begun ?? this.#applyOne(entry);
      this.#running = null;
      let step = running.next();
      while (step.done !== true) {
        rows += 1;
        // An entry of few rows is never left half-way: nothing is held for it.
        if (rows >= ROWS_PER_SLICE && this.isPartWay) {
          this.#running = running;
          return results;
        }
        step = running.next();
      }
      rows += 1;
      results.push(step.value);
      // After a long entry the state is whole for a moment, even where the next one is as long: a snapshot can be taken.
      if (begun !== null) return results;
    }
    return results;
  }

  get isPartWay(): boolean {
    return this.#state.isHeld;
  }

  snapshot(): Uint8Array {
    this.#mustBeBetweenEntries();
    return encodeSnapshot(this.#state);
  }

  snapshotParts(): Iterator<Uint8Array> {
    this.#mustBeBetweenEntries();
    return snapshotParts(this.#state);
  }

  restore(data: Uint8Array, index: number): void {
    const steps = this.restoreInSteps(data, index);
    while (steps.next().done !== true);
  }

  *restoreInSteps(data: Uint8Array, index: number): Generator<void, void, void> {
    const state = yield* decodeInSteps(data);
    if (state.appliedIndex !== index) {
      throw new Error(`the snapshot holds the state at ${state.appliedIndex}, not at ${index}`);
    }
    this.#state = state;
    this.#running = null;
    this.#sink.reset(state.revision);
  }

  #mustBeBetweenEntries(): void {
    if (this.isPartWay) throw new Error('a snapshot was asked for while an entry is half applied');
  }

  *#applyOne(entry: Entry): Sliced<CommandResult | null> {
    const state = this.#state;
    if (entry.kind !== 'command') {
      state.begin(entry.index, 0);
      state.end();
      return null;
    }
    const { timeMs, request, inTerm, command } = decodeCommand(entry.data);
    if (rowsOf(state, command) > ROWS_PER_SLICE) state.hold();
    state.begin(entry.index, timeMs);
    // Before the session: what another leader decided has not run, and may be asked for again.
    const result =
      inTerm === null || inTerm === entry.term
        ? yield* once(state, request, () => run(state, command))
        : ofAnotherTerm(state, inTerm);
    const changes = state.end();
    if (changes !== null) this.#sink.push(changes);
    return result;
  }
}

/** How many rows a command may look at, so that the state is held before a long one. */
function rowsOf(state: ClusterState, command: Command): number {
  switch (command.type) {
    case 'registerBroker':
      return state.copies.get(command.broker.id) ?? 0;
    case 'setLifecycle':
    case 'removeBroker':
      return state.copies.get(command.broker) ?? 0;
    case 'deleteResource':
      return state.resources.get(resourceKey(command))?.shards ?? 0;
    case 'placement':
      return command.rows.length;
    case 'report':
    case 'confirm':
      return command.shards.length;
    case 'importCommit':
      return Infinity;
    case 'setDrain':
    case 'createResource':
    case 'alterResource':
    case 'setPolicy':
    case 'abandonShard':
    case 'importPart':
    case 'abortImport':
    case 'openSession':
      return 1;
  }
}

function* run(state: ClusterState, command: Command): Sliced<CommandResult> {
  const problem = commandProblem(command) ?? generationsProblem(state, command);
  const outcome: Outcome =
    problem === null
      ? yield* dispatch(state, command)
      : { ok: false, code: problem.code, message: problem.message };
  const { revision } = state;
  if (outcome.ok) return { ok: true, revision, value: canonicalValue(outcome.value) };
  return { ok: false, revision, error: { code: outcome.code, message: outcome.message } };
}

/** What writes assignments is refused once generations have run out: past the bound a snapshot could not be read again. */
function generationsProblem(state: ClusterState, { type }: Command): Problem | null {
  if (state.maxGeneration < MAX_COUNTER || !WRITES_ASSIGNMENTS.has(type)) return null;
  const message = `generations have reached ${MAX_COUNTER}, their limit: move the cluster to a new one by export and import`;
  return { code: 'limit_exceeded', message };
}

const WRITES_ASSIGNMENTS: ReadonlySet<Command['type']> = new Set([
  'registerBroker',
  'setLifecycle',
  'placement',
  'report',
  'confirm',
  'importCommit',
]);

/** A deposed leader's decision that reached the log by way of its successor. */
function ofAnotherTerm(state: ClusterState, inTerm: number): CommandResult {
  const message = `the command was decided by the leader of term ${inTerm}, which is over`;
  return { ok: false, revision: state.revision, error: { code: 'no_leader', message } };
}

function* dispatch(state: ClusterState, command: Command): Sliced<Outcome> {
  switch (command.type) {
    case 'registerBroker':
      return yield* registerBroker(state, command);
    case 'setLifecycle':
      return yield* setLifecycle(state, command);
    case 'setDrain':
      return setDrain(state, command);
    case 'removeBroker':
      return yield* removeBroker(state, command);
    case 'createResource':
      return createResource(state, command);
    case 'alterResource':
      return alterResource(state, command);
    case 'deleteResource':
      return yield* deleteResource(state, command);
    case 'placement':
      return yield* placement(state, command);
    case 'report':
      return yield* report(state, command);
    case 'confirm':
      return yield* confirm(state, command);
    case 'setPolicy':
      return setPolicy(state, command);
    case 'abandonShard':
      return abandonShard(state, command);
    case 'importPart':
      return importPart(state, command);
    case 'importCommit':
      return yield* importCommit(state, command);
    case 'abortImport':
      return abortImport(state, command);
    case 'openSession':
      return openSession(state);
  }
}
