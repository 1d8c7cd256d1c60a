/**
 * One member of `bench/raft.ts`: consensus, log and peer sockets as built, and a state machine that keeps the last
 * value of each key. Prints `ready`, then `role <role>` with each change. Clients propose over `/bench`, binary
 * frames of `u32 id, u32 length, data`; each frame of answers holds the ids that were applied, u32 each.
 *   raft-member.ts <id> <directory> <listen> <id=peer address,…>
 */
import type * as Raft from '../raft/index.ts';
import type * as ClockModule from '../src/clock.ts';
import type * as DiskModule from '../src/disk-level.ts';
import type * as Log from '../src/log/index.ts';
import type * as LoggerModule from '../src/logger.ts';
import type * as NetModule from '../src/net-ws.ts';
import type { Connection } from '../src/net.ts';
import type * as RandomModule from '../src/random.ts';
import type * as Wire from '../src/wire/index.ts';
import { built } from './built.ts';

const { RaftNode } = await built<typeof Raft>('raft/index.js');
const { createSystemClock } = await built<typeof ClockModule>('src/clock.js');
const { createLevelDisk } = await built<typeof DiskModule>('src/disk-level.js');
const { openDataDirectory } = await built<typeof Log>('src/log/index.js');
const { createLogger } = await built<typeof LoggerModule>('src/logger.js');
const { createWebSocketNet } = await built<typeof NetModule>('src/net-ws.js');
const { createSystemRandom } = await built<typeof RandomModule>('src/random.js');
const { PeerTransport } = await built<typeof Wire>('src/wire/index.js');

const DEADLINE_MS = 10_000;
const MAX_FRAME_BYTES = 4 * 1024 * 1024;
const KEYS = 64;

const [memberId = '', directory = '', listen = '', members = ''] = process.argv.slice(2);
const addresses = new Map(members.split(',').map((member) => member.split('=') as [string, string]));
const [clock, net, disk, random] = [
  createSystemClock(),
  createWebSocketNet(),
  createLevelDisk(),
  createSystemRandom(),
];
const data = await openDataDirectory({ disk, random, directory, clusterId: 'bench', memberId });
const transport = new PeerTransport({
  ...{ net, clock, random, logger: createLogger({ level: 'error', node: memberId }) },
  self: { ...data.identity, bootId: String(random.nextUint32()), bootCount: data.bootCount },
  listen: addresses.get(memberId) ?? '',
  peers: addresses,
});

const values = new Map<number, Uint8Array>();
const stateMachine: Raft.StateMachine = {
  apply: (entries) => entries.map((entry) => void values.set(entry.index % KEYS, entry.data)),
  snapshot: () => Buffer.concat([...values.values()]),
  restore: () => values.clear(),
};

const node = await RaftNode.start({
  id: memberId,
  configuration: { voters: [...addresses.keys()], outgoing: [], learners: [], learnersNext: [] },
  ...{ storage: data.storage, transport, stateMachine, clock, random },
});
node.onFatal((error) => {
  console.error(error);
  process.exit(1);
});

function serve(connection: Connection): void {
  let applied: number[] = [];
  const answer = (id: number): void => {
    applied.push(id);
    if (applied.length > 1) return;
    // What one turn applied is answered together.
    clock.defer(() => {
      const frame = Buffer.allocUnsafe(4 * applied.length);
      applied.forEach((each, at) => frame.writeUInt32BE(each, 4 * at));
      applied = [];
      connection.send(frame);
    });
  };
  connection.onMessage = (message) => {
    const frame = Buffer.from(message as Uint8Array);
    for (let at = 0; at < frame.length;) {
      const id = frame.readUInt32BE(at);
      const end = at + 8 + frame.readUInt32BE(at + 4);
      node.propose(frame.subarray(at + 8, end), clock.now() + DEADLINE_MS).then(
        () => answer(id),
        (error: unknown) => connection.close(4000, String(error)),
      );
      at = end;
    }
  };
}

const route = { subprotocols: [], maxPayloadBytes: MAX_FRAME_BYTES, onConnection: serve };
await net.listen(listen, { routes: { '/bench': route } });
console.log('ready');
node.onState(({ role, noopApplied }) => console.log(`role ${noopApplied ? 'serving' : role}`));
