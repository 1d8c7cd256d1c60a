import type { CrashPoint } from './taps.ts';

/** Who is hit: a member or broker by name, or the member that leads (or one that does not) at that moment. */
export type Target = string;
export const ANY_LEADER = 'leader';
export const ANY_FOLLOWER = 'follower';

/** What happens between machines, or to all of them. `forMs`: how long until it is undone. */
export type ClusterAction = { readonly atMs: number } & (
  | { readonly type: 'cut'; readonly pairs: readonly (readonly [string, string])[]; readonly forMs: number }
  | {
      readonly type: 'isolate';
      readonly target: Target;
      readonly way: 'both' | 'in' | 'out';
      readonly forMs: number;
    }
  | {
      readonly type: 'slowLink';
      readonly from: string;
      readonly to: string;
      readonly delayMaxMs: number;
      readonly bytesPerMs: number;
      readonly forMs: number;
    }
  | { readonly type: 'breakLinks'; readonly target: Target }
  | {
      readonly type: 'lossyLinks';
      readonly lossPart: number;
      readonly duplicatePart: number;
      readonly reorderPart: number;
      /** How much later than the link's delay a frame that was overtaken, or its double, may come. */
      readonly lateMs: number;
      readonly resetPart: number;
      readonly forMs: number;
    }
  | { readonly type: 'blackout'; readonly powerCut: boolean; readonly downMs: number }
  | { readonly type: 'transfer'; readonly to: string }
  /** The leader is cut off just as many writes reach it: what it alone has must give way. */
  | { readonly type: 'strand'; readonly writes: number; readonly forMs: number }
  /** The leader hands over, while what the others say to it is so long under way: it learns late that another leads. */
  | { readonly type: 'lateNews'; readonly delayMs: number; readonly forMs: number }
  /** Whoever leads is cut off from the other members together with these brokers; clients reach them all. */
  | { readonly type: 'island'; readonly brokers: readonly string[]; readonly forMs: number }
  /** An operator empties a broker, and takes it back. */
  | { readonly type: 'drain'; readonly broker: string; readonly forMs: number }
);

/** What happens to one member or broker, or is asked of it. */
export type MemberAction = { readonly atMs: number; readonly target: Target } & (
  | { readonly type: 'kill'; readonly powerCut: boolean; readonly downMs: number }
  | {
      readonly type: 'crashAt';
      readonly point: CrashPoint;
      /** How often the point is passed first. */
      readonly skip: number;
      readonly powerCut: boolean;
      readonly downMs: number;
    }
  | { readonly type: 'stall'; readonly timersFirst: boolean; readonly forMs: number }
  | { readonly type: 'slowDisk'; readonly syncMaxMs: number; readonly forMs: number }
  | { readonly type: 'failDisk'; readonly full: boolean; readonly downMs: number }
  | { readonly type: 'jumpWall'; readonly byMs: number }
  | { readonly type: 'snapshot' }
  /** Many writes at once, nobody waits for their answers. */
  | { readonly type: 'burst'; readonly writes: number }
  /** A broker loses its disk, where every shard it holds in sync is in sync elsewhere too. */
  | { readonly type: 'wipe'; readonly downMs: number }
  /** One bit of what is stored rots while the process is down. At most one member a plan, and none of the core. */
  | { readonly type: 'flipBit'; readonly downMs: number }
);

/** What happens to one broker. */
export type BrokerAction = { readonly atMs: number; readonly target: Target } &
  /** A broker's disk is copied while it is down, and the copy put back later, under the same condition. */
  (
    | {
        readonly type: 'restore';
        readonly afterMs: number;
        readonly powerCut: boolean;
        readonly downMs: number;
      }
    /** Two copies of a broker's disk run in turns, under the same condition. */
    | { readonly type: 'clones'; readonly turns: number; readonly turnMs: number; readonly downMs: number }
    /** A broker that is killed finds the end of what it wrote gone, under the same condition. */
    | { readonly type: 'loseTail'; readonly writes: number; readonly downMs: number }
    /** Its disk reads slowly, and it is stopped with reads under way. */
    | {
        readonly type: 'slowReads';
        readonly readMaxMs: number;
        readonly stallMs: number;
        readonly forMs: number;
      }
    /** A broker registers, beats, and says nothing else; then it goes on, or is killed. */
    | { readonly type: 'mute'; readonly forMs: number; readonly kill: boolean }
    /** The answers to a broker's next reports are lost. */
    | { readonly type: 'loseAnswers'; readonly reports: number; readonly deafMs: number }
    /** Other brokers cannot reach a broker's listener for copies: a wrong address, a firewall. */
    | { readonly type: 'refuseCopies'; readonly forMs: number }
    /** What members say to a broker comes later and later, and then it is cut off from them. */
    | { readonly type: 'lateAnswers'; readonly delayMs: number; readonly forMs: number }
    /** All brokers but this one are killed, for so long that they are counted out, and come back together. */
    | { readonly type: 'otherBrokersReturn'; readonly downMs: number }
    /** It is heard again, once, after it was to be declared down and before the slow quorum has written that. */
    | { readonly type: 'heardLate'; readonly silentMs: number; readonly forMs: number }
    /** It falls silent until it is to be declared down, and is heard again while the leader has no room for the proposal. */
    | { readonly type: 'overload'; readonly silentMs: number }
  );

