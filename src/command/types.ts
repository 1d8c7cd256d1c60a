import type {
  Assignment,
  Broker,
  Policy,
  Resource,
  ResourceKind,
  Step,
  ZonePolicy,
} from '../../placement/index.ts';
export type { CommandResult } from '../state/index.ts';

/** The version written into every entry. A member that meets a higher one stops applying and says so (hazard 36). */
export const COMMAND_VERSION = 1;

/** One log entry's payload: a MessagePack map. */
export interface CommandEnvelope {
  readonly version: number;
  /** Cluster time at the proposer, ms: the state's time becomes the higher of the two. */
  readonly timeMs: number;
  /** One effect a request: the answer of (session, n) is kept and given again. */
  readonly request: { readonly session: number; readonly n: number } | null;
  /** The term it was decided in: applied only where its entry is of that term; `null`: any. */
  readonly inTerm: number | null;
  readonly command: Command;
}

/** Every intent the log can carry. What is decided is in it; applying only validates and writes. */
export type Command =
  | {
      readonly type: 'registerBroker';
      readonly broker: {
        readonly id: string;
        readonly zone: string | null;
        readonly addresses: Readonly<Record<string, string>>;
        readonly maxShards: number | null;
        readonly weight: number;
        readonly labels: Readonly<Record<string, string>>;
        readonly storeId: string | null;
        readonly starts: number | null;
      };
    }
  | {
      readonly type: 'setLifecycle';
      readonly broker: string;
      readonly incarnation: number;
      readonly lifecycle: 'down' | 'left';
      /** Cluster time of its last sign of life, ms. */
      readonly silentSinceMs: number;
      /** Other brokers that were not heard within their lease: what they lead acknowledges nothing. Absent: none. */
      readonly unheard?: readonly string[];
    }
  | { readonly type: 'setDrain'; readonly broker: string; readonly drain: boolean }
  | {
      readonly type: 'removeBroker';
      readonly broker: string;
      /** Remove this incarnation, and only if it is down or has left; `null`: whatever is there. */
      readonly incarnation: number | null;
    }
  | { readonly type: 'createResource'; readonly resource: Resource }
  | {
      readonly type: 'alterResource';
      readonly kind: ResourceKind;
      readonly name: string;
      readonly expectedRevision: number | null;
      /** Absent: unchanged. */
      readonly shards?: number;
      readonly replicationFactor?: number;
      readonly zonePolicy?: ZonePolicy | null;
      /** Label to its new value; `null` removes it. */
      readonly labels?: Readonly<Record<string, string | null>>;
    }
  | {
      readonly type: 'deleteResource';
      readonly kind: ResourceKind;
      readonly name: string;
      readonly expectedRevision: number | null;
    }
  /** Decided assignments: at most 500 rows and 256 KiB an entry. Each row is written or refused by itself. */
  | { readonly type: 'placement'; readonly rows: readonly PlacementRow[] }
  | {
      readonly type: 'report';
      readonly broker: string;
      readonly incarnation: number;
      readonly shards: readonly {
        readonly shard: string;
        readonly generation: number;
        /** `null`: unchanged. */
        readonly inSync: readonly string[] | null;
        readonly drained: boolean;
      }[];
    }
  | {
      readonly type: 'confirm';
      readonly broker: string;
      readonly incarnation: number;
      readonly shards: readonly { readonly shard: string; readonly generation: number }[];
    }
  | {
      readonly type: 'setPolicy';
      readonly expectedRevision: number | null;
      readonly patch: Partial<Policy>;
    }
  /** An operator gives a durable shard's log up, by name. */
  | { readonly type: 'abandonShard'; readonly shard: string; readonly expectedGeneration: number | null }
  | {
      readonly type: 'importPart';
      readonly importId: string;
      readonly part: number;
      readonly brokers: readonly Broker[];
      readonly resources: readonly Resource[];
      readonly assignments: readonly Assignment[];
    }
  | {
      readonly type: 'importCommit';
      readonly importId: string;
      readonly parts: number;
      /** The file's `timeMs`; `null`: it gives none. */
      readonly timeMs: number | null;
      readonly policy: Policy;
      readonly overwrite: boolean;
    }
  /** Its parts go. */
  | { readonly type: 'abortImport'; readonly importId: string }
  | { readonly type: 'openSession' };

/** A planner's step as the log carries it: all of `Step` but the long form of why. */
export interface PlacementRow extends Omit<Step, 'why' | 'vector'> {
  /** The resource's `createdRevision` the row was decided for. */
  readonly resourceRevision: number;
  readonly rule: string;
  readonly detail: string;
}

/** The `value` of `placement`, `report` and `confirm`, by row. */
export interface RowResult {
  readonly shard: string;
  /** `report` and `confirm`: accepted, stale, not_leader, unknown_shard. `placement`: accepted or the refusal's code. */
  readonly result: string;
  readonly detail: string;
}
