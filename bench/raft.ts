/**
 * Consensus alone: three processes of the Raft node with its log on disk and its peer sockets, a trivial state
 * machine, values proposed over one binary WebSocket to the leader. The counterpart of etcd's put.
 *   npm run bench:raft -- [--in-flight 1,16,64,256,1000] [--seconds 5] [--value-bytes 256]
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { WebSocket } from 'ws';
import { freePorts, until } from '../tests/support/cluster.ts';
import { measure, numbers } from './support.ts';

const { values } = parseArgs({
  options: {
    'in-flight': { type: 'string', default: '1,16,64,256,1000' },
    seconds: { type: 'string', default: '5' },
    'value-bytes': { type: 'string', default: '256' },
  },
});

interface Member {
  readonly child: ChildProcess;
  readonly address: string;
  lastLine: string;
}

function startMember(id: string, address: string, data: string, peers: string): Member {
  const program = join(import.meta.dirname, 'raft-member.ts');
  const child = spawn(process.execPath, ['--import', 'tsx', program, id, data, address, peers], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const member: Member = { child, address, lastLine: '' };
  createInterface({ input: child.stdout }).on('line', (line) => (member.lastLine = line));
  return member;
}

/** Proposals of one turn go in one frame. */
class Proposals {
  readonly #socket: WebSocket;
  readonly #value: Buffer;
  readonly #waiting = new Map<number, { resolve: () => void; reject: (error: Error) => void }>();
  #frame: Buffer[] = [];
  #next = 0;

  constructor(socket: WebSocket, value: Buffer) {
    this.#socket = socket;
    this.#value = value;
    socket.on('message', (answer: Buffer) => {
      for (let at = 0; at < answer.length; at += 4) {
        const id = answer.readUInt32BE(at);
        this.#waiting.get(id)?.resolve();
        this.#waiting.delete(id);
      }
    });
    socket.on('close', (_code, reason) => {
      for (const { reject } of this.#waiting.values()) reject(new Error(`closed: ${reason.toString()}`));
    });
  }

  propose(): Promise<void> {
    return new Promise((resolve, reject) => {
      const id = this.#next++;
      this.#waiting.set(id, { resolve, reject });
      const head = Buffer.allocUnsafe(8);
      head.writeUInt32BE(id, 0);
      head.writeUInt32BE(this.#value.length, 4);
      this.#frame.push(head, this.#value);
      if (this.#frame.length > 2) return;
      setImmediate(() => {
        this.#socket.send(Buffer.concat(this.#frame));
        this.#frame = [];
      });
    });
  }
}

const directory = mkdtempSync(join(tmpdir(), 'evenkeel-bench-raft-'));
const ports = await freePorts(6);
const peers = [0, 1, 2].map((n) => `n${n}=127.0.0.1:${ports[2 * n + 1]}`).join(',');
const group = [0, 1, 2].map((n) =>
  startMember(`n${n}`, `127.0.0.1:${ports[2 * n]}`, join(directory, `n${n}`), peers),
);
try {
  const leader = await until('a leader', async () =>
    group.find(({ lastLine }) => lastLine === 'role serving'),
  );
  const socket = new WebSocket(`ws://${leader.address}/bench`, { perMessageDeflate: false });
  await new Promise((resolve, reject) => {
    socket.once('open', resolve);
    socket.once('error', reject);
  });
  const proposals = new Proposals(socket, Buffer.alloc(Number(values['value-bytes']), 'x'));
  const pids = group.map(({ child }) => child.pid ?? 0);
  console.log('consensus alone');
  await measure(() => proposals.propose(), pids, {
    inFlight: numbers(values['in-flight']),
    seconds: Number(values.seconds),
  });
  socket.terminate();
} finally {
  for (const { child } of group) child.kill('SIGKILL');
  rmSync(directory, { recursive: true, force: true });
}
