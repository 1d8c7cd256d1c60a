import type { MemberId, Message } from './types.ts';

/**
 * Carries messages between members: unreliable, unordered across reconnects, never blocking. A message
 * that cannot be sent now is dropped; Raft repeats what matters.
 */
export interface Transport {
  /** Sets who is told. Called once, before `start`. */
  bind(handler: TransportHandler): void;
  start(): Promise<void>;
  send(messages: readonly Message[]): void;
  /** Whether a socket to that peer is open now. */
  isConnected(peer: MemberId): boolean;
  stop(): Promise<void>;
}

export interface TransportHandler {
  onMessages(messages: readonly Message[]): void;
  /** A checked hello was exchanged; `bootId` differs for every start of the peer's process. */
  onPeerUp(peer: MemberId, bootId: string): void;
  /** The socket closed and one immediate reconnect failed. */
  onPeerDown(peer: MemberId): void;
}