/** What an operator does. */
export type OperatorAction = { readonly atMs: number } &
  /** An operator exports the cluster and imports it over itself, all times in the file moved by so much. */
  (
    | { readonly type: 'reimport'; readonly byMs: number }
    /** An operator cancels whatever moves are in flight. */
    | { readonly type: 'cancelMoves' }
    /** An operator sets fields of the placement policy; the defaults come back afterwards. */
    | { readonly type: 'policy'; readonly changes: Readonly<Record<string, number>>; readonly forMs: number }
  );

/** Links between members that stay as they are for many elections. */
export type TopologyAction = { readonly atMs: number; readonly forMs: number } & (
  | {
      /** The center reaches all; nobody else reaches another side. */
      readonly type: 'center';
      readonly center: string;
      readonly sides: readonly (readonly string[])[];
      /** Whoever leads is killed as the links go, so that the others' logs are equal. */
      readonly killsLeader: boolean;
      /** Of every link. 0: as the settings say. */
      readonly delayMs: number;
    }
  | {
      /** With a minority down, the sockets of whoever leads break again and again. */
      readonly type: 'flap';
      /** The leader refuses the others' sockets as well. Otherwise they go on following it. */
      readonly bothWays: boolean;
      readonly breakMs: number;
      readonly everyMs: number;
    }
);

/** One thing that goes wrong, at a time. */
export type SimAction = ClusterAction | MemberAction | BrokerAction | OperatorAction | TopologyAction;

/** One thing that a client does, after its last one ended and it has thought. */
export interface SimOperation {
  readonly client: string;
  readonly type: 'read' | 'write' | 'cas';
  readonly key: string;
  /** Unique in the plan: what is written. */
  readonly value: string;
  readonly thinkMs: number;
  /** Which member is asked first; retries go on to the others. */
  readonly first: string;
}

/** One thing that a client of the brokers does. */
export interface SimRecordOperation {
  readonly client: string;
  readonly type: 'append' | 'read';
  readonly shard: string;
  /** Unique in the plan: the record. */
  readonly value: string;
  readonly thinkMs: number;
}

export interface SimSettings {
  readonly electionTimeoutMs: number;
  readonly heartbeatMs: number;
  /** Of consensus: small ones make it work in many steps. */
  readonly limits: {
    readonly snapshotEveryEntries: number;
    readonly trailingEntries: number;
    readonly maxAppendEntries: number;
    readonly maxInflightMessages: number;
    readonly maxWriteEntries: number;
    readonly maxApplyEntries: number;
    readonly maxPendingProposals: number;
  };
  /** The range that every link's delay is drawn from. */
  readonly delayMinMs: number;
  readonly delayMaxMs: number;
  readonly syncMaxMs: number;
  /** By member: how much faster its clock runs. */
  readonly driftPart: Readonly<Record<string, number>>;
  readonly wallOffsetMs: Readonly<Record<string, number>>;
}

/** Everything that a run is made of: with the code, it decides every step. */
export interface SimPlan {
  readonly seed: number;
  readonly members: readonly string[];
  /** Empty where consensus runs alone. */
  readonly brokers: readonly string[];
  /** Every broker's cap on copies; `null`: none. */
  readonly maxShards: number | null;
  /** Of every resource. */
  readonly replicationFactor: number;
  readonly settings: SimSettings;
  /** The kinds of fault that were drawn, for people. */
  readonly faults: readonly string[];
  readonly actions: readonly SimAction[];
  readonly operations: readonly SimOperation[];
  readonly records: readonly SimRecordOperation[];
  /** Anything may fail until then. */
  readonly faultsEndMs: number;
  /** From then on these are whole; the others are gone, cut off, or heard without hearing, and a quorum is enough. */
  readonly core: readonly string[];
  readonly outsiders: 'healed' | 'killed' | 'cut' | 'deaf';
}
