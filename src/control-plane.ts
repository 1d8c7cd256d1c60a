import type { Command, Proposed, ProposeOptions } from './command/index.ts';
import type { StateView } from './state/index.ts';
import type { ChangeFeed } from './watch/index.ts';

/** One node as its surfaces (broker sessions, admin RPC, HTTP) and `control` see it. Built by `server.ts`. */
export interface ControlPlane {
  readonly nodeId: string;
  readonly clusterId: string;
  /** This node's applied state, at once. */
  readonly state: StateView;
  readonly feed: ChangeFeed;
  leadership(): Leadership;
  /** Called with each change of `leadership()`. The answer unsubscribes. */
  onLeadership(listener: (leadership: Leadership) => void): () => void;
  /**
   * Takes a command on any node, passes it to the leader, and resolves with the applied result's value.
   * Rejects with an EvenkeelError: what applying refused, `no_leader`, `overloaded`, `limit_exceeded`,
   * `deadline_exceeded` or `outcome_unknown` (it may or may not take effect).
   */
  propose(command: Command, options: ProposeOptions): Promise<Proposed>;
  /** Resolves once `state` holds every write acknowledged anywhere before the call (ReadIndex). */
  readBarrier(deadlineMs: number): Promise<void>;
  /**
   * Resolves once a quorum has acknowledged, after this call, that a leader leads: this node if `leadership()` still says
   * so then. Waits for nothing to be applied.
   */
  confirmLeadership(deadlineMs: number): Promise<void>;
  /** Runs a leader-only service on the Raft leader, wherever it is. Rejects with `no_leader` or `unavailable`. */
  askLeader(method: string, params: unknown, deadlineMs: number): Promise<unknown>;
  /** Asks one member (`node.status`). */
  askMember(member: string, method: string, params: unknown, deadlineMs: number): Promise<unknown>;
  /** Registers what `askLeader` and `askMember` run here. */
  serve(method: string, service: (params: unknown) => Promise<unknown>): void;
  /** Cluster time now: rises on the leader, stands still elsewhere. ms. */
  clusterTimeMs(): number;
  raftStatus(): RaftStatusView;
}

export interface Leadership {
  readonly term: number;
  readonly leaderId: string | null;
  /** This node leads and has applied the no-op of its term. */
  readonly established: boolean;
}

export interface RaftStatusView {
  readonly role: 'leader' | 'follower' | 'candidate' | 'learner';
  readonly term: number;
  readonly leaderId: string | null;
  readonly commitIndex: number;
  readonly appliedIndex: number;
  readonly lastIndex: number;
  readonly members: readonly { readonly id: string; readonly address: string; readonly voter: boolean }[];
  /** Caught up with the leader's commit as last heard, a leader known. */
  readonly ready: boolean;
}
