import type { Entry, StateMachine } from '../../raft/index.ts';
import { commandProblem, decodeCommand, type Command } from '../command/index.ts';
import {
  canonicalValue,
  ClusterState,
  decodeSnapshot,
  encodeSnapshot,
  snapshotParts,
  type ChangeSink,
  type CommandResult,
  type StateView,
} from '../state/index.ts';
import { registerBroker, removeBroker, setDrain, setLifecycle } from './broker.ts';
import { importCommit, importPart } from './import.ts';
import type { Outcome } from './outcome.ts';
import { placement } from './placement.ts';
import { setPolicy } from './policy.ts';
import { confirm, report } from './report.ts';
import { abandonShard, alterResource, createResource, deleteResource } from './resource.ts';
import { once, openSession } from './session.ts';
import { liveView } from './view.ts';

/**
 * The state machine that the log drives. Applying is a pure function of (state, entry): no clock, no chance, no
 * I/O, so that members that applied the same entries hold the same bytes. It is total: a command that does not
 * fit is refused and answered. It throws only for an entry that this version cannot read (hazard 36).
 */
export class Machine implements StateMachine {
  #state = new ClusterState();
  readonly #sink: ChangeSink;
  /** The state as readers see it: always the current one, also after a snapshot was installed. */
  readonly view: StateView = liveView(() => this.#state);

  constructor(sink: ChangeSink) {
    this.#sink = sink;
  }

  /** One `CommandResult` a command entry; `null` for a no-op and a configuration. */
  apply(entries: readonly Entry[]): (CommandResult | null)[] {
    return entries.map((entry) => this.#applyOne(entry));
  }

  snapshot(): Uint8Array {
    return encodeSnapshot(this.#state);
  }

  snapshotParts(): Iterator<Uint8Array> {
    return snapshotParts(this.#state);
  }

  restore(data: Uint8Array, index: number): void {
    const state = decodeSnapshot(data);
    if (state.appliedIndex !== index) {
      throw new Error(`the snapshot holds the state at ${state.appliedIndex}, not at ${index}`);
    }
    this.#state = state;
    this.#sink.reset(state.revision);
  }

  #applyOne(entry: Entry): CommandResult | null {
    const state = this.#state;
    if (entry.kind !== 'command') {
      state.begin(entry.index, 0);
      state.end();
      return null;
    }
    const { timeMs, request, inTerm, command } = decodeCommand(entry.data);
    state.begin(entry.index, timeMs);
    // Before the session: what another leader decided has not run, and may be asked for again.
    const result =
      inTerm === null || inTerm === entry.term
        ? once(state, request, () => run(state, command))
        : ofAnotherTerm(state, inTerm);
    const changes = state.end();
    if (changes !== null) this.#sink.push(changes);
    return result;
  }
}

function run(state: ClusterState, command: Command): CommandResult {
  const problem = commandProblem(command);
  const outcome: Outcome =
    problem === null ? dispatch(state, command) : { ok: false, code: problem.code, message: problem.message };
  const { revision } = state;
  if (outcome.ok) return { ok: true, revision, value: canonicalValue(outcome.value) };
  return { ok: false, revision, error: { code: outcome.code, message: outcome.message } };
}

/** A deposed leader's decision that reached the log by way of its successor. */
function ofAnotherTerm(state: ClusterState, inTerm: number): CommandResult {
  const message = `the command was decided by the leader of term ${inTerm}, which is over`;
  return { ok: false, revision: state.revision, error: { code: 'no_leader', message } };
}

function dispatch(state: ClusterState, command: Command): Outcome {
  switch (command.type) {
    case 'registerBroker':
      return registerBroker(state, command);
    case 'setLifecycle':
      return setLifecycle(state, command);
    case 'setDrain':
      return setDrain(state, command);
    case 'removeBroker':
      return removeBroker(state, command);
    case 'createResource':
      return createResource(state, command);
    case 'alterResource':
      return alterResource(state, command);
    case 'deleteResource':
      return deleteResource(state, command);
    case 'placement':
      return placement(state, command);
    case 'report':
      return report(state, command);
    case 'confirm':
      return confirm(state, command);
    case 'setPolicy':
      return setPolicy(state, command);
    case 'abandonShard':
      return abandonShard(state, command);
    case 'importPart':
      return importPart(state, command);
    case 'importCommit':
      return importCommit(state, command);
    case 'openSession':
      return openSession(state);
  }
}
