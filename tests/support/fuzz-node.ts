import { DEFAULT_LIMITS } from '../../raft/index.ts';
import { createSystemClock } from '../../src/clock.ts';
import { DEFAULT_BROKER_TIMINGS } from '../../src/control/index.ts';
import { createLevelDisk } from '../../src/disk-level.ts';
import { SILENT_LOGGER, type Logger } from '../../src/logger.ts';
import { createWebSocketNet } from '../../src/net-ws.ts';
import { createSystemRandom } from '../../src/random.ts';
import { startNode, type RunningNode } from '../../src/server.ts';
import { freePorts } from './cluster.ts';
import { temporaryDirectory } from './data-directories.ts';

/** Beyond what a run itself holds: far less than one lying length would take. */
const MAX_GROWTH_BYTES = 250 * 1024 * 1024;

/** One whole node in this process, as `evenkeel serve` runs it, that keeps what it finds at fault with itself. */
export class FuzzNode {
  readonly address: string;
  /** Faults of the node's own: none may come of what anybody sends. */
  readonly faults: string[];
  readonly #node: RunningNode;
  readonly #remove: () => Promise<void>;
  readonly #before = process.memoryUsage();

  private constructor(node: RunningNode, faults: string[], remove: () => Promise<void>) {
    this.#node = node;
    this.address = node.address;
    this.faults = faults;
    this.#remove = remove;
  }

  static async start(): Promise<FuzzNode> {
    const { path, remove } = await temporaryDirectory();
    const [port, peerPort] = await freePorts(2);
    const faults: string[] = [];
    const note = (fields: object, message: string): void =>
      void faults.push(`${message} ${JSON.stringify(fields)}`);
    const logger: Logger = { ...SILENT_LOGGER, error: note, fatal: note, child: () => logger };
    const peer = `127.0.0.1:${peerPort}`;
    const node = await startNode({
      config: {
        nodeId: 'n1',
        clusterId: 'test',
        members: new Map([['n1', peer]]),
        listen: `127.0.0.1:${port}`,
        peerListen: peer,
        dataDir: path,
        initialClusterState: 'new',
        logLevel: 'silent',
        raft: DEFAULT_LIMITS,
        broker: DEFAULT_BROKER_TIMINGS,
      },
      clock: createSystemClock(),
      net: createWebSocketNet(),
      disk: createLevelDisk(),
      random: createSystemRandom(),
      logger,
      onFatal: (error) => void faults.push(`fatal: ${error.message}`),
    });
    return new FuzzNode(node, faults, remove);
  }

  /** What is wrong with this process after the run; nothing, if all is well. */
  damage(): string[] {
    const { rss, heapUsed } = process.memoryUsage();
    const found = [...this.faults];
    for (const [name, grown] of [
      ['resident memory', rss - this.#before.rss],
      ['the heap', heapUsed - this.#before.heapUsed],
    ] as const) {
      if (grown > MAX_GROWTH_BYTES) found.push(`${name} grew by ${grown} bytes`);
    }
    if ('polluted' in {}) found.push('a prototype was polluted');
    return found;
  }

  async stop(): Promise<void> {
    await this.#node.stop();
    await this.#remove();
  }
}
