import { WebSocket, WebSocketServer } from 'ws';
import {
  decodePeerFrame,
  encodePeerFrame,
  type Lane,
  type PeerFrame,
  type PeerIdentity,
} from '../../src/wire/peer-codec.ts';
import { LANE_RULES, PEER_SUBPROTOCOL } from '../../src/wire/peer-lanes.ts';

export function identityOf(memberId: string, change: Partial<PeerIdentity> = {}): PeerIdentity {
  return {
    clusterId: 'test',
    memberId,
    directoryId: `directory of ${memberId}`,
    bootId: `boot 1 of ${memberId}`,
    bootCount: 1,
    ...change,
  };
}

export function frameOf(data: unknown): PeerFrame {
  if (!Buffer.isBuffer(data)) throw new Error('a frame that is no Buffer');
  return decodePeerFrame(new Uint8Array(data));
}

/** A bare socket to a member's lane, for what no transport of ours would send. */
export async function bareLane(address: string, lane: Lane): Promise<WebSocket> {
  const socket = new WebSocket(`ws://${address}${LANE_RULES[lane].path}`, [PEER_SUBPROTOCOL], {
    perMessageDeflate: false,
  });
  await new Promise((resolve, reject) => {
    socket.once('open', resolve);
    socket.once('error', reject);
  });
  socket.on('error', () => {});
  return socket;
}

/** The same, and its hello was answered. */
export async function greetedLane(
  address: string,
  from: PeerIdentity,
  to: string,
  lane: Lane,
): Promise<WebSocket> {
  const socket = await bareLane(address, lane);
  const answered = new Promise((resolve, reject) => {
    socket.once('message', resolve);
    socket.once('close', (code) => reject(new Error(`closed with ${code}`)));
  });
  socket.send(encodePeerFrame({ kind: 'hello', ...from, protocol: 1, to, lane }));
  const answer = frameOf(await answered);
  if (answer.kind !== 'welcome') throw new Error(`the hello was answered by ${answer.kind}`);
  return socket;
}

/** A member that answers hellos and then does with each lane's socket what the test says. */
export async function bareMember(
  identity: PeerIdentity,
  greeted: (lane: Lane, socket: WebSocket) => void,
): Promise<{ address: string; stop: () => Promise<void> }> {
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0, perMessageDeflate: false });
  await new Promise((resolve) => server.once('listening', resolve));
  server.on('connection', (socket) => {
    socket.once('message', (data) => {
      const hello = frameOf(data);
      if (hello.kind !== 'hello') throw new Error(`a ${hello.kind} came first`);
      socket.send(encodePeerFrame({ kind: 'welcome', ...identity, protocol: 1 }));
      greeted(hello.lane, socket);
    });
  });
  const bound = server.address();
  if (bound === null || typeof bound === 'string') throw new Error('no address');
  return {
    address: `127.0.0.1:${bound.port}`,
    stop: async () => {
      for (const client of server.clients) client.terminate();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
