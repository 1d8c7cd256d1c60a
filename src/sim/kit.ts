import type { Disk } from '../disk.ts';
import type { Net } from '../net.ts';
import type { BrokerLine } from './broker-net.ts';
import type { CopyChecks, RunningBroker } from './copy-checks.ts';
import type { SimSettings } from './plan.ts';
import type { Tap } from './taps.ts';
import type { SimProcess } from './world.ts';

/** What a process is started with. */
export interface BootContext {
  readonly id: string;
  readonly members: readonly string[];
  readonly settings: SimSettings;
  /** A broker's cap. */
  readonly maxShards: number | null;
  readonly process: SimProcess;
  readonly net: Net;
  readonly disk: Disk;
  readonly tap: Tap;
  readonly copyChecks: CopyChecks;
  /** A broker's talk with the control plane. */
  readonly line: BrokerLine;
  readonly replicationFactor: number;
  /** It stopped itself. */
  onFatal(error: Error): void;
}

/** One running member, as clients and the world meet it. Every refusal is an EvenkeelError. */
export interface Member {
  /** For people: its role, term, and how far its log goes. */
  readonly description: string;
  readonly leads: boolean;
  readonly term: number;
  readonly appliedIndex: number;
  readonly stateHash: string;
  /** Sees to it that these registers are there. May be repeated. */
  prepare(keys: readonly string[], deadlineMs: number): Promise<void>;
  openSession(deadlineMs: number): Promise<number>;
  write(request: WriteRequest, deadlineMs: number): Promise<void>;
  read(key: string, deadlineMs: number): Promise<RegisterValue>;
  transferLeadership(to: string): Promise<void>;
  snapshotNow(): Promise<void>;
  /** Throws where a bound on what it holds in memory is broken. */
  checkBounds(): void;
  /** Only where brokers are. */
  readonly placement: PlacementView | null;
}

/** Who holds which shard, as one member has applied it. */
export interface PlacementView {
  readonly clusterTimeMs: number;
  /** Where that shard's leader takes clients; `null`: nobody is known to. */
  addressOf(shard: string): string | null;
  /** Whether all brokers are live, and all that this one holds in sync is in sync on another too. */
  isSpare(broker: string): boolean;
  setDrain(broker: string, drain: boolean, deadlineMs: number): Promise<void>;
  /** Every shard with the brokers that hold it in sync. */
  readonly shards: readonly { readonly shard: string; readonly inSync: readonly string[] }[];
  /** Shards that the broker leads. */
  ledBy(broker: string): string[];
  setPolicy(changes: Readonly<Record<string, number>> | null, deadlineMs: number): Promise<void>;
  cancelMoves(deadlineMs: number): Promise<void>;
  /** Exports the cluster and imports it over itself, all times moved by so much. */
  reimport(byMs: number, deadlineMs: number): Promise<void>;
  /** Shards of which no broker has a copy that is known to be whole, though all brokers are live. */
  lost(): string[];
  /** What an operator says of a shard that is lost: it begins anew, empty. */
  abandon(shard: string, deadlineMs: number): Promise<void>;
  /** What is not yet as it should be when all is whole and has come to rest; `null`: nothing. */
  unsettled(): string | null;
}

/** What runs on the hosts: which code the simulated world is made of. */
export interface SimKit {
  member(context: BootContext): Promise<Member>;
  /** `null`: consensus alone. */
  readonly broker: {
    boot(context: BootContext): Promise<RunningBroker>;
    /** What a broker that runs no more has on its disk, by shard. */
    stored(context: BootContext): Promise<ReadonlyMap<string, readonly string[]>>;
  } | null;
}

export interface WriteRequest {
  readonly session: number;
  readonly n: number;
  readonly key: string;
  readonly value: string;
  /** Refused with `conflict` unless the register is still as it was at this revision. `null`: whatever it is. */
  readonly expectedRevision: number | null;
}

export interface RegisterValue {
  readonly value: string | null;
  readonly revision: number;
}
