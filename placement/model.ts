/**
 * The nouns that placement decides about. Their field names are those of the cluster file
 * (docs/cluster-file.md): the same objects are the replicated state's rows and the planner's input.
 * Rows are immutable: a change replaces the row, so a snapshot of the maps is a snapshot of the state.
 */

export type ResourceKind = 'stream' | 'cache';
/** `live` takes shards; `draining` serves and is given none; `down` is silent past its time-out; `left` deregistered. */
export type Lifecycle = 'live' | 'draining' | 'down' | 'left';
export type ZonePolicy = 'broker' | 'zone' | 'majority';
export type AssignmentState = 'assigning' | 'active' | 'draining';
export type MoveRole = 'leader' | 'follower';
/** `staged` and `fenced` are leader moves, `joining` is a follower move. */
export type MoveStep = 'staged' | 'fenced' | 'joining';

/** Why a write was made; a stable code. */
export type Reason =
  'new' | 'failover' | 'drain' | 'restore' | 'surplus' | 'balance' | 'zone' | 'level' | 'operator';

export interface Broker {
  readonly id: string;
  /** `null`: the broker is a zone of its own. */
  readonly zone: string | null;
  readonly lifecycle: Lifecycle;
  /** An operator's (or the broker's own) intent to empty it; survives every registration. */
  readonly drain: boolean;
  /** Most copies (leaders and followers together) it may hold; `null`: no cap. */
  readonly maxShards: number | null;
  /** 1 to 1000. */
  readonly weight: number;
  /** Counts the registrations of this id; 0 for an imported broker that has never registered. */
  readonly incarnation: number;
  /** Cluster time, ms. */
  readonly registeredAtMs: number;
  /** Cluster time, ms, of its last sign of life; `null` while it is not silent. */
  readonly downSinceMs: number | null;
}

export interface Resource {
  readonly kind: ResourceKind;
  readonly name: string;
  readonly shards: number;
  readonly replicationFactor: number;
  /** `false`: ephemeral, there is no log to hand over. */
  readonly durable: boolean;
  /** `null`: the cluster's policy. */
  readonly zonePolicy: ZonePolicy | null;
  readonly labels: Readonly<Record<string, string>>;
}

export interface Move {
  readonly role: MoveRole;
  /** The copy that leaves or hands over; `null` where none does. */
  readonly from: string | null;
  readonly to: string;
  readonly step: MoveStep;
  readonly reason: Reason;
  /** The move started a copy on `to` (which held none before). */
  readonly copied: boolean;
  /** The copy that goes at the cut-over or the seat; `null`: none. Chosen at stage. */
  readonly drops: string | null;
  /** Cluster time, ms. */
  readonly startedAtMs: number;
  readonly progressAtMs: number;
}

/** What has moved of a shard since something last happened from outside. */
export interface Moved {
  /** The phase it belongs to; once another has begun it says nothing. */
  readonly phase: number;
  /** Its leadership has. */
  readonly leader: boolean;
  /** Where followers' moves have taken a copy. */
  readonly copies: readonly MovedCopy[];
}

export interface MovedCopy {
  readonly from: string;
  readonly to: string;
}

/** Moves of a shard to one destination that failed since the last that finished there. */
export interface Failure {
  readonly to: string;
  readonly times: number;
  /** Cluster time, ms, of the last. It counts for an hour, and until the broker registers anew. */
  readonly atMs: number;
}

export interface Assignment {
  /** `<kind>:<name>/<number>`. */
  readonly shard: string;
  readonly leader: string;
  /** Every copy, the leader's and a staged or joining one included. */
  readonly replicas: readonly string[];
  /** Subset of `replicas`: the copies that hold, on disk, everything the shard acknowledged. */
  readonly inSync: readonly string[];
  /** Counts every write to this row. */
  readonly generation: number;
  /** The generation at which who may serve last changed. `epoch <= generation`. */
  readonly epoch: number;
  readonly state: AssignmentState;
  /** Moves of this shard given up since the last that finished; orders the queue. */
  readonly failedMoves: number;
  /** Where its moves failed, the latest last, at most four; absent: nowhere. */
  readonly failures?: readonly Failure[];
  readonly move: Move | null;
  /** Absent: nothing has. */
  readonly moved?: Moved;
}

export interface Policy {
  readonly maxConcurrentMoves: number;
  readonly maxMovesPerBroker: number | null;
  readonly maxConcurrentHandovers: number;
  readonly paused: boolean;
  readonly zonePolicy: ZonePolicy;
  readonly restoreAfterMs: number;
  readonly moveTimeoutMs: number;
  readonly moveStallMs: number;
  readonly fenceTimeoutMs: number;
  readonly fenceMaxLagRecords: number;
  readonly settleMs: number;
  readonly passIntervalMs: number;
}

export const DEFAULT_POLICY: Policy = {
  maxConcurrentMoves: 1,
  maxMovesPerBroker: null,
  maxConcurrentHandovers: 1,
  paused: false,
  zonePolicy: 'broker',
  restoreAfterMs: 300_000,
  moveTimeoutMs: 1_800_000,
  moveStallMs: 120_000,
  fenceTimeoutMs: 10_000,
  fenceMaxLagRecords: 1_000,
  settleMs: 10_000,
  passIntervalMs: 1_000,
};

/** The resource's key, `stream:orders`. */
export function resourceKey(resource: { kind: ResourceKind; name: string }): string {
  return `${resource.kind}:${resource.name}`;
}

/** The shard's key, `stream:orders/3`. */
export function shardKey(resource: { kind: ResourceKind; name: string }, number: number): string {
  return `${resource.kind}:${resource.name}/${number}`;
}

/** Splits `stream:a/b/3` into the resource's key `stream:a/b` and the number 3. */
export function splitShard(shard: string): { resource: string; number: number } {
  const slash = shard.lastIndexOf('/');
  return { resource: shard.slice(0, slash), number: Number(shard.slice(slash + 1)) };
}

/** Order by UTF-16 code units: the same on every machine, whatever its locale. */
export function compareStrings(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** By resource, then number (2 before 10). */
export function compareShards(a: string, b: string): number {
  const x = splitShard(a);
  const y = splitShard(b);
  return compareStrings(x.resource, y.resource) || x.number - y.number;
}
