import type { Assignment, Broker, Policy, Reason, Resource, StepName } from '../../placement/index.ts';
import type { ErrorCode } from '../errors.ts';
import type { ShardRows } from './shard-map.ts';
import type { StagedImport } from './staged-imports.ts';

/** A broker as the replicated state holds it: the planner's fields and what only clients ask for. */
export interface BrokerRow extends Broker {
  /** By listener name: `host:port`. */
  readonly addresses: Readonly<Record<string, string>>;
  readonly labels: Readonly<Record<string, string>>;
  /**
   * Of the last registration; `null`: it gave none, its store had gone back in time and vouches for nothing from then on,
   * or it has never registered (imported).
   */
  readonly storeId: string | null;
  /** Of the last registration: a store of that id whose count is not above this one is an older copy of it. `null`: it does not count. */
  readonly starts: number | null;
  /** It came with an import and has not registered since: its first registration keeps what the file gave it. */
  readonly imported: boolean;
  /** Last change. */
  readonly revision: number;
}

export interface ResourceRow extends Resource {
  readonly createdRevision: number;
  readonly revision: number;
}

/**
 * Who has confirmed the shard, and may so have served it: `never` nobody since it was placed; `before` leaders, but not the
 * process that leads now since it was named; `leader` that process, at this epoch or an earlier one.
 */
export const SERVED = ['never', 'before', 'leader'] as const;
export type Served = (typeof SERVED)[number];

export interface AssignmentRow extends Assignment {
  /**
   * The fenced leader reported that it stopped and that the destination holds everything. Stays true only
   * through writes that leave the fence as it is and the destination in sync.
   */
  readonly drained: boolean;
  /** Incarnation of the move's destination when the move was staged; `null`: no move. */
  readonly stagedIncarnation: number | null;
  readonly served: Served;
  /** The decision that last placed, promoted or moved it; `null`: imported. */
  readonly decision: Decision | null;
  readonly revision: number;
}

export interface Decision {
  readonly step: StepName;
  readonly reason: Reason;
  readonly rule: string;
  readonly detail: string;
  readonly revision: number;
}

/** Read-only view of the replicated state. The maps are live: do not hold them across an await; rows are immutable and may be held. */
export interface StateView {
  /** Last log index applied. */
  readonly appliedIndex: number;
  /** Log index of the last entry that changed what a reader sees. */
  readonly revision: number;
  /** Cluster time of the last entry applied, ms. */
  readonly timeMs: number;
  readonly brokers: ReadonlyMap<string, BrokerRow>;
  /** By resource key. */
  readonly resources: ReadonlyMap<string, ResourceRow>;
  /** By shard key. */
  readonly assignments: ShardRows<AssignmentRow>;
  /** By broker, of those that hold any: how many copies, a staged or joining one included. */
  readonly copies: ReadonlyMap<string, number>;
  /** The assignments with a move in flight, by shard key. */
  readonly moving: ReadonlyMap<string, AssignmentRow>;
  readonly policy: Policy;
  readonly policyRevision: number;
  readonly firstRegisteredAtMs: number | null;
  /** Highest generation any shard ever had. */
  readonly maxGeneration: number;
  /** Log index of the last change to a broker, a resource or the policy, or request by hand: what has moved counts from there on. */
  readonly phase: number;
  /** What a snapshot of the state takes at most, and little less; equal on all members at equal appliedIndex. */
  readonly bytes: number;
  /** Imports whose closing entry has not come, the oldest first. */
  readonly stagedImports: readonly StagedImport[];
  /** Hex, 16 digits; equal on all members at equal appliedIndex. */
  readonly stateHash: string;
  /** At the last multiple of 1,000 applied. */
  readonly hashAt: { readonly index: number; readonly hash: string };
}

/** One change that watchers see. */
export type Change =
  | {
      readonly kind: 'assignment';
      readonly assignment: AssignmentRow;
      /** The row it replaces; `null`: the shard is new. */
      readonly previous: AssignmentRow | null;
    }
  | { readonly kind: 'removed'; readonly shard: string; readonly previous: AssignmentRow }
  | { readonly kind: 'broker'; readonly broker: BrokerRow }
  | { readonly kind: 'brokerRemoved'; readonly id: string }
  | { readonly kind: 'resource'; readonly resource: ResourceRow }
  | { readonly kind: 'resourceRemoved'; readonly resource: string }
  | { readonly kind: 'policy'; readonly policy: Policy };

/** Everything that one entry changed, in order. */
export interface ChangeSet {
  readonly revision: number;
  readonly changes: readonly Change[];
}

/** Who is told what apply changed. Called synchronously, in order; must not throw. */
export interface ChangeSink {
  push(set: ChangeSet): void;
  /** A snapshot replaced the state: nothing before `revision` can be told as changes. */
  reset(revision: number): void;
}

/** What applying a command answers; the same on every member. */
export type CommandResult =
  | { readonly ok: true; readonly revision: number; readonly value: unknown }
  | {
      readonly ok: false;
      readonly revision: number;
      readonly error: { readonly code: ErrorCode; readonly message: string };
    };
