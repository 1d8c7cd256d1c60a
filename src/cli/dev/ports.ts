import { createServer } from 'node:net';
import { EvenkeelError } from '../../errors.ts';

const LOOPBACK = '127.0.0.1';
/** Peer listeners lie this far above client listeners. */
const PEER_OFFSET = 100;
const MAX_PORT = 65_535;

export interface NodePorts {
  readonly client: number;
  readonly peer: number;
}

/**
 * Ports of `count` nodes from `first` on; 0 takes any that are free. Without `first` the usual ones, or any that are
 * free where one of those is taken. Rejects with `address_in_use` where one asked for is taken, `invalid_argument` where there is none so high.
 */
export async function choosePorts(
  count: number,
  first: number | undefined,
  usual: number,
): Promise<NodePorts[]> {
  const from = first ?? usual;
  if (from === 0) return freePorts(count);
  const highest = MAX_PORT - PEER_OFFSET - (count - 1);
  if (from > highest) {
    const message = `--port ${from}: ${count} nodes and their peer ports need it to be ${highest} at most`;
    throw new EvenkeelError('invalid_argument', message);
  }
  const wanted = Array.from({ length: count }, (_, i) => ({
    client: from + i,
    peer: from + PEER_OFFSET + i,
  }));
  try {
    await checkFree(wanted);
    return wanted;
  } catch (error) {
    if (first !== undefined) throw error;
    return freePorts(count);
  }
}

/** Rejects with `address_in_use` that names the ports taken. */
export async function checkFree(ports: readonly NodePorts[]): Promise<void> {
  const taken: number[] = [];
  for (const port of ports.flatMap(({ client, peer }) => [client, peer])) {
    const holder = await hold(port);
    if (holder === null) taken.push(port);
    else await holder.release();
  }
  if (taken.length > 0) {
    throw new EvenkeelError('address_in_use', `port ${taken.join(', ')} is taken; choose others with --port`);
  }
}

/** Held open together until all are chosen, so that no two are the same. */
async function freePorts(count: number): Promise<NodePorts[]> {
  const held = await Promise.all(Array.from({ length: 2 * count }, () => hold(0)));
  const ports = held.map((holder) => holder?.port ?? 0);
  for (const holder of held) await holder?.release();
  return Array.from({ length: count }, (_, i) => ({
    client: ports[2 * i] ?? 0,
    peer: ports[2 * i + 1] ?? 0,
  }));
}

interface Holder {
  readonly port: number;
  release(): Promise<void>;
}

function hold(port: number): Promise<Holder | null> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(null));
    server.listen(port, LOOPBACK, () => {
      const address = server.address();
      resolve({
        port: typeof address === 'object' && address !== null ? address.port : port,
        release: () => new Promise((released) => void server.close(() => released())),
      });
    });
  });
}
