import type { Clock, Random } from './clock.ts';
import type { ConfigurationChange } from './configuration.ts';
import type { RaftLimits } from './limits.ts';
import type { StateMachine } from './state-machine.ts';
import type { RaftState, RaftStatus } from './status.ts';
import type { RaftStorage } from './storage.ts';
import type { Transport } from './transport.ts';
import type { Configuration, MemberId } from './types.ts';

export interface RaftNodeOptions {
  readonly id: MemberId;
  /** Used only where storage holds no configuration yet. A member that joins later starts with no voters. */
  readonly configuration: Configuration;
  /** Loaded at start and closed at stop by the node. */
  readonly storage: RaftStorage;
  /** Bound, started and stopped by the node. */
  readonly transport: Transport;
  /** Empty at start: the node restores the snapshot and replays the log. */
  readonly stateMachine: StateMachine;
  readonly clock: Clock;
  readonly random: Random;
  readonly limits?: Partial<RaftLimits>;
}

/** A proposal's place in the log and what its apply answered. */
export interface Applied {
  readonly index: number;
  readonly term: number;
  readonly result: unknown;
}

/**
 * One member of a Raft group. Deadlines are points on `clock.now()`. Requests reject with `RaftError`.
 */
export class RaftNode {
  static start(_options: RaftNodeOptions): Promise<RaftNode> {
    throw new Error('being written');
  }

  /** Leader only. Resolves from the apply of exactly this entry. */
  propose(_data: Uint8Array, _deadlineMs: number): Promise<Applied> {
    throw new Error('being written');
  }

  /** Any member. Resolves once this member has applied everything committed when it was called; answers that index (ReadIndex, thesis 6.4). */
  readBarrier(_deadlineMs: number): Promise<number> {
    throw new Error('being written');
  }

  /** Leader only. Resolves once another member leads; on failure this one goes on leading. */
  transferLeadership(_to: MemberId, _deadlineMs: number): Promise<void> {
    throw new Error('being written');
  }

  /** Leader only. Resolves once the configuration asked for is committed and, if joint, left again. */
  changeConfiguration(_changes: readonly ConfigurationChange[], _deadlineMs: number): Promise<Configuration> {
    throw new Error('being written');
  }

  status(): RaftStatus {
    throw new Error('being written');
  }

  /** Called at once with the present state, then on each change. Answers the unsubscriber. */
  onState(_listener: (state: RaftState) => void): () => void {
    throw new Error('being written');
  }

  /** The storage failed, an invariant broke or the state machine threw: the node has stopped and answers nothing more. */
  onFatal(_listener: (error: Error) => void): () => void {
    throw new Error('being written');
  }

  /** Takes a snapshot at the applied index and compacts behind it. Resolves with that index once it is on disk. */
  snapshotNow(): Promise<number> {
    throw new Error('being written');
  }

  /** Waits for the write under way, then closes transport and storage. Open requests reject. */
  stop(): Promise<void> {
    throw new Error('being written');
  }
}
