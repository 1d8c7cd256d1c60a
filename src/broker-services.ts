import type { Lifecycle } from '../placement/index.ts';

/** Numbers a Raft leader gives to sessions: ordered by term, then n, so that the newer of two is known without a log entry. */
export interface SessionRef {
  readonly term: number;
  readonly n: number;
}

/** What a shard's leader says of its copies' logs. Offsets are counts of records. */
export interface OffsetReport {
  readonly shard: string;
  readonly generation: number;
  readonly leaderOffset: number;
  /** By broker id. */
  readonly followers: Readonly<Record<string, number>>;
}

/** What a broker says of itself, as checked by the session that took it. */
export interface BrokerIdentity {
  readonly id: string;
  readonly zone: string | null;
  readonly addresses: Readonly<Record<string, string>>;
  readonly maxShards: number | null;
  readonly weight: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly storeId: string | null;
  /** How often that store was counted as opened, this registration's own count included; `null`: it does not count. */
  readonly starts: number | null;
}

export interface RegisterParams {
  readonly broker: BrokerIdentity;
  /** Resumes that registration; `null`: a new one. */
  readonly incarnation: number | null;
}

export interface RegisterAnswer {
  readonly incarnation: number;
  readonly heartbeatMs: number;
  readonly leaseMs: number;
  readonly expiryMs: number;
  readonly marginMs: number;
  readonly lifecycle: Lifecycle;
  readonly revision: number;
  /** For the node that holds the connection; the broker does not see it. */
  readonly session: SessionRef;
}

/** A registered broker's session, as every later request names it. */
export interface SessionParams {
  readonly broker: string;
  readonly incarnation: number;
  readonly session: SessionRef;
}

export interface HeartbeatAnswer {
  readonly lifecycle: Lifecycle;
  readonly leaseMs: number;
  readonly term: number;
}

export interface ShardReportParams extends OffsetReport {
  /** `null`: unchanged. */
  readonly inSync: readonly string[] | null;
  readonly drained: boolean;
}

export interface ReportParams extends SessionParams {
  readonly shards: readonly ShardReportParams[];
}

export interface ConfirmParams extends SessionParams {
  readonly shards: readonly { readonly shard: string; readonly generation: number }[];
}

export type ShardResult = 'accepted' | 'stale' | 'not_leader' | 'unknown_shard';

export interface ShardResults {
  readonly results: readonly { readonly shard: string; readonly result: ShardResult }[];
}

export interface LeaveParams extends SessionParams {
  readonly drain: boolean;
}

export interface LeaveAnswer {
  readonly lifecycle: Lifecycle;
}

/** What brokers' sessions ask of the Raft leader, by the name under which it is served. */
export interface BrokerServices {
  'broker.register': (params: RegisterParams) => Promise<RegisterAnswer>;
  'broker.heartbeat': (params: SessionParams) => Promise<HeartbeatAnswer>;
  'broker.report': (params: ReportParams) => Promise<ShardResults>;
  'broker.confirm': (params: ConfirmParams) => Promise<ShardResults>;
  'broker.leave': (params: LeaveParams) => Promise<LeaveAnswer>;
  'broker.disconnected': (params: SessionParams) => Promise<Record<string, never>>;
}
