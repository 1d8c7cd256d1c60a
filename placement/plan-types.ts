import type {
  Assignment,
  AssignmentState,
  Broker,
  Failure,
  Move,
  MoveRole,
  Policy,
  Reason,
  Resource,
} from './model.ts';

/** Everything the planner reads. The order of rows never matters. All times are cluster time, ms. */
export interface Snapshot {
  readonly nowMs: number;
  readonly brokers: readonly Broker[];
  readonly resources: readonly Resource[];
  readonly assignments: readonly Assignment[];
  readonly policy: Policy;
  /** When the cluster's first broker registered; `null` while none has. Opens the settle window. */
  readonly firstRegisteredAtMs: number | null;
  /**
   * Another number each time that something has happened from outside: a broker, a resource or the policy changed, or an
   * operator started or cancelled a move. Nothing that has moved in this phase is moved again for the sake of levels (placement.md, "Calm").
   */
  readonly phase: number;
}

/** What only the Raft leader's memory holds: what leaders reported since it leads. */
export interface Reports {
  /** By shard: how far each copy is behind, in records, and whether the fenced leader said `drained` at this generation. */
  readonly shards: ReadonlyMap<string, ShardReport>;
  /** By broker: until when (cluster time, ms) a copy led by it may still be serving on its lease; absent: it may not. */
  readonly leasedUntilMs: ReadonlyMap<string, number>;
  /**
   * Brokers that are not declared down or left, but were not heard for the length of a lease, or whose connection is known
   * to be closed. Each of them is heard again or declared within `expiryMs + marginMs`.
   */
  readonly unheard: ReadonlySet<string>;
  /**
   * Shards whose leader did not confirm within `fenceTimeoutMs` of being named, by key. `leader`: that process served it at an
   * earlier epoch, and may not know of this one; else it has not served it.
   */
  readonly unconfirmed: ReadonlyMap<string, 'never' | 'before' | 'leader'>;
}

export interface ShardReport {
  readonly generation: number;
  /** Records that the move's destination is behind the leader; `null`: not known. */
  readonly lagRecords: number | null;
  /** Records a second that reached the destination lately; `null`: not measured yet. */
  readonly copiedPerSecond: number | null;
  readonly drained: boolean;
  /** The destination has registered anew since the move was staged: a process that the fence did not know. Absent: no. */
  readonly destinationRenewed?: boolean;
  /** When the destination's offset last rose; cluster time, ms. `null`: not known. */
  readonly progressAtMs: number | null;
}

export type StepName =
  'place' | 'promote' | 'stage' | 'fence' | 'cutOver' | 'join' | 'seat' | 'drop' | 'abandon';

/** (1) leaders outside floor…ceiling (2) totals (3) zones (4) copies per resource (5) chain (6) copy totals. */
export type Vector = readonly [number, number, number, number, number, number];

/**
 * One decided write. `next` is the row as every member will hold it; only the counters are set as it is
 * applied: `generation` (one above the shard's, or above the highest ever used for a new shard) and
 * `epoch` (that generation when `opensEpoch`, else as it was).
 */
export interface Step {
  readonly step: StepName;
  readonly shard: string;
  readonly role: MoveRole;
  readonly from: string | null;
  readonly to: string | null;
  /** The copy that leaves with this very write. */
  readonly drops: string | null;
  readonly reason: Reason;
  /** This write starts a copy of the data. */
  readonly copies: boolean;
  /** Optional steps (balance, zone, level) only. */
  readonly vector: { readonly before: Vector; readonly after: Vector } | null;
  /** The generation the shard must still have; 0: it must have no assignment. */
  readonly expect: number;
  /** Brokers this write newly names or depends on, each with the incarnation it was decided for; they must be live (a draining one where `allowDraining`). */
  readonly requires: readonly {
    readonly broker: string;
    readonly incarnation: number;
    readonly allowDraining: boolean;
  }[];
  readonly opensEpoch: boolean;
  readonly next: DecidedAssignment;
  readonly why: Why;
}

export interface DecidedAssignment {
  readonly leader: string;
  readonly replicas: readonly string[];
  readonly inSync: readonly string[];
  readonly state: AssignmentState;
  readonly failedMoves: number;
  readonly failures?: readonly Failure[];
  readonly move: Move | null;
}

/** Why this broker and no other. */
export interface Why {
  /** The tier or rule that decided; a stable code. */
  readonly rule: string;
  /** For people: names ids and numbers. */
  readonly detail: string;
  readonly rejected: readonly { readonly broker: string; readonly by: string }[];
  readonly runnerUp: string | null;
}

export interface WaitingRow {
  readonly shard: string;
  readonly reason: string;
  readonly detail: string;
}

export interface UnspreadRow extends WaitingRow {
  readonly zones: number;
  readonly possible: number;
}

export interface ConflictRow {
  readonly zone: string;
  readonly brokersShare: string;
  readonly limit: string;
  readonly policy: string;
  readonly shardsDoubled: number;
  readonly detail: string;
}

export interface Levels {
  readonly leaders: Readonly<Record<string, Readonly<Record<string, number>>>>;
  readonly leadersTotal: Readonly<Record<string, number>>;
  readonly copiesTotal: Readonly<Record<string, number>>;
  readonly maxLeaderSpreadPerResource: number;
  readonly leaderSpreadTotal: number;
  readonly copySpreadTotal: number;
  readonly maxCopySpreadPerResource: number;
  readonly minZonesPerShard: number;
}

export interface Plan {
  /** In the order in which they are to be written. Empty: nothing is wanted. */
  readonly steps: readonly Step[];
  readonly waiting: readonly WaitingRow[];
  readonly unplaceable: readonly WaitingRow[];
  readonly unspread: readonly UnspreadRow[];
  readonly conflicts: readonly ConflictRow[];
  /** Proven fewest leadership moves from here (after this pass's promotions and placements) to level; `null` where a cap binds or an out-of-sync copy blocks. */
  readonly minimumLeaderMoves: number | null;
  /** The next cluster time at which a step could be wanted though nothing else changes; `null`: none. */
  readonly nextDeadlineMs: number | null;
  readonly levels: Levels;
}
