import type {
  Entry,
  Message,
  RaftStorage,
  StateMachine,
  StorageWrite,
  StoredState,
  Transport,
  TransportHandler,
} from '../../raft/index.ts';
import type { RaftChecks } from './checks.ts';
import type { SimProcess } from './world.ts';

/** Where a process can be made to die. `duringWrite`: the batch is handed over and not yet synced. */
export type CrashPoint = 'beforeWrite' | 'duringWrite' | 'afterWrite' | 'beforeSend' | 'afterApply';

/** What the taps of one member's life report to. */
export interface Tap {
  readonly id: string;
  readonly process: SimProcess;
  readonly checks: RaftChecks;
  /** Told at every crash point; may kill the process. */
  reached(point: CrashPoint): void;
  /** Messages that left, for bounds on their rate. */
  sent(messages: readonly Message[]): void;
}

/** Between the node and its storage. */
export function tapStorage(storage: RaftStorage, tap: Tap): RaftStorage {
  const { id, process, checks } = tap;
  return {
    async load(): Promise<StoredState> {
      const state = await storage.load();
      if (process.alive) guarded(process, () => checks.loaded(id, state));
      return state;
    },
    async write(batch: StorageWrite): Promise<void> {
      if (process.alive) tap.reached('beforeWrite');
      if (!process.alive) return never();
      guarded(process, () => checks.issued(id, batch));
      const written = storage.write(batch);
      tap.reached('duringWrite');
      await written;
      if (!process.alive) return never();
      guarded(process, () => checks.durable(id, batch));
      tap.reached('afterWrite');
      if (!process.alive) return never();
    },
    close: () => storage.close(),
  };
}

/** Between the node and its peers. */
export function tapTransport(transport: Transport, tap: Tap): Transport {
  const { id, process, checks } = tap;
  return {
    bind: (handler: TransportHandler) => transport.bind(handler),
    start: () => transport.start(),
    send(messages: readonly Message[]): void {
      if (process.alive) tap.reached('beforeSend');
      if (!process.alive) return;
      guarded(process, () => checks.sending(id, messages));
      tap.sent(messages);
      transport.send(messages);
    },
    isConnected: (peer) => transport.isConnected(peer),
    stop: () => transport.stop(),
  };
}

/** Between the node and what it applies to. `stateHash` answers the state as it is now. */
export function tapStateMachine(machine: StateMachine, stateHash: () => string, tap: Tap): StateMachine {
  const { id, process, checks } = tap;
  return {
    apply(entries: readonly Entry[]): unknown[] {
      const results = machine.apply(entries);
      // What is applied in part is seen by nobody: the hash is that of the last entry that is finished.
      const finished = entries.slice(0, results.length);
      if (process.alive) {
        guarded(process, () => checks.applied(id, finished, stateHash()));
        tap.reached('afterApply');
      }
      return results;
    },
    get isPartWay() {
      return machine.isPartWay ?? false;
    },
    snapshot: () => machine.snapshot(),
    snapshotParts: () => machine.snapshotParts?.() ?? [machine.snapshot()].values(),
    restore(data: Uint8Array, index: number): void {
      machine.restore(data, index);
      if (process.alive) guarded(process, () => checks.restored(id, index, stateHash()));
    },
    *restoreInSteps(data: Uint8Array, index: number): Generator<void, void> {
      if (machine.restoreInSteps === undefined) machine.restore(data, index);
      else {
        const steps = machine.restoreInSteps(data, index);
        while (steps.next().done !== true) yield;
      }
      if (process.alive) guarded(process, () => checks.restored(id, index, stateHash()));
    },
  };
}

/** A breach ends the run, whatever the code under test does with what is thrown at it. */
function guarded(process: SimProcess, check: () => void): void {
  try {
    check();
  } catch (error) {
    process.world.fail(error instanceof Error ? error : new Error(String(error)));
  }
}

/** The rest of a dead process. */
function never(): Promise<never> {
  return new Promise(() => {});
}
