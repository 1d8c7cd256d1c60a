/** Between brokers, at `/copy` of the address named `copy`: MessagePack in binary frames. The follower dials. */
export const COPY_PATH = '/copy';
export const COPY_SUBPROTOCOL = 'evenkeel.copy.v1+msgpack';
/** The name under which a broker's address for this is registered. */
export const COPY_ADDRESS = 'copy';
export const MAX_COPY_FRAME_BYTES = 8 * 1024 * 1024;
/** Records of one message. */
export const RECORDS_PER_MESSAGE = 256;

/** From the copy to the leader. */
export type FollowMessage =
  | {
      readonly type: 'hello';
      readonly clusterId: string;
      readonly broker: string;
      readonly incarnation: number;
    }
  /** Asks for everything from `end` on. `lastEpoch` is that of the record before; 0: none. */
  | {
      readonly type: 'follow';
      readonly shard: string;
      readonly epoch: number;
      readonly end: number;
      readonly lastEpoch: number;
    }
  /** Everything below `end` is on disk. */
  | { readonly type: 'ack'; readonly shard: string; readonly epoch: number; readonly end: number }
  | { readonly type: 'unfollow'; readonly shard: string };

/** From the leader to the copy. */
export type LeadMessage =
  | {
      readonly type: 'records';
      readonly shard: string;
      readonly epoch: number;
      readonly from: number;
      readonly records: readonly (readonly [epoch: number, payload: Uint8Array])[];
    }
  /** The copy's log parts from the leader's at `to`: drop what follows and ask again. */
  | { readonly type: 'truncate'; readonly shard: string; readonly epoch: number; readonly to: number }
  /** Not led here at that epoch (yet, or any more): ask again later. */
  | { readonly type: 'refused'; readonly shard: string; readonly epoch: number };
