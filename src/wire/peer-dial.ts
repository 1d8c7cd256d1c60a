import type { Clock, MemberId } from '../../raft/index.ts';
import { EvenkeelError } from '../errors.ts';
import type { Connection, Net } from '../net.ts';
import {
  LANES,
  PEER_PROTOCOL,
  decodePeerFrame,
  encodePeerFrame,
  type Lane,
  type PeerIdentity,
} from './peer-codec.ts';
import { LANE_RULES, PEER_SUBPROTOCOL } from './peer-lanes.ts';

/** Connecting is to be done within this, and so is the hello after it. */
const CONNECT_TIMEOUT_MS = 1_000;

export interface DialOptions {
  readonly net: Net;
  readonly clock: Clock;
  readonly self: PeerIdentity;
  readonly peer: MemberId;
  readonly address: string;
  /** Whether that identity may be the peer; the reason where not. */
  readonly admit: (identity: PeerIdentity) => EvenkeelError | null;
  /** Any lane's frame after its hello. */
  readonly onFrame: (data: string | Uint8Array) => void;
  /** Any lane closed after its hello. */
  readonly onClosed: () => void;
}

export interface DialedPeer {
  readonly lanes: ReadonlyMap<Lane, Connection>;
  readonly identity: PeerIdentity;
}

/** Opens every lane to a peer and says hello on each. All or none: where one fails the others are closed. */
export async function dialPeer(options: DialOptions): Promise<DialedPeer> {
  const dialed = await Promise.allSettled(LANES.map((lane) => dialLane(options, lane)));
  const open = dialed.filter((result) => result.status === 'fulfilled').map((result) => result.value);
  const failed = dialed.find((result) => result.status === 'rejected');
  try {
    if (failed !== undefined) throw failed.reason;
    const identity = open[0]?.identity;
    if (identity === undefined || open.some((each) => each.identity.bootId !== identity.bootId)) {
      throw new EvenkeelError('unavailable', `${options.peer} was started anew between two lanes`);
    }
    return { lanes: new Map(open.map(({ lane, connection }) => [lane, connection])), identity };
  } catch (error) {
    for (const { connection } of open) connection.terminate();
    throw error;
  }
}

interface DialedLane {
  readonly lane: Lane;
  readonly connection: Connection;
  readonly identity: PeerIdentity;
}

async function dialLane(options: DialOptions, lane: Lane): Promise<DialedLane> {
  const { net, clock, self, peer, address } = options;
  const { path, maxPayloadBytes } = LANE_RULES[lane];
  const connection = await net.connect(address, {
    path,
    maxPayloadBytes,
    subprotocol: PEER_SUBPROTOCOL,
    timeoutMs: CONNECT_TIMEOUT_MS,
    unmasked: true,
  });
  return new Promise((resolve, reject) => {
    const fail = (error: unknown): void => {
      clock.clearTimeout(timer);
      connection.onMessage = () => {};
      connection.onClose = () => {};
      connection.terminate();
      reject(error);
    };
    const unreachable = (what: string): void =>
      fail(new EvenkeelError('unreachable', `${peer} at ${address} ${what}`));
    const timer = clock.setTimeout(() => unreachable('did not answer the hello'), CONNECT_TIMEOUT_MS);
    connection.onClose = () => unreachable('hung up');
    connection.onMessage = (data) => {
      try {
        const identity = welcomed(options, data);
        clock.clearTimeout(timer);
        connection.onMessage = options.onFrame;
        connection.onClose = options.onClosed;
        resolve({ lane, connection, identity });
      } catch (error) {
        fail(error);
      }
    };
    connection.send(encodePeerFrame({ kind: 'hello', ...self, protocol: PEER_PROTOCOL, to: peer, lane }));
  });
}

function welcomed(options: DialOptions, data: string | Uint8Array): PeerIdentity {
  const { peer, address, admit } = options;
  if (typeof data === 'string') throw new EvenkeelError('protocol_error', 'a text frame from a peer');
  const frame = decodePeerFrame(data);
  if (frame.kind === 'refused') {
    const text = `${peer} at ${address} refused this node: ${frame.message}`;
    throw new EvenkeelError('refused', text, { reason: frame.code });
  }
  if (frame.kind !== 'welcome') throw new EvenkeelError('protocol_error', `a ${frame.kind} answers a hello`);
  if (frame.protocol !== PEER_PROTOCOL) {
    throw new EvenkeelError('protocol_error', `${peer} speaks peer protocol ${frame.protocol}`);
  }
  const refusal = admit(frame);
  if (refusal !== null) throw refusal;
  return frame;
}
