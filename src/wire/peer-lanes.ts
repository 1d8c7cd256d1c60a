import type { Message } from '../../raft/index.ts';
import { MAX_CALL_FRAME_BYTES, MAX_LOG_FRAME_BYTES, type Lane } from './peer-codec.ts';

export const PEER_SUBPROTOCOL = 'evenkeel.peer.v1+msgpack';

interface LaneRules {
  readonly path: string;
  readonly maxPayloadBytes: number;
  /** Bytes not yet taken by the system above which nothing more is sent on the lane: messages are dropped, calls refused. */
  readonly maxBufferedBytes: number;
}

const MIB = 1024 * 1024;

/**
 * Bounds of each lane. What a lane holds can pass `maxBufferedBytes` by one turn's messages, which Raft's
 * own window bounds; a snapshot is sent only where nothing of one is under way.
 */
export const LANE_RULES: Readonly<Record<Lane, LaneRules>> = {
  control: { path: '/peer', maxPayloadBytes: 4 * MIB, maxBufferedBytes: 4 * MIB },
  log: { path: '/peer/log', maxPayloadBytes: MAX_LOG_FRAME_BYTES, maxBufferedBytes: 32 * MIB },
  calls: { path: '/peer/calls', maxPayloadBytes: MAX_CALL_FRAME_BYTES, maxBufferedBytes: 16 * MIB },
};

/** Appends stay in order among themselves; nothing waits behind them but a snapshot. */
export function laneOf(message: Message): Lane {
  return message.type === 'append' || message.type === 'snapshot' ? 'log' : 'control';
}
