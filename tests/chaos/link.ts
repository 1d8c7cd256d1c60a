import { once } from 'node:events';
import { createServer, Socket, type AddressInfo, type Server } from 'node:net';

/** The way from one broker to another: a TCP proxy that can hold back every byte without closing anything. */
export class Link {
  readonly #server: Server;
  readonly #port: number;
  readonly #pairs = new Set<readonly [Socket, Socket]>();
  /** Dialled while the link is cut: they wait as for a host that does not answer. */
  readonly #waiting = new Set<Socket>();
  #isCut = false;

  private constructor(server: Server, toPort: number) {
    this.#server = server;
    this.#port = (server.address() as AddressInfo).port;
    server.on('connection', (near) => this.#accept(near, toPort));
  }

  static async open(toPort: number): Promise<Link> {
    const server = createServer();
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new Link(server, toPort);
  }

  get port(): number {
    return this.#port;
  }

  cut(): void {
    this.#isCut = true;
    for (const [near, far] of this.#pairs) {
      near.unpipe(far).pause();
      far.unpipe(near).pause();
    }
  }

  mend(): void {
    this.#isCut = false;
    for (const socket of this.#waiting) socket.destroy();
    for (const pair of this.#pairs) join(pair);
  }

  close(): void {
    this.#server.close();
    for (const socket of this.#waiting) socket.destroy();
    for (const [near] of this.#pairs) near.destroy();
  }

  #accept(near: Socket, toPort: number): void {
    near.on('error', () => near.destroy());
    if (this.#isCut) {
      this.#waiting.add(near);
      near.on('close', () => this.#waiting.delete(near));
      return;
    }
    const far = new Socket().connect(toPort, '127.0.0.1');
    const pair = [near, far] as const;
    this.#pairs.add(pair);
    far.on('error', () => far.destroy());
    for (const socket of pair) {
      socket.on('close', () => {
        this.#pairs.delete(pair);
        near.destroy();
        far.destroy();
      });
    }
    join(pair);
  }
}

function join([near, far]: readonly [Socket, Socket]): void {
  near.pipe(far);
  far.pipe(near);
}
