import { WebSocket } from 'ws';

/** A client's WebSocket under test: counts answers, keeps those that should never come. */
export class FuzzSocket {
  answers = 0;
  /** Answers that say that the node itself failed, or that are no answers. */
  readonly bad: string[];
  readonly closed: Promise<number>;
  readonly #socket: WebSocket;
  readonly #waiting: (() => void)[] = [];

  private constructor(socket: WebSocket, bad: string[], read: (frame: Buffer, isBinary: boolean) => unknown) {
    this.#socket = socket;
    this.bad = bad;
    this.closed = new Promise((resolve) => socket.once('close', resolve));
    socket.on('error', () => undefined);
    socket.on('message', (frame: Buffer, isBinary) => {
      this.answers += 1;
      this.#note(read(frame, isBinary));
      for (const wake of this.#waiting.splice(0)) wake();
    });
    socket.once('close', () => {
      for (const wake of this.#waiting.splice(0)) wake();
    });
  }

  static async open(
    url: string,
    protocol: string | undefined,
    bad: string[],
    read: (frame: Buffer, isBinary: boolean) => unknown,
  ): Promise<FuzzSocket> {
    const socket = new WebSocket(url, protocol, { perMessageDeflate: false });
    await new Promise((resolve, reject) => {
      socket.once('open', resolve);
      socket.once('error', reject);
    });
    return new FuzzSocket(socket, bad, read);
  }

  get open(): boolean {
    return this.#socket.readyState === WebSocket.OPEN;
  }

  send(frame: string | Uint8Array): void {
    this.#socket.send(frame, () => undefined);
  }

  /** Until something comes or the socket is closed. */
  async heard(): Promise<void> {
    if (this.open) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  async end(): Promise<void> {
    this.#socket.terminate();
    await this.closed;
  }

  #note(answer: unknown): void {
    const text = JSON.stringify(answer) ?? 'nothing';
    if (typeof answer !== 'object' || answer === null || text.includes('"code":"internal"')) {
      this.bad.push(text.slice(0, 500));
    }
  }
}
