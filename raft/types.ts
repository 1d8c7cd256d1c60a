/** A member's id, as operators name it (`n1`). */
export type MemberId = string;

export type EntryKind = 'noop' | 'command' | 'config';

/** One slot of the log. `index` starts at 1 and rises by one; `term` never falls. `data` is immutable once made. */
export interface Entry {
  readonly index: number;
  readonly term: number;
  readonly kind: EntryKind;
  /** The same bytes are stored, sent and applied. Empty for a no-op. */
  readonly data: Uint8Array;
}

/** What must be on disk before any message that rests on it leaves (paper, figure 2). */
export interface HardState {
  readonly term: number;
  readonly votedFor: MemberId | null;
  /** A hint that saves replay time; safety never rests on it. */
  readonly commit: number;
}

/** Joint from the start: `outgoing` is empty outside a joint change (paper, section 6). */
export interface Configuration {
  readonly voters: readonly MemberId[];
  readonly outgoing: readonly MemberId[];
  readonly learners: readonly MemberId[];
  /** Learners that become so when the joint change ends. */
  readonly learnersNext: readonly MemberId[];
}

export interface SnapshotMeta {
  /** Last entry the snapshot holds the effect of. */
  readonly index: number;
  readonly term: number;
  readonly configuration: Configuration;
}

export interface Snapshot {
  readonly meta: SnapshotMeta;
  readonly data: Uint8Array;
}

interface Envelope {
  readonly from: MemberId;
  readonly to: MemberId;
  /** Sender's term; in a pre-vote request and its grant, the term the candidate would take. */
  readonly term: number;
}

/** Everything peers say to each other. Numbers are safe integers >= 0; the wire checks it. */
export type Message =
  | (Envelope & { readonly type: 'preVote'; readonly lastIndex: number; readonly lastTerm: number })
  | (Envelope & { readonly type: 'preVoteReply'; readonly granted: boolean })
  | (Envelope & {
      readonly type: 'vote';
      readonly lastIndex: number;
      readonly lastTerm: number;
      /** The leader itself asked for this election: stickiness does not refuse it. */
      readonly transfer: boolean;
    })
  | (Envelope & { readonly type: 'voteReply'; readonly granted: boolean })
  | (Envelope & {
      readonly type: 'append';
      readonly prevIndex: number;
      readonly prevTerm: number;
      readonly commit: number;
      readonly entries: readonly Entry[];
    })
  | (Envelope & {
      readonly type: 'appendReply';
      /** Granted: `index` is the last entry known equal to the leader's. Rejected: `index` is the refused prevIndex. */
      readonly success: boolean;
      readonly index: number;
      /** Rejected only: where the follower's log may still match (back-off by term). */
      readonly hintIndex: number;
      readonly hintTerm: number;
      /** It has lost entries it had acknowledged: it counts for nothing, whatever it grants, and asks for the log from `hintIndex` again (hazard 18). */
      readonly lost: boolean;
    })
  | (Envelope & { readonly type: 'heartbeat'; readonly commit: number; readonly round: number })
  | (Envelope & { readonly type: 'heartbeatReply'; readonly round: number })
  | (Envelope & { readonly type: 'readIndex'; readonly token: number })
  | (Envelope & {
      readonly type: 'readIndexReply';
      readonly token: number;
      /** The index to wait for; `null`: refused, ask again. */
      readonly index: number | null;
    })
  | (Envelope & { readonly type: 'snapshot'; readonly snapshot: Snapshot })
  | (Envelope & {
      readonly type: 'timeoutNow';
      /** Where the leader's log ended and how many rounds of heartbeats it had begun: a later sign of it voids this. */
      readonly lastIndex: number;
      readonly round: number;
    });

export type Role = 'follower' | 'preCandidate' | 'candidate' | 'leader';
